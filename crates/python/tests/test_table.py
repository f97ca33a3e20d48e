"""Rules that change while other threads look up headers."""

from __future__ import annotations

import random
import threading

import numpy
import pytest

import classyard
from oracle import Oracle, random_headers, random_oracle, random_rule, rules_of
from test_classify import arrow


def test_updates_agree_with_the_oracle() -> None:
    rng = random.Random(1)
    oracle = random_oracle(2, rules=40)
    table = classyard.Table(oracle.policy())
    headers = random_headers(3, 200)
    batch = arrow(headers)
    for version in range(1, 40):
        ids = list(oracle.rules)
        removed = rng.sample(ids, 2)
        modified = [random_rule(rng, id) for id in rng.sample([i for i in ids if i not in removed], 3)]
        inserted = [random_rule(rng, 1000 + version * 2 + offset) for offset in range(2)]
        update = table.apply(
            insert=[rule.line() for rule in inserted],
            remove=removed,
            modify=[rule.line() for rule in modified],
        )
        assert update.version == version == table.version
        assert update.inserted == [rule.id for rule in inserted]
        for id in removed:
            del oracle.rules[id]
        oracle.rules.update({rule.id: rule for rule in modified + inserted})
        result = table.classify(batch)
        assert rules_of(result) == oracle.expected(headers)
        assert result.version == version
        assert len(table) == len(oracle.rules)
    # The rules of the table as a policy.
    policy = table.policy()
    assert sorted(policy.ids) == sorted(oracle.rules)
    assert rules_of(classyard.Table(policy).classify(batch)) == oracle.expected(headers)


def test_a_refused_transaction_changes_nothing() -> None:
    oracle = random_oracle(4, rules=20)
    table = classyard.Table(oracle.policy())
    headers = random_headers(5, 100)
    before = rules_of(table.classify(arrow(headers)))
    good = "permit priority=1000 id=5000"
    for change, place in [
        ({"insert": [good, "permit priority=7 id=0"]}, ("insert", 1)),
        ({"insert": [good], "remove": [0, 1]}, ("remove", 1)),
        ({"insert": [good], "modify": ["permit priority=7 id=77777"]}, ("modify", 0)),
        ({"insert": [good], "modify": ["permit priority=7"]}, ("modify", 0)),
        ({"insert": [good, "# no rule"]}, ("insert", 1)),
        ({"insert": [good, "permit priority=1\ndeny priority=2"]}, ("insert", 1)),
    ]:
        with pytest.raises(classyard.UpdateError) as caught:
            table.apply(**change)  # type: ignore[arg-type]
        assert (caught.value.change, caught.value.index) == place
        assert table.version == 0 and len(table) == 20
        assert rules_of(table.classify(arrow(headers))) == before


def test_errors_of_lines_name_line_and_column() -> None:
    table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["deny"]))
    with pytest.raises(classyard.ParseError) as caught:
        table.apply(insert=["permit priority=1", "permit dport=http priority=2"])
    error = caught.value
    assert (error.file, error.line, error.column) == ("<insert>", 2, 14)
    assert "http" in (error.found or "")
    with pytest.raises(classyard.ParseError) as caught:
        table.apply(insert=["permit dport=80"])
    assert caught.value.line == 1
    assert "priority" in str(caught.value)
    assert len(table) == 1


def test_free_ids_and_lists_of_ports() -> None:
    table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["deny"]))
    update = table.apply(insert=["permit dport=80,443 priority=9 name=web", "log priority=3 id=50"])
    assert update.inserted == [51, 52, 50]
    assert table.rule(51).name == "web"
    assert table.apply(insert=["log priority=4"]).inserted == [53]
    assert table.classify_one(dport=443).rule == 52
    assert "new" not in table.actions
    table.apply(insert=["new priority=99"])
    assert table.classify_one(dport=443).action == "new"
    assert table.actions[-1] == "new"
    with pytest.raises(KeyError):
        table.rule(7)


def test_a_new_rule_may_need_a_column() -> None:
    table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=23"]))
    assert table.classify_one(dport=23).rule == 0
    table.apply(insert=["permit proto=udp priority=9"])
    with pytest.raises(classyard.ColumnError, match="field `proto`"):
        table.classify_one(dport=23)


def test_lines_of_verdicts() -> None:
    table = classyard.Table(classyard.Policy.parse("schema ipv4-5tuple\n\npermit dport=80\ndeny\n"))
    assert table.classify_one(dport=80).line == 3
    assert table.classify_one(dport=81).line == 4
    table.apply(modify=["log id=0 priority=2 dport=80"])
    verdict = table.classify_one(dport=80)
    assert (verdict.rule, verdict.action, verdict.line, verdict.version) == (0, "log", None, 1)


def test_explain_lists_the_rules_that_the_winner_beats() -> None:
    oracle = random_oracle(6)
    table = classyard.Table(oracle.policy())
    for header in random_headers(7, 100):
        matching = [rule for rule in oracle.rules.values() if rule.matches(header)]
        matching.sort(key=lambda rule: (-rule.priority, rule.id))
        explanation = table.explain(**vars(header))
        winner = [explanation.winner] if explanation.winner else []
        assert [rule.id for rule in winner + explanation.beaten] == [rule.id for rule in matching]
        assert explanation.verdict.rule == (matching[0].id if matching else None)
        for rule, expected in zip(winner + explanation.beaten, matching):
            assert (rule.priority, rule.action) == (expected.priority, expected.action)


def test_readers_see_whole_transactions() -> None:
    """A writer moves all headers from one rule to another, in one transaction each time."""
    table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", [
        "permit dport=0-99 id=0 priority=1",
        "deny dport=100-199 id=1 priority=1",
    ]))
    ports = numpy.arange(200, dtype="u2").repeat(50)
    stop = threading.Event()
    problems: list[str] = []
    seen: set[int] = set()

    def read() -> None:
        last = 0
        while not stop.is_set():
            result = table.classify(dport=ports)
            rules = numpy.asarray(result.rule)
            low, high = set(rules[:5000].tolist()), set(rules[5000:].tolist())
            expected = result.version * 2
            if low != {expected} or high != {expected + 1}:
                problems.append(f"version {result.version}: {low} {high}")
            if result.version < last:
                problems.append(f"version {result.version} after {last}")
            if result.actions()[0] != f"low{result.version}" and result.version:
                problems.append(f"version {result.version}: {result.actions()[0]}")
            last = result.version
            seen.add(last)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for version in range(1, 150):
        old = (version - 1) * 2
        table.apply(
            remove=[old, old + 1],
            insert=[
                f'"low{version}" dport=0-99 id={old + 2} priority=1',
                f"deny dport=100-199 id={old + 3} priority=1",
            ],
        )
    stop.set()
    for reader in readers:
        reader.join()
    assert not problems
    assert max(seen) > 0


def test_engines() -> None:
    policy = Oracle().policy()
    assert len(classyard.Table(policy)) == 0
    with pytest.raises(classyard.Error, match="there is no engine `frost`"):
        classyard.Table(policy, engine="frost")
    with pytest.raises(classyard.Error, match="rfc"):
        classyard.Table(policy, engine="rfc")
