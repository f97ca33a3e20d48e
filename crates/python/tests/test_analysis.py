"""lint, diff and query, compared with lookups of all ports."""

from __future__ import annotations

import random

import pytest

import classyard


def port_policy(rng: random.Random, rules: int) -> classyard.Policy:
    """Rules over 64 ports, of which the last matches all others."""
    lines = []
    for _ in range(rules):
        low = rng.randrange(64)
        high = min(63, low + rng.randrange(16))
        lines.append(f"{rng.choice(['permit', 'deny'])} dport={low}-{high}")
    return classyard.Policy.from_rules("ipv4-5tuple", lines + ["deny"])


def winners(policy: classyard.Policy) -> classyard.Result:
    return classyard.Table(policy).classify(dport=list(range(65)))


def test_dead_rules_decide_no_port() -> None:
    rng = random.Random(1)
    found_dead = 0
    for _ in range(30):
        policy = port_policy(rng, 12)
        lint = classyard.lint(policy)
        dead = {finding.rule.id for finding in lint.findings if finding.kind == "dead"}
        assert not lint.undecided
        assert dead == set(policy.ids) - set(winners(policy).rule.tolist())
        found_dead += len(dead)
    assert found_dead > 10


def test_differences_are_all_differences() -> None:
    rng = random.Random(2)
    for _ in range(30):
        first, second = port_policy(rng, 5), port_policy(rng, 5)
        ports = [a != b for a, b in zip(winners(first).actions(), winners(second).actions())]
        diff = classyard.diff(first, second)
        assert diff.equivalent == (not any(ports))
        share = sum(difference.share for difference in diff.differences) * 65536
        assert round(share) == sum(ports)
        for difference in diff.differences:
            assert ports[int(difference.header["dport"])]
            assert difference.first is not None and difference.second is not None
    assert classyard.diff(first, first).equivalent is True


def test_answers_have_the_shares_of_their_rules() -> None:
    rng = random.Random(3)
    policy = port_policy(rng, 10)
    rules = winners(policy).rule.tolist()[:64]
    query = classyard.query(policy, "dport=0-63")
    assert not query.undecided
    shares = {answer.rule.id: round(answer.share * 64) for answer in query.answers if answer.rule}
    assert shares == {rule: rules.count(rule) for rule in rules}


def test_refusals() -> None:
    first = classyard.Policy.from_rules("ipv4-5tuple", ["deny"])
    second = classyard.Policy.from_rules("ipv6-5tuple", ["deny"])
    with pytest.raises(classyard.Error, match="ipv4-5tuple.*ipv6-5tuple"):
        classyard.diff(first, second)
    rated = classyard.Policy.parse(
        "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m limit --limit 3/min -j DROP\nCOMMIT\n"
    )
    with pytest.raises(classyard.Error, match="conditions that are not modelled"):
        classyard.diff(rated, rated)
    with pytest.raises(classyard.ParseError, match="<match>:1"):
        classyard.query(first, "dport=http")
