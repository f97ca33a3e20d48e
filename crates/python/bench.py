"""Lookups a second: record batches, arrays of numpy, the library for C, a join of DuckDB, and a
plain loop in Python.

    classyard generate --profile acl1 -n 10k -o acl.rules
    cargo build --release -p classyard-capi
    python bench.py acl.rules --library target/release/libclassyard_c.so

Headers are random points of random rules; each is repeated 8 times. Each number is the median
of 9 interleaved runs, of CPU time or, with several threads, of wall time. The join looks up
20,000 headers and the plain loop 200. Before it is timed, each way is compared with the others.
"""

from __future__ import annotations

import argparse
import ctypes
import ipaddress
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy
import pyarrow

import classyard

RUNS = 9
REPEATS = 8
PLAIN_HEADERS = 200
JOINED_HEADERS = 20_000

Network = ipaddress.IPv4Network
Ports = tuple[int, int]
PlainRule = tuple[Network | None, Network | None, Ports | None, Ports | None, int | None, int]


def plain_rules(policy: classyard.Policy) -> list[PlainRule]:
    """The rules as networks and ranges, best first."""
    protocols = {"tcp": 6, "udp": 17, "icmp": 1}
    rules = []
    for id in policy.ids:
        words = policy.rule(id).text.split()[1:]
        values = dict(word.split("=", 1) for word in words)

        def network(name: str) -> Network | None:
            return Network(values[name]) if name in values else None

        def ports(name: str) -> Ports | None:
            low, _, high = values[name].partition("-") if name in values else ("", "", "")
            return (int(low), int(high or low)) if low else None

        text = values.get("proto")
        if text is not None and "&" in text:
            raise SystemExit(f"rule {id}: a masked protocol; expected a name or a number")
        proto = None if text is None else protocols.get(text) or int(text, 0)
        rules.append((network("src"), network("dst"), ports("sport"), ports("dport"), proto, id))
    return rules


