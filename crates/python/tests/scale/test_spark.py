"""Spark with two cores finds the winners of a single process, also if a worker dies."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import classyard
import classyard.spark
from flows import (
    DEATH_FILES, FLOWS, Flows, MortalLookup, TableCounter, assert_join, assert_winners)
from oracle import random_headers, random_oracle

NESTED = "nested struct<a:int,b:array<string>>, prices map<string,decimal(10,2)>, time timestamp"
WORDS = {"ACCEPT": "permit", "REJECT": "deny"}


def test_all_rows_have_the_winners_of_one_process(spark: Any, flows: Flows, tmp_path: Path) -> None:
    found = classyard.spark.classify(spark.read.parquet(str(flows.folder)), flows.policy)
    found.write.parquet(str(tmp_path / "out"))
    assert_winners(flows, tmp_path / "out")
    assert_join(flows, tmp_path / "out")

    classified = spark.read.parquet(str(tmp_path / "out"))
    report = classyard.spark.report(classified, flows.policy)
    hits = {row.rule: row.flows for row in report.hits.collect()}
    rules = flows.winners["rule"].drop_null().to_numpy()
    counts = numpy.bincount(rules, minlength=len(flows.policy))
    assert hits == dict(zip(range(len(flows.policy)), counts.tolist()))
    outcomes = {row.outcome: row.flows for row in report.outcomes.collect()}
    matched = Counter(flows.winners["matched"].to_pylist())
    assert outcomes == {
        "matched": matched[True], "no rule": matched[False], "no header": matched[None]}
    assert sum(outcomes.values()) == FLOWS
    assert report.unmatched.count() == matched[False]


def test_a_worker_that_dies(
    spark: Any, flows: Flows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "died"
    monkeypatch.setenv("CLASSYARD_MARKER", str(marker))
    monkeypatch.setattr(classyard.spark, "_Lookup", MortalLookup)
    df = spark.read.parquet(*flows.files(DEATH_FILES))
    classyard.spark.classify(df, flows.policy).write.parquet(str(tmp_path / "out"))
    assert marker.exists()
    assert_winners(flows, tmp_path / "out", DEATH_FILES)


def test_a_policy_with_both_families(spark: Any, tmp_path: Path) -> None:
    oracle = random_oracle(31, rules=60)
    headers = random_headers(32, 3000, nulls=0.02)
    data = [
        (place, *(None if address is None else str(address) for address in (h.src, h.dst)),
         h.sport, h.dport, h.proto)
        for place, h in enumerate(headers)
    ]
    schema = "row int, a string, b string, sport int, dport int, proto int"
    df = spark.createDataFrame(data, schema).repartition(4)
    # A small batch, so that a partition has several.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    columns = {"src": "a", "dst": ["missing", "b"]}
    found = classyard.spark.classify(
        df, oracle.policy(), columns=columns, outputs={"rule": "winner"}, threads=2)
    winners = {row.row: row.winner for row in found.collect()}
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert [winners[place] for place in range(len(headers))] == oracle.expected(headers)


def test_other_columns_pass_unchanged(spark: Any) -> None:
    rows = spark.range(50).selectExpr(
        "cast(id as string) as text", "cast(id as int) as dport", "6 as proto",
        "named_struct('a', 1, 'b', array('x', null)) as nested",
        "map('k', cast(1.5 as decimal(10,2))) as prices",
        "timestamp'2026-01-02 03:04:05' + make_dt_interval(0, 0, 0, id) as time")
    policy = classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=7", "permit proto=tcp"])
    for large in "false", "true":
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
        # No rule depends on addresses, so they need no columns.
        found = classyard.spark.classify(rows, policy)
        assert found.drop("matched", "rule", "action").collect() == rows.collect()
        assert [row.action for row in found.where("dport in (6, 7)").collect()] == ["permit", "deny"]
    spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")


def test_a_report_compares_with_the_log(spark: Any) -> None:
    policy = classyard.Policy.from_rules(
        "dual-5tuple", ["permit dport=443 proto=tcp", "deny proto=tcp", "deny dport=9 proto=udp"])
    rows = [
        ("10.0.0.1", 443, 6, "ACCEPT"), ("10.0.0.1", 22, 6, "REJECT"),
        ("2001:db8::1", 22, 6, "ACCEPT"), ("10.0.0.1", 443, 6, "accept"), ("10.0.0.1", 443, 6, None), ("10.0.0.1", 53, 17, "ACCEPT"),
        ("10.0.0.1", None, 6, "REJECT"),
    ]
    df = spark.createDataFrame(rows, "srcaddr string, dstport int, protocol int, action string")
    outputs = {"matched": "matched", "rule": "rule", "action": "verdict"}
    classified = classyard.spark.classify(df, policy, columns="vpc", outputs=outputs)
    report = classyard.spark.report(
        classified, policy, logged="action", words=WORDS, action="verdict")
    outcomes = {row.outcome: row.flows for row in report.outcomes.collect()}
    assert outcomes == {"equal": 2, "different": 1, "unknown word": 2, "no rule": 1, "no header": 1}
    assert report.different is not None and report.unknown_words is not None
    assert [row.srcaddr for row in report.different.collect()] == ["2001:db8::1"]
    unknown = {row.word: row.flows for row in report.unknown_words.collect()}
    assert unknown == {"accept": 1, None: 1}
    hits = {row.rule: (row.flows, row.text) for row in report.hits.collect()}
    assert hits == {0: (3, "permit dport=443 proto=tcp"), 1: (2, "deny proto=tcp"),
                    2: (0, "deny dport=9 proto=udp")}
    # The hits of a rule that another policy does not have are not lost.
    other = classyard.Policy.from_rules("dual-5tuple", ["permit dport=443"])
    hits_of_other = classyard.spark.report(classified, other, action="verdict").hits.collect()
    assert {(row.rule, row.flows, row.text) for row in hits_of_other} == {
        (0, 3, "permit dport=443"), (1, 2, None)}
    assert [row.dstport for row in report.unmatched.collect()] == [53]

    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "there is no column `no`; the columns are `srcaddr`, .*`verdict`; a report needs"),
        ({"action": "verdict", "logged": "action"}, "`logged` and `words` belong together"),
        ({"action": "verdict", "logged": "action", "words": {"ACCEPT": "allow"}},
         "no value of `words` is an action of the policy, which has `permit`, `deny`"),
    ]
    for arguments, message in bad:
        with pytest.raises(ValueError, match=message):
            classyard.spark.report(classified, policy, **{"action": "no", **arguments})


def test_errors_before_the_job_starts(spark: Any) -> None:
    policy = classyard.Policy.from_rules("dual-5tuple", ["deny dport=443 src=10.0.0.0/8"])

    def refuses(schema: str, error: type[Exception], message: str, **settings: Any) -> None:
        df = spark.createDataFrame([], schema)
        with pytest.raises(error, match=message):
            classyard.spark.classify(df, policy, **settings)

    good = "src string, dport int"
    refuses("src string", classyard.ColumnError, "field `dport`: no column `dport`")
    refuses(good, classyard.ColumnError, "no column `srcaddr`; the columns are `src`, `dport`",
            columns="vpc")
    refuses("src string, dport double", classyard.ColumnError,
            "column `dport` for the field `dport` is of type Float64")
    refuses(good + "," + NESTED, classyard.ColumnError, "column `time` .* Timestamp",
            columns={"dport": "time"})
    refuses(good + ", Rule int", ValueError, "the data has a column `Rule` already.*choose other "
            r"names: outputs=\{'matched': 'matched', 'rule': 'policy_rule', 'action': 'action'\}")
    refuses(good, ValueError, "two columns are named `x`", outputs={"rule": "x", "action": "x"})
    refuses(good, ValueError, "there is no output `line`; there are `matched`, `rule`, `action`",
            outputs=["line"])
    refuses(good, ValueError, r"the text 'rule'; expected a list: \['rule'\]", outputs="rule")
    refuses(good, ValueError, "the list is empty", outputs=[])
    refuses(good, classyard.Error, "there is no engine `fast`", engine="fast")
    twice = spark.sql("select 'a' src, 1 dport, 2 dport")
    with pytest.raises(ValueError, match="two columns `dport`"):
        classyard.spark.classify(twice, policy)
    with pytest.raises(classyard.ColumnError, match="field `dport`"):
        classyard.spark.classify(twice.drop("dport"), policy, constants={"proto": 6})


def test_a_value_that_cannot_be_read(spark: Any) -> None:
    policy = classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=443"])
    df = spark.range(0, 300, 1, 1).selectExpr("if(id = 250, 70000, 80) as dport")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    with pytest.raises(Exception) as caught:
        classyard.spark.classify(df, policy).collect()
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    message = str(caught.value)
    assert "ColumnError: column `dport`, row 50: 70000 does not fit" in message
    assert "in partition 0; row 0 of the batch is row 200 of the partition" in message


def test_spark_connect() -> None:
    """A process cannot have a session of Spark Connect and another one."""
    pytest.importorskip("grpc")
    job = Path(__file__).parent / "connect_job.py"
    run = subprocess.run([sys.executable, str(job)], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.endswith("all equal\n"), run.stderr


def test_a_worker_builds_one_table(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classyard.spark, "_Lookup", TableCounter)
    policy = classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=443"])
    df = spark.range(0, 160, 1, 16).selectExpr("cast(id as int) as dport")
    rows = classyard.spark.classify(df, policy, outputs={"action": "tables"}).collect()
    # One process for each core; each has one table after all of its tasks.
    processes = Counter(row.tables.split()[0] for row in rows)
    assert len(rows) == 160 and len(processes) <= 2
    assert {row.tables.split()[1] for row in rows} == {"1"}
