"""Random rules, millions of flows, a join of DuckDB that looks them up, workers that die."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import classyard
import classyard.ray
import classyard.spark

FLOWS = 4_000_000
FILES = 8
# The files of a job in which a worker dies.
DEATH_FILES = 2
RULES = 1_000
JOINED_FLOWS = 20_000
FIELDS = ("src", "dst", "sport", "dport", "proto")
TYPES = {"src": "u4", "dst": "u4", "sport": "u2", "dport": "u2", "proto": "u1"}


@dataclass(frozen=True)
class Flows:
    """Flows in a folder of Parquet files, with row numbers, and the policy's winners."""

    folder: Path
    policy: classyard.Policy
    # The lowest and highest value of each field in each rule; rules are in order, best first.
    ranges: dict[str, Any]
    data: Any
    winners: Any

    def files(self, count: int) -> list[str]:
        """Returns the paths of the first files."""
        return [str(self.folder / f"{file}.parquet") for file in range(count)]


def written(folder: Path) -> Flows:
    """Writes random flows, of which 1 % have a null."""
    rng = numpy.random.default_rng(7)
    ranges = _random_ranges(rng)
    policy = classyard.Policy.from_rules("ipv4-5tuple", _lines(ranges))
    data = _random_flows(rng, ranges)
    rows = FLOWS // FILES
    for file in range(FILES):
        pyarrow.parquet.write_table(data.slice(file * rows, rows), folder / f"{file}.parquet")
    winners = pyarrow.record_batch(classyard.Table(policy).classify(data))
    return Flows(folder, policy, ranges, data, winners)


def _random_ranges(rng: Any) -> dict[str, Any]:
    ranges: dict[str, Any] = {}
    for field in "src", "dst":
        free_bits = rng.choice([0, 4, 8, 8, 12, 16, 32 if field == "src" else 0], RULES).astype("u8")
        size = numpy.uint64(1) << free_bits
        low = rng.integers(0, 2**32, RULES, dtype="u8") // size * size
        ranges[f"{field}_low"], ranges[f"{field}_high"] = low, low + size - numpy.uint64(1)
    for field in "sport", "dport":
        low = rng.integers(0, 65536, RULES)
        high = numpy.minimum(low + rng.choice([0, 0, 10, 1000], RULES), 65535)
        is_any = rng.random(RULES) < (0.9 if field == "sport" else 0.2)
        ranges[f"{field}_low"] = numpy.where(is_any, 0, low)
        ranges[f"{field}_high"] = numpy.where(is_any, 65535, high)
    proto = rng.choice([6, 17], RULES)
    ranges["proto_low"] = ranges["proto_high"] = proto
    return ranges


def _lines(ranges: dict[str, Any]) -> list[str]:
    lines = []
    for rule in range(RULES):
        words = [("permit", "deny", "log")[rule % 3], f"id={rule}"]
        for field in "src", "dst":
            low, high = (int(ranges[f"{field}_{end}"][rule]) for end in ("low", "high"))
            prefix = 32 - (high - low).bit_length()
            words.append(f"{field}={ipaddress.IPv4Address(low)}/{prefix}")
        for field in "sport", "dport":
            words.append("{}={}-{}".format(
                field, ranges[f"{field}_low"][rule], ranges[f"{field}_high"][rule]))
        words.append(f"proto={ranges['proto_low'][rule]}")
        lines.append(" ".join(words))
    return lines


def _random_flows(rng: Any, ranges: dict[str, Any]) -> Any:
    """Points of random rules; a fifth of the flows has another destination port."""
    rules = rng.integers(0, RULES, FLOWS)
    columns: dict[str, Any] = {"row": pyarrow.array(numpy.arange(FLOWS))}
    for field in FIELDS:
        low, high = (ranges[f"{field}_{end}"].astype("i8")[rules] for end in ("low", "high"))
        values = low + (rng.random(FLOWS) * (high - low + 1)).astype("i8")
        if field == "dport":
            other = rng.random(FLOWS) < 0.2
            values = numpy.where(other, rng.integers(0, 65536, FLOWS), values)
        nulls = rng.random(FLOWS) < 0.01 if field == "proto" else None
        columns[field] = pyarrow.array(values.astype(TYPES[field]), mask=nulls)
    return pyarrow.table(columns)


def assert_winners(flows: Flows, folder: Path, files: int = FILES) -> None:
    """Compares all rows in a folder with those of the first files in a single process."""
    rows = FLOWS // FILES * files
    found = pyarrow.parquet.read_table(folder).sort_by("row")
    assert found.column_names == ["row", *FIELDS, "matched", "rule", "action"]
    assert found.num_rows == rows
    for name in "row", *FIELDS:
        values = found[name].cast(flows.data.schema.field(name).type)
        assert values.combine_chunks().equals(flows.data[name].slice(0, rows).combine_chunks()), name
    expected = flows.winners.slice(0, rows)
    assert found["matched"].combine_chunks().equals(expected["matched"])
    assert found["rule"].combine_chunks().equals(expected["rule"].cast(pyarrow.int64()))
    assert found["action"].combine_chunks().equals(expected["action"].dictionary_decode())
    assert 0.5 < pyarrow.compute.mean(found["matched"]).as_py() < 0.99
    assert found["matched"].null_count > rows // 200


def assert_join(flows: Flows, folder: Path) -> None:
    """Compares some rows in a folder with a join on ranges."""
    places = numpy.random.default_rng(8).choice(FLOWS, JOINED_FLOWS, replace=False)
    rules = pyarrow.table({"id": numpy.arange(RULES), **flows.ranges})
    sample = pyarrow.table({"row": numpy.sort(places)})
    names = {"rules": rules, "sample": sample}
    database = duckdb.connect(config={"threads": 2})
    for name, table in names.items():
        database.register(name, table)
    matches = " and ".join(f"{name} between {name}_low and {name}_high" for name in FIELDS)
    different = database.execute(
        f"with picked as (select flows.* from read_parquet('{folder}/*.parquet') flows "
        "join sample using (row)), "
        f"joined as (select row, min(id) id from picked join rules on {matches} group by row) "
        "select count(*), count(joined.id), "
        "count(*) filter (where joined.id is distinct from picked.rule) "
        "from picked left join joined using (row)"
    ).fetchone()
    assert different is not None
    rows, matched, wrong = different
    assert (rows, wrong) == (JOINED_FLOWS, 0) and matched > rows // 2


def die_once(marker: str) -> None:
    """Ends this process the first time that it is called with a marker."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os._exit(1)


class MortalLookup(classyard.spark._Lookup):
    """A worker of Spark that dies once, after its second batch."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.marker = os.environ["CLASSYARD_MARKER"]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(super().__call__(batches)):
            if number == 2:
                die_once(self.marker)
            yield batch


class MortalClassify(classyard.ray.Classify):
    """An actor of Ray that dies once, after its second batch."""

    def __init__(self, policy: Any, marker: str, **settings: Any) -> None:
        super().__init__(policy, **settings)
        self.marker = marker
        self.batches = 0

    def __call__(self, batch: Any) -> Any:
        self.batches += 1
        if self.batches == 3:
            die_once(self.marker)
        return super().__call__(batch)


class TableCounter(classyard.spark._Lookup):
    """Writes the id of its process and the number of tables built in it into the last column."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in super().__call__(batches):
            text = f"{os.getpid()} {len(classyard._workers._tables)}"
            texts = pyarrow.array([text] * batch.num_rows, pyarrow.string())
            yield batch.set_column(batch.num_columns - 1, batch.schema.names[-1], texts)
