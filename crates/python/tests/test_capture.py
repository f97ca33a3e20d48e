"""Captures as Arrow data."""

from __future__ import annotations

import csv
import ipaddress
from pathlib import Path

import polars
import pyarrow
import pytest

import classyard

FOLDER = Path(__file__).parents[3] / "testdata" / "capture"
PROTOCOLS_WITH_PORTS = (6, 17, 132)


def test_rows_are_what_tshark_reads() -> None:
    with (FOLDER / "office.headers.csv").open() as file:
        expected = list(csv.DictReader(file))
    capture = classyard.Capture.read(FOLDER / "office.pcap")
    assert len(capture) == len(expected) == 1988
    names = ["time", "length", "src", "dst", "sport", "dport", "proto"]
    assert capture.columns == names
    rows = pyarrow.record_batch(capture).to_pylist()
    headers = 0
    for row, header in zip(rows, expected, strict=True):
        if row["proto"] is None:
            assert all(row[name] is None for name in names[2:])
            continue
        headers += 1
        assert header["l3"] in ("ipv4", "ipv6")
        for name in ("src", "dst"):
            assert ipaddress.ip_address(row[name]) == ipaddress.ip_address(header[name])
        assert row["proto"] == int(header["proto"])
        if row["proto"] in PROTOCOLS_WITH_PORTS and header["sport"]:
            assert (row["sport"], row["dport"]) == (int(header["sport"]), int(header["dport"]))
    assert headers > 1850
    assert "61 packets have no header: arp" in capture.notes
    assert len(rows) - headers == sum(int(note.split()[0]) for note in capture.notes)


def test_both_formats_of_files_have_the_same_packets() -> None:
    pcap = polars.DataFrame(classyard.Capture.read(FOLDER / "office.pcap"))
    pcapng = polars.DataFrame(classyard.Capture.read(FOLDER / "office.pcapng.gz"))
    assert pcap.drop("time").equals(pcapng.drop("time"))
    assert pcap["time"].dtype == polars.Datetime("ns", "UTC")
    distance = (pcap["time"] - pcapng["time"]).dt.total_microseconds().abs().max()
    assert distance == 0, "one file has microseconds, the other nanoseconds"


def test_packets_are_looked_up_as_their_headers() -> None:
    policy = classyard.Policy.read(FOLDER / "office.rules")
    table = classyard.Table(policy)
    capture = classyard.Capture.read(FOLDER / "office.pcap")
    actions = table.classify(capture).actions()
    rows = pyarrow.record_batch(capture).to_pylist()
    assert len(set(actions)) > 2
    for row, action in list(zip(rows, actions, strict=True))[::11]:
        if row["proto"] is None:
            assert action is None
            continue
        header = {name: row[name] for name in ("sport", "dport", "proto")}
        addresses = {name: str(ipaddress.ip_address(row[name])) for name in ("src", "dst")}
        assert table.classify_one(**header, **addresses).action == action


@pytest.mark.parametrize(
    "schema",
    ["ipv4-5tuple", "ipv6-5tuple", "dual-5tuple", "acl", "acl-ipv4", "acl-ipv6", "openflow15"],
)
def test_every_schema_has_columns_for_its_rules(schema: str) -> None:
    policy = classyard.Policy.from_rules(schema, ["permit"])
    capture = classyard.Capture.read(FOLDER / "office.pcap", schema=schema)
    missing = set(policy.fields) - set(capture.columns)
    assert missing <= {"in", "out", "list", "condition"}, "packets do not tell these"
    assert set(capture.columns) - set(policy.fields) == {"time", "length"}
    result = classyard.Table(policy).classify(capture, columns={"proto": "proto"})
    assert set(result.actions()) - {None} == {"permit"}


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("permit any\n")
    with pytest.raises(classyard.ParseError, match="capture"):
        classyard.Capture.read(path)
    with pytest.raises(classyard.ParseError, match="No such file"):
        classyard.Capture.read(tmp_path / "nothing")
    with pytest.raises(ValueError, match="unknown schema `ipx`"):
        classyard.Capture.read(FOLDER / "office.pcap", schema="ipx")


def test_damage_is_reported_and_packets_before_it_are_read(tmp_path: Path) -> None:
    whole = (FOLDER / "office.pcap").read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[: len(whole) // 2])
    capture = classyard.Capture.read(path)
    assert 100 < len(capture) < 1988
    assert any("packet" in note and "header:" not in note for note in capture.notes), capture.notes
