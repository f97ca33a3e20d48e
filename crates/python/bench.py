"""Lookups a second: record batches, arrays of numpy, and a plain loop in Python.

    classyard generate --profile acl1 -n 10k -o acl.rules
    python bench.py acl.rules

Headers are random points of random rules. Each number is the median of 9 runs; the plain
loop looks up 200 headers. Before it is timed, each way is compared with the others.
"""

from __future__ import annotations

import argparse
import ipaddress
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow

import classyard

RUNS = 9
PLAIN_HEADERS = 200

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
    for _ in range(count):
        src, dst, sport, dport, proto, _ = rng.choice(rules)
        for name, network in (("src", src), ("dst", dst)):
            low, high = (0, 2**32 - 1) if network is None else (
                int(network.network_address), int(network.broadcast_address))
            columns[name].append(rng.randint(low, high))
        for name, ports in (("sport", sport), ("dport", dport)):
            columns[name].append(rng.randint(*(ports or (0, 65535))))
        columns["proto"].append(rng.choice([6, 17]) if proto is None else proto)
    return columns


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


def rate(call: Callable[[], object], rows: int, runs: int = RUNS) -> str:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    rates = sorted(rows / time for time in seconds)
    return f"{statistics.median(rates) / 1e6:10.4f} M/s ({rates[0] / 1e6:.4f} to {rates[-1] / 1e6:.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rules", help="rules over IPv4 five-tuples")
    parser.add_argument("--headers", type=int, default=1_000_000)
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

    expected = plain(rules, columns, PLAIN_HEADERS)
    from_arrays = numpy.asarray(table.classify(**arrays).rule)
    assert from_arrays[:PLAIN_HEADERS].tolist() == expected
    for data in batch, strings:
        assert (numpy.asarray(table.classify(data).rule) == from_arrays).all()

    print(f"{len(policy)} rules, {rows} headers, {len(set(from_arrays.tolist()))} winners")
    print("Arrow, integers           ", rate(lambda: table.classify(batch), rows))
    print("Arrow, integers, 2 threads", rate(lambda: table.classify(batch, threads=2), rows))
    print("Arrow, addresses as texts ", rate(lambda: table.classify(strings), rows))
    print("numpy                     ", rate(lambda: table.classify(**arrays), rows))
    print("plain Python              ", rate(lambda: plain(rules, columns, PLAIN_HEADERS), PLAIN_HEADERS, 3))


if __name__ == "__main__":
    main()
