"""Classifies flows by a local server of Spark Connect. `test_spark.py` runs it."""

from __future__ import annotations

import classyard
import classyard.spark
from pyspark.sql import SparkSession

WORDS = {"ACCEPT": "permit", "REJECT": "deny"}


def main() -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    assert "connect" in type(spark).__module__
    policy = classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=7", "permit proto=tcp"])
    df = spark.range(50).selectExpr("cast(id as int) dport", "6 proto", "'ACCEPT' logged")
    found = classyard.spark.classify(df, policy)
    rows = {row.dport: (row.rule, row.action) for row in found.collect()}
    assert rows == {port: (0, "deny") if port == 7 else (1, "permit") for port in range(50)}
    report = classyard.spark.report(found, policy, logged="logged", words=WORDS)
    assert {row.outcome: row.flows for row in report.outcomes.collect()} == {
        "equal": 49, "different": 1}
    assert {row.rule: row.flows for row in report.hits.collect()} == {0: 1, 1: 49}
    try:
        classyard.spark.classify(df.drop("dport"), policy)
    except classyard.ColumnError as error:
        assert "no column `dport`" in str(error)
    else:
        raise AssertionError("a missing column was no error")
    spark.stop()
    print("all equal")


if __name__ == "__main__":
    main()
