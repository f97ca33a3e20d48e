"""Reading, writing and pickling of policies."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

import classyard
from oracle import random_headers, random_oracle, rules_of
from test_classify import arrow

ASA = """access-list IN extended permit tcp any any eq 80
access-list IN extended deny ip any any
access-list OUT extended permit udp any any eq 53
"""


def test_files_of_several_formats(tmp_path: Path) -> None:
    path = tmp_path / "asa.cfg"
    path.write_text(ASA)
    policy = classyard.Policy.read(path)
    assert (policy.name, policy.lists) == ("acl", ["IN", "OUT"])
    assert policy.rule(policy.ids[-2]).line in (2, 3)
    assert classyard.Policy.read(str(path), list="OUT").lists == ["OUT"]
    assert classyard.Policy.read(path, format="cisco-asa").ids == policy.ids
    packed = tmp_path / "rules.gz"
    packed.write_bytes(gzip.compress(b"schema ipv4-5tuple\ndeny dport=23\n"))
    assert classyard.Policy.read(packed).rule(0).text == "deny dport=23"
    with pytest.raises(classyard.ParseError) as caught:
        classyard.Policy.read(tmp_path / "missing")
    assert caught.value.file.endswith("missing") and caught.value.line is None
    with pytest.raises(ValueError, match="unknown format `pf`; expected one of .*iptables"):
        classyard.Policy.read(path, format="pf")
    with pytest.raises(ValueError, match="unknown schema"):
        classyard.Policy.parse("", schema="ipv5")


def test_problems_of_a_text() -> None:
    lines = ["schema ipv4-5tuple", "permit dport=http", "alow", "deny"]
    with pytest.raises(classyard.ParseError) as caught:
        classyard.Policy.parse("\n".join(lines), source="fw.rules")
    error = caught.value
    assert isinstance(error, classyard.Error)
    assert (error.file, error.line, error.column, error.total) == ("fw.rules", 2, 14, 2)
    assert [problem[:2] for problem in error.problems] == [(2, 14), (3, 1)]
    assert str(error).startswith("fw.rules:2:14: ")
    with pytest.raises(classyard.ParseError, match="of one of the formats"):
        classyard.Policy.parse("what is this")


def test_texts_of_rules() -> None:
    policy = classyard.Policy.from_rules("dual-5tuple", ["permit dport=80 name=web", "deny src=::/0"])
    assert len(policy) == 2
    assert policy.fields == ["src", "dst", "sport", "dport", "proto"]
    assert policy.schemas == ["ipv4-5tuple", "ipv6-5tuple"]
    rule = policy.rule(0)
    assert (rule.id, rule.priority, rule.action, rule.name, rule.line) == (0, 2, "permit", "web", 1)
    again = classyard.Policy.parse(policy.to_text())
    assert again.to_text() == policy.to_text()
    assert '"deny"' in policy.to_text("json")
    iptables = classyard.Policy.from_rules("ipv4-5tuple", ["permit proto=tcp dport=80", "deny"])
    assert "--dport 80" in iptables.to_text("iptables")
    with pytest.raises(classyard.Error, match="output:1"):
        classyard.Policy.from_rules("ipv4-5tuple", ["output:1"]).to_text("iptables")
    with pytest.raises(KeyError):
        policy.rule(2)
    with pytest.raises(ValueError, match="several lines"):
        classyard.Policy.from_rules("ipv4-5tuple", ["permit\ndeny"])


def test_pickled_policies_are_equal() -> None:
    policies = [
        random_oracle(1).policy(),
        classyard.Policy.parse(ASA),
        classyard.Policy.from_rules("ipv4-5tuple", ['"b c" name=x', "a dport=1,2", "deny id=9"][:2]),
        classyard.Policy.from_rules("openflow15", ["deny eth_type=0x800"]),
    ]
    for policy in policies:
        copy = pickle.loads(pickle.dumps(policy))
        assert copy.ids == policy.ids
        assert copy.actions == policy.actions
        assert copy.lists == policy.lists and copy.notes == policy.notes
        for id in policy.ids:
            first, second = policy.rule(id), copy.rule(id)
            assert (first.text, first.line, first.priority) == (second.text, second.line, second.priority)
    headers = random_headers(2, 200)
    copy = pickle.loads(pickle.dumps(policies[0]))
    results = [classyard.Table(policy).classify(arrow(headers)) for policy in (policies[0], copy)]
    assert rules_of(results[0]) == rules_of(results[1])
    assert results[0].action_ids.tolist() == results[1].action_ids.tolist()


def test_a_pickled_policy_over_a_schema_file(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'name = "own"\n\n[[field]]\nname = "port"\nwidth = 16\nkind = "range"\n'
    )
    (tmp_path / "own.rules").write_text('schema "own.toml"\npermit port=80-89\ndeny\n')
    policy = classyard.Policy.read(tmp_path / "own.rules")
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.fields == ["port"] and copy.rule(0).text == policy.rule(0).text
    assert classyard.Table(copy).classify(port=[80, 90]).actions() == ["permit", "deny"]
    table = classyard.Table(copy)
    table.apply(insert=["log port=85 priority=9"])
    assert table.classify_one(port=85).action == "log"
