"""The parts of `classyard.spark` and `classyard.ray` that need neither Spark nor Ray."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pyarrow
import pytest

import classyard
import classyard.ray
import classyard.spark
from classyard import _workers


def policy(port: int) -> classyard.Policy:
    return classyard.Policy.from_rules("ipv4-5tuple", [f"deny dport={port}"])


def test_errors_name_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "pyspark", "ray":
        monkeypatch.setitem(sys.modules, name, None)
    nothing: Any = object()
    with pytest.raises(ImportError, match=r"pip install 'classyard\[spark\]'"):
        classyard.spark.classify(nothing, policy(1))
    with pytest.raises(ImportError, match=r"pip install 'classyard\[spark\]'"):
        classyard.spark.report(nothing)
    with pytest.raises(ImportError, match=r"pip install 'classyard\[ray\]'"):
        classyard.ray.Classify(nothing)


def test_the_modules_import_nothing_large() -> None:
    code = (
        "import sys, classyard, classyard.spark, classyard.ray\n"
        "print([name for name in ('pyspark', 'ray', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_process_keeps_few_tables_and_builds_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "_tables", type(_workers._tables)())
    built: list[int] = []

    def table(port: int) -> classyard.Table:
        def load() -> classyard.Policy:
            time.sleep(0.01)
            built.append(port)
            return policy(port)

        return _workers.table_of(str(port), load, "forest")

    threads = [threading.Thread(target=table, args=(1,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1]
    first = table(1)
    for port in range(2, _workers.MAX_TABLES + 1):
        table(port)
    assert table(1) is first and built == list(range(1, _workers.MAX_TABLES + 1))
    # Table 2 is the one that was not used for the longest time.
    table(99)
    assert len(_workers._tables) == _workers.MAX_TABLES
    assert table(1) is first and len(built) == _workers.MAX_TABLES + 1
    table(2)
    assert built[-1] == 2


def test_digests_differ_by_rules_and_engine() -> None:
    data = [_workers.pickled(policy(port)) for port in (1, 2, 1)]
    assert data[0] == data[2]
    digests = {_workers.digest(each, engine) for each in data for engine in ("forest", "linear")}
    assert len(digests) == 4


def test_result_columns() -> None:
    settings = _workers.settings(
        {"dport": "port"}, {"proto": 6}, {"action": "a", "rule": "r", "matched": "m"}, "forest", 1)
    batch = pyarrow.record_batch({"port": [1, 2, None], "x": [[1], None, []]})
    found = _workers.with_results(classyard.Table(policy(1)), batch, settings)
    assert found.schema.names == ["port", "x", "a", "r", "m"]
    assert found.schema.types[2:] == [pyarrow.string(), pyarrow.int64(), pyarrow.bool_()]
    assert found.to_pylist() == [
        {"port": 1, "x": [1], "a": "deny", "r": 0, "m": True},
        {"port": 2, "x": None, "a": None, "r": None, "m": False},
        {"port": None, "x": [], "a": None, "r": None, "m": None},
    ]
    # A change of the caller's dict after the call changes nothing.
    columns = {"dport": "port"}
    settings = _workers.settings(columns, None, ["rule"], "forest", 1)
    columns["dport"] = "other"
    assert settings.columns == {"dport": "port"}


def test_clashes_of_names() -> None:
    settings = _workers.settings(None, None, ["rule", "action"], "forest", 1)
    _workers.refuse_clashes(settings, ["Rule", "src"])
    names = r"\{'rule': 'policy_rule', 'action': 'action'\}"
    with pytest.raises(ValueError, match=f"`Rule` already.*{names}"):
        _workers.refuse_clashes(settings, ["Rule", "src"], case_sensitive=False)
