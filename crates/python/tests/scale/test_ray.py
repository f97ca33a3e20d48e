"""Ray with two processors finds the winners of a single process, also if an actor dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

import classyard
from classyard.ray import Classify
from flows import DEATH_FILES, FILES, Flows, MortalClassify, assert_join, assert_winners
from oracle import random_headers, random_oracle

BATCH_ROWS = 50_000
# Two actors leave one of two processors to the tasks that read and write.
ACTOR_CPUS = 0.5


def classified(ray: Any, data: Any, *arguments: Any, fn: Any = Classify, **settings: Any) -> Any:
    return data.map_batches(
        fn,
        fn_constructor_args=arguments,
        fn_constructor_kwargs=settings,
        batch_format="pyarrow",
        batch_size=BATCH_ROWS,
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=ACTOR_CPUS,
    )


def test_all_rows_have_the_winners_of_one_process(ray: Any, flows: Flows, tmp_path: Path) -> None:
    data = ray.data.read_parquet(str(flows.folder), override_num_blocks=FILES)
    classified(ray, data, ray.put(flows.policy)).write_parquet(str(tmp_path / "out"))
    assert_winners(flows, tmp_path / "out")
    assert_join(flows, tmp_path / "out")


def test_an_actor_that_dies(ray: Any, flows: Flows, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    # Ray Data restarts actors and repeats their batches by default.
    data = ray.data.read_parquet(flows.files(DEATH_FILES), override_num_blocks=DEATH_FILES)
    found = data.map_batches(
        MortalClassify,
        fn_constructor_args=(ray.put(flows.policy), str(marker)),
        batch_format="pyarrow",
        batch_size=BATCH_ROWS,
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=ACTOR_CPUS,
    )
    found.write_parquet(str(tmp_path / "out"))
    assert marker.exists()
    assert_winners(flows, tmp_path / "out", DEATH_FILES)


def test_a_policy_with_both_families(ray: Any) -> None:
    oracle = random_oracle(41, rules=60)
    headers = random_headers(42, 2000, nulls=0.02)
    data = pyarrow.table({
        "row": range(len(headers)),
        "a": [None if header.src is None else str(header.src) for header in headers],
        "b": [None if header.dst is None else str(header.dst) for header in headers],
        "sport": [header.sport for header in headers],
        "dport": [header.dport for header in headers],
        "proto": [header.proto for header in headers],
    })
    # A policy itself instead of a reference, and other names.
    settings = {"columns": {"src": "a", "dst": ["missing", "b"]}, "outputs": {"rule": "winner"}}
    found = classified(ray, ray.data.from_arrow(data), oracle.policy(), threads=2, **settings)
    winners = {row["row"]: row["winner"] for row in found.take_all()}
    assert [winners[row] for row in range(len(headers))] == oracle.expected(headers)


def test_errors_of_a_job(ray: Any) -> None:
    policy = ray.put(classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=443"]))
    data = ray.data.from_arrow(pyarrow.table({"dport": [80, 70000]}))
    with pytest.raises(Exception) as caught:
        classified(ray, data, policy).take_all()
    assert "ColumnError: column `dport`, row 1: 70000 does not fit" in str(caught.value)


def test_errors_of_the_class() -> None:
    policy = classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=443"])
    flows = pyarrow.table({"dport": [443]})
    assert Classify(policy)(flows).to_pylist() == [
        {"dport": 443, "matched": True, "rule": 0, "action": "deny"}]
    for batch, error, message in (
        ({"dport": [443]}, TypeError, 'type dict; expected a pyarrow.Table: pass batch_format="pya'),
        (flows.rename_columns(["port"]), classyard.ColumnError, "no column `dport`; .* are `port`"),
        (flows.append_column("rule", [[1]]), ValueError, "has a column `rule` already"),
        (flows.append_column("dport", [[1]]), ValueError, "two columns `dport`"),
        (pyarrow.table({"dport": [4.5]}), classyard.ColumnError, "column `dport` .* Float64"),
    ):
        with pytest.raises(error, match=message):
            Classify(policy)(batch)
    with pytest.raises(ValueError, match="there is no output `line`"):
        Classify(policy, outputs=["line"])
    with pytest.raises(classyard.Error, match="there is no engine `fast`"):
        Classify(policy, engine="fast")
    not_a_policy: Any = "fw.rules"
    with pytest.raises(TypeError, match="`policy` is of type str; expected a classyard.Policy"):
        Classify(not_a_policy)
