"""Six random rule sets have equal winners through every way in, and they are the oracle's."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

import classyard
import classyard.ray
import classyard.spark
from oracle import Oracle, random_headers, random_oracle, rules_of
from test_classify import columns

HEADERS = 1000
# Seed, number of rules, IP versions, share of values that are null. With these seeds, no rule of
# high priority matches almost everything.
SETS = [
    (58, 20, (4,), 0.0),
    (51, 80, (4,), 0.03),
    (51, 150, (4, 6), 0.0),
    (65, 150, (4, 6), 0.03),
    (57, 60, (6,), 0.03),
    (53, 300, (4, 6), 0.01),
]


class Case:
    """A policy, headers as columns, and the winners."""

    def __init__(self, seed: int, rules: int, versions: tuple[int, ...], nulls: float) -> None:
        oracle: Oracle = random_oracle(seed, rules, versions)
        headers = random_headers(seed, HEADERS, versions, nulls)
        self.policy = oracle.policy()
        self.columns: dict[str, Any] = columns(headers)
        self.data = pyarrow.table(self.columns)
        self.expected = oracle.expected(headers)
        assert len(set(self.expected)) > rules // 10


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [Case(*settings) for settings in SETS]


def test_frames_and_arrays(cases: list[Case]) -> None:
    for case in cases:
        table = classyard.Table(case.policy)
        frame = pandas.DataFrame(case.columns).convert_dtypes()
        relation = duckdb.from_arrow(case.data)
        for batch in case.data, frame, polars.DataFrame(case.columns), relation:
            assert rules_of(table.classify(batch)) == case.expected, type(batch)
        # Arrays of numpy have no nulls.
        complete = case.data.drop_null()
        rows = zip(*case.columns.values())
        places = [place for place, values in enumerate(rows) if None not in values]
        arrays: dict[str, Any] = {name: complete[name].to_numpy() for name in case.columns}
        if all("." in address for address in case.columns["src"] if address):
            for name in "src", "dst":
                addresses = [int.from_bytes(bytes(map(int, a.split(".")))) for a in arrays[name]]
                arrays[name] = numpy.array(addresses, dtype="u4")
        found = numpy.asarray(table.classify(**arrays).rule).tolist()
        expected = [case.expected[row] for row in places]
        assert [None if rule == classyard.NO_RULE else rule for rule in found] == expected


def test_spark(cases: list[Case], spark: Any) -> None:
    schema = "row int, src string, dst string, sport int, dport int, proto int"
    for case in cases:
        rows = [(row, *values) for row, values in enumerate(zip(*case.columns.values()))]
        df = spark.createDataFrame(rows, schema).repartition(2)
        found = classyard.spark.classify(df, case.policy, outputs=["rule"]).collect()
        winners = {row.row: row.rule for row in found}
        assert [winners[row] for row in range(HEADERS)] == case.expected


def test_ray(cases: list[Case], ray: Any) -> None:
    for case in cases:
        data = case.data.append_column("row", pyarrow.array(range(HEADERS)))
        found = ray.data.from_arrow(data).map_batches(
            classyard.ray.Classify,
            fn_constructor_args=(ray.put(case.policy),),
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=1),
            num_cpus=0.5,
        )
        winners = {row["row"]: row["rule"] for row in found.take_all()}
        assert [winners[row] for row in range(HEADERS)] == case.expected