def headers(rules: list[PlainRule], count: int, seed: int) -> dict[str, list[int]]:
    rng = random.Random(seed)
    columns: dict[str, list[int]] = {name: [] for name in ("src", "dst", "sport", "dport", "proto")}
    for _ in range(-(-count // REPEATS)):
        src, dst, sport, dport, proto, _ = rng.choice(rules)
        for name, network in (("src", src), ("dst", dst)):
            low, high = (0, 2**32 - 1) if network is None else (
                int(network.network_address), int(network.broadcast_address))
            columns[name].append(rng.randint(low, high))
        for name, ports in (("sport", sport), ("dport", dport)):
            columns[name].append(rng.randint(*(ports or (0, 65535))))
        columns["proto"].append(rng.choice([6, 17]) if proto is None else proto)
    return {
        name: [value for value in values for _ in range(REPEATS)][:count]
        for name, values in columns.items()
    }


def plain(rules: list[PlainRule], columns: dict[str, list[int]], rows: int) -> list[int]:
    winners = []
    for row in range(rows):
        src = ipaddress.IPv4Address(columns["src"][row])
        dst = ipaddress.IPv4Address(columns["dst"][row])
        sport, dport, proto = (columns[name][row] for name in ("sport", "dport", "proto"))
        for rule in rules:
            if (
                (rule[0] is None or src in rule[0])
                and (rule[1] is None or dst in rule[1])
                and (rule[2] is None or rule[2][0] <= sport <= rule[2][1])
                and (rule[3] is None or rule[3][0] <= dport <= rule[3][1])
                and rule[4] in (None, proto)
            ):
                winners.append(rule[5])
                break
        else:
            winners.append(classyard.NO_RULE)
    return winners


class Column(ctypes.Structure):
    """`cy_column` of `classyard.h`."""

    _fields_ = [("kind", ctypes.c_uint32), ("size", ctypes.c_uint32), ("values", ctypes.c_void_p)]


class Output(ctypes.Structure):
    """`cy_output` of `classyard.h`."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("rules", "actions", "cookies")]


def with_library(library: str, rules: str, arrays: dict[str, Any]) -> Callable[[bool], Any]:
    """Returns a lookup through the library for C, with or without actions."""
    functions = ctypes.CDLL(library)
    policy, table, reader = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()

    def check(status: int) -> None:
        if status != 0:
            functions.cy_last_error.restype = ctypes.c_char_p
            raise SystemExit(functions.cy_last_error().decode())

    check(functions.cy_policy_read(rules.encode(), None, None, ctypes.byref(policy)))
    check(functions.cy_table_new(policy, None, ctypes.byref(table)))
    check(functions.cy_reader_new(table, ctypes.byref(reader)))
    kinds = {1: 0, 2: 1, 4: 2}
    columns = [Column(kinds[array.itemsize], 0, array.ctypes.data) for array in arrays.values()]
    c_columns = (Column * len(columns))(*columns)
    rows = len(arrays["src"])
    ids = numpy.zeros(rows, dtype="u4")
    actions = numpy.zeros(rows, dtype="u4")

    def classify(with_actions: bool) -> Any:
        output = Output(ids.ctypes.data, actions.ctypes.data if with_actions else None, None)
        count, size = ctypes.c_size_t(len(columns)), ctypes.c_size_t(rows)
        check(functions.cy_classify_columns(reader, 0, c_columns, count, size, ctypes.byref(output)))
        return ids

    return classify


def join(rules: list[PlainRule], arrays: dict[str, Any]) -> Callable[[], list[int]]:
    """Returns a lookup of the first headers by a join on ranges."""
    database = duckdb.connect(config={"threads": 1})
    ranges = []
    for place, (src, dst, sport, dport, proto, id) in enumerate(rules):
        row = [id, place]
        for network in (src, dst):
            row += [int(network[0]), int(network[-1])] if network else [0, 2**32 - 1]
        for ports in (sport, dport):
            row += list(ports or (0, 65535))
        ranges.append(row + ([0, 255] if proto is None else [proto, proto]))
    names = [f"{field}_{end}" for field in arrays for end in ("low", "high")]
    table = numpy.array(ranges, dtype="i8").T
    rule_table = pyarrow.table(dict(zip(["id", "place", *names], table)))
    first = {name: array[:JOINED_HEADERS] for name, array in arrays.items()}
    header_table = pyarrow.table({"row": numpy.arange(len(first["src"])), **first})
    database.register("rules", rule_table)
    database.register("headers", header_table)
    matches = " and ".join(f"{name} between {name}_low and {name}_high" for name in arrays)
    query = (
        f"select row, arg_min(id, place) from headers join rules on {matches} "
        "group by row order by row"
    )

    def classify() -> list[int]:
        winners = [classyard.NO_RULE] * len(first["src"])
        for row, id in database.execute(query).fetchall():
            winners[row] = id
        return winners

    return classify


def measure(ways: dict[str, tuple[Callable[[], object], int, int]]) -> None:
    """Measures ways to look up, each with its number of headers and of runs."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(RUNS):
        for name, (call, _, runs) in ways.items():
            if run < runs:
                clock = time.perf_counter if "threads" in name else time.thread_time
                start = clock()
                call()
                seconds[name].append(clock() - start)
    for name, (_, rows, _) in ways.items():
        rates = sorted(rows / time / 1e6 for time in seconds[name])
        print(f"{name:28} {statistics.median(rates):10.4f} M/s ({rates[0]:.4f} to {rates[-1]:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rules", help="rules over IPv4 five-tuples")
    parser.add_argument("--headers", type=int, default=1_000_000)
    parser.add_argument("--library", help="the library for C, to measure it too")
    arguments = parser.parse_args()
    policy = classyard.Policy.read(arguments.rules)
    rules = plain_rules(policy)
    table = classyard.Table(policy)
    rows = arguments.headers
    columns = headers(rules, rows, seed=1)
    dtypes = {"src": "u4", "dst": "u4", "sport": "u2", "dport": "u2", "proto": "u1"}
    arrays: dict[str, Any] = {name: numpy.array(columns[name], dtype=dtypes[name]) for name in columns}
    batch = pyarrow.record_batch(arrays)
    texts = {name: [str(ipaddress.IPv4Address(a)) for a in columns[name]] for name in ("src", "dst")}
    strings = pyarrow.record_batch({**arrays, **texts})
    joined = join(rules, arrays)

    from_arrays = numpy.asarray(table.classify(**arrays).rule)
    assert from_arrays[:PLAIN_HEADERS].tolist() == plain(rules, columns, PLAIN_HEADERS)
    assert from_arrays[:JOINED_HEADERS].tolist() == joined()
    for data in batch, strings:
        assert (numpy.asarray(table.classify(data).rule) == from_arrays).all()
    ways: dict[str, tuple[Callable[[], object], int, int]] = {}
    if arguments.library:
        with_c = with_library(arguments.library, arguments.rules, arrays)
        assert (with_c(True) == from_arrays).all()
        ways["C, columns"] = (lambda: with_c(False), rows, RUNS)
        ways["C, columns and actions"] = (lambda: with_c(True), rows, RUNS)
    ways |= {
        "Arrow, integers": (lambda: table.classify(batch), rows, RUNS),
        "Arrow, integers, 2 threads": (lambda: table.classify(batch, threads=2), rows, RUNS),
        "Arrow, addresses as texts": (lambda: table.classify(strings), rows, RUNS),
        "numpy": (lambda: table.classify(**arrays), rows, RUNS),
        "DuckDB, join on ranges": (joined, JOINED_HEADERS, 3),
        "plain Python": (lambda: plain(rules, columns, PLAIN_HEADERS), PLAIN_HEADERS, 3),
    }

    print(f"{len(policy)} rules, {rows} headers, {len(set(from_arrays.tolist()))} winners")
    measure(ways)


if __name__ == "__main__":
    main()
