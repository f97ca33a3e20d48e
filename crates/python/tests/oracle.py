"""Random rules and headers, and a plain lookup that is easy to check by eye."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import dataclass, field

import classyard

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PROTOCOLS = {6: "tcp", 17: "udp", 1: "icmp"}


@dataclass
class Header:
    """A header, in which None is a null."""

    src: Address | None
    dst: Address | None
    sport: int | None
    dport: int | None
    proto: int | None

    def has_null(self) -> bool:
        return None in (self.src, self.dst, self.sport, self.dport, self.proto)


@dataclass
class OracleRule:
    """A rule; None matches everything."""

    id: int
    priority: int
    action: str
    src: Network | None = None
    dst: Network | None = None
    dport: tuple[int, int] | None = None
    proto: int | None = None

    def line(self) -> str:
        words = [self.action]
        if self.src is not None:
            words.append(f"src={self.src}")
        if self.dst is not None:
            words.append(f"dst={self.dst}")
        if self.dport is not None:
            words.append("dport={}-{}".format(*self.dport))
        if self.proto is not None:
            words.append(f"proto={self.proto}")
        words += [f"id={self.id}", f"priority={self.priority}"]
        return " ".join(words)

    def matches(self, header: Header) -> bool:
        def is_in(address: Address | None, network: Network | None) -> bool:
            return network is None or (address is not None and address in network)

        return (
            is_in(header.src, self.src)
            and is_in(header.dst, self.dst)
            and (self.dport is None or self.dport[0] <= (header.dport or 0) <= self.dport[1])
            and self.proto in (None, header.proto)
        )


@dataclass
class Oracle:
    """Rules by id, looked up one after the other."""

    rules: dict[int, OracleRule] = field(default_factory=dict)

    def winner(self, header: Header) -> OracleRule | None:
        if header.has_null():
            return None
        matching = [rule for rule in self.rules.values() if rule.matches(header)]
        return min(matching, key=lambda rule: (-rule.priority, rule.id), default=None)

    def expected(self, headers: list[Header]) -> list[int | None]:
        winners = [self.winner(header) for header in headers]
        return [None if winner is None else winner.id for winner in winners]

    def lines(self) -> list[str]:
        return [rule.line() for rule in self.rules.values()]

    def policy(self, schema: str = "dual-5tuple") -> classyard.Policy:
        return classyard.Policy.from_rules(schema, self.lines())


def random_address(rng: random.Random, version: int) -> Address:
    host = rng.randrange(64)
    if version == 4:
        return ipaddress.IPv4Address(0x0A000000 | host)
    return ipaddress.IPv6Address((0x20010DB8 << 96) | host)


def random_rule(rng: random.Random, id: int, versions: tuple[int, ...] = (4, 6)) -> OracleRule:
    rule = OracleRule(id, rng.randrange(40), rng.choice(["permit", "deny", "log"]))
    version = rng.choice(versions)

    def network() -> Network:
        address = random_address(rng, version)
        prefix = (32 if version == 4 else 128) - rng.randrange(6)
        return ipaddress.ip_network(f"{address}/{prefix}", strict=False)

    if rng.random() < 0.7:
        rule.src = network()
    if rng.random() < 0.7:
        rule.dst = network()
    if rng.random() < 0.5:
        low = rng.randrange(100)
        rule.dport = (low, low + rng.randrange(20))
    if rng.random() < 0.5:
        rule.proto = rng.choice(list(PROTOCOLS))
    return rule


def random_oracle(seed: int, rules: int = 80, versions: tuple[int, ...] = (4, 6)) -> Oracle:
    rng = random.Random(seed)
    return Oracle({id: random_rule(rng, id, versions) for id in range(0, rules * 3, 3)})


def random_headers(
    seed: int, count: int, versions: tuple[int, ...] = (4, 6), nulls: float = 0.0
) -> list[Header]:
    rng = random.Random(seed)
    headers = []
    for _ in range(count):
        version = rng.choice(versions)
        header = Header(
            random_address(rng, version),
            random_address(rng, version),
            rng.randrange(65536),
            rng.randrange(100),
            rng.choice(list(PROTOCOLS)),
        )
        for name in ("src", "dst", "sport", "dport", "proto"):
            if rng.random() < nulls:
                setattr(header, name, None)
        headers.append(header)
    return headers


def rules_of(result: classyard.Result) -> list[int | None]:
    """The winners of a result, with None in rows without one."""
    return [None if rule == classyard.NO_RULE else rule for rule in result.rule.tolist()]
