"""Every way to pass headers gives the winners of the oracle."""

from __future__ import annotations

import array
import ipaddress
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

import classyard
from oracle import PROTOCOLS, Header, random_headers, random_oracle, rules_of

ORACLE4 = random_oracle(1, versions=(4,))
ORACLE = random_oracle(2)


def text(value: object) -> str | None:
    return None if value is None else str(value)


def packed(value: Any) -> bytes | None:
    return None if value is None else bytes(value.packed)


def integer(value: Any) -> int | None:
    return None if value is None else int(value)


def columns(headers: list[Header], address: Any = text, proto: Any = None) -> dict[str, Any]:
    return {
        "src": [address(header.src) for header in headers],
        "dst": [address(header.dst) for header in headers],
        "sport": [header.sport for header in headers],
        "dport": [header.dport for header in headers],
        "proto": [proto(header.proto) if proto else header.proto for header in headers],
    }


def arrow(headers: list[Header], address: Any = text, type: Any = None) -> pyarrow.Table:
    data = columns(headers, address)
    types = [type or pyarrow.string()] * 2 + [pyarrow.uint16()] * 2 + [pyarrow.uint8()]
    arrays = [pyarrow.array(data[name], kind) for name, kind in zip(data, types)]
    return pyarrow.table(dict(zip(data, arrays)))


@pytest.fixture(scope="module")
def table() -> classyard.Table:
    return classyard.Table(ORACLE.policy())


@pytest.fixture(scope="module")
def table4() -> classyard.Table:
    return classyard.Table(ORACLE4.policy("ipv4-5tuple"))


@pytest.mark.parametrize("nulls", [0.0, 0.1])
@pytest.mark.parametrize("engine", ["forest", "linear", "tuplemerge"])
def test_pyarrow(engine: str, nulls: float) -> None:
    table = classyard.Table(ORACLE.policy(), engine=engine)
    headers = random_headers(3, 500, nulls=nulls)
    expected = ORACLE.expected(headers)
    views = pyarrow.string_view(), pyarrow.large_string(), pyarrow.string()
    for type in views:
        assert rules_of(table.classify(arrow(headers, type=type))) == expected
    for type in pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view():
        assert rules_of(table.classify(arrow(headers, packed, type))) == expected
    batch = arrow(headers).to_batches()[0]
    assert rules_of(table.classify(batch)) == expected
    assert rules_of(table.classify(batch.slice(100, 50))) == expected[100:150]
    # Chunks of different lengths.
    chunks = pyarrow.Table.from_batches([batch.slice(0, 7), batch.slice(7, 0), batch.slice(7)])
    assert rules_of(table.classify(chunks)) == expected
    dictionaries = arrow(headers)
    for index, name in enumerate(["src", "dst"]):
        column = dictionaries[name].dictionary_encode()
        dictionaries = dictionaries.set_column(index, name, column)
    assert rules_of(table.classify(dictionaries)) == expected


def test_polars_pandas_and_duckdb(table: classyard.Table) -> None:
    headers = random_headers(4, 500, nulls=0.05)
    expected = ORACLE.expected(headers)
    frame = polars.DataFrame(columns(headers))
    assert rules_of(table.classify(frame)) == expected
    categories = frame.with_columns(polars.col("src", "dst").cast(polars.Categorical))
    assert rules_of(table.classify(categories)) == expected
    without_nulls = [header for header in headers if not header.has_null()]
    pandas_frame = pandas.DataFrame(columns(without_nulls))
    assert rules_of(table.classify(pandas_frame)) == ORACLE.expected(without_nulls)
    with_nulls = pandas.DataFrame(columns(headers))
    with pytest.raises(classyard.ColumnError, match="Float64"):
        table.classify(with_nulls)
    assert rules_of(table.classify(with_nulls.convert_dtypes())) == expected
    relation = duckdb.sql("select * from frame")
    assert rules_of(table.classify(relation)) == expected
    result = table.classify(relation)
    found = duckdb.sql("select count(*) from result where matched").fetchall()
    assert found == [(sum(rule is not None for rule in expected),)]


def test_integers_of_numpy_of_every_type(table4: classyard.Table) -> None:
    headers = random_headers(5, 400, versions=(4,))
    expected = ORACLE4.expected(headers)
    data = columns(headers, integer)
    for address in "u4", "u8", "i8", "i4", ">u4", ">i8":
        for port in "u2", "i4", "u8", ">u2":
            arrays: dict[str, Any] = {
                "src": numpy.array(data["src"], dtype=address),
                "dst": numpy.array(data["dst"], dtype=address),
                "sport": numpy.array(data["sport"], dtype="u2"),
                "dport": numpy.array(data["dport"], dtype=port),
                "proto": numpy.array(data["proto"], dtype="u1"),
            }
            assert rules_of(table4.classify(**arrays)) == expected
            strided: dict[str, Any] = {name: numpy.repeat(array, 2)[::2] for name, array in arrays.items()}
            assert not strided["src"].flags.c_contiguous
            assert rules_of(table4.classify(**strided)) == expected
            backwards: dict[str, Any] = {name: array_[::-1] for name, array_ in arrays.items()}
            assert rules_of(table4.classify(**backwards)) == expected[::-1]


def test_bytes_and_texts_of_numpy() -> None:
    for versions, schema, size in [((4,), "ipv4-5tuple", 4), ((6,), "ipv6-5tuple", 16)]:
        oracle = random_oracle(6, versions=versions)
        table = classyard.Table(oracle.policy(schema))
        headers = random_headers(7, 300, versions=versions)
        expected = oracle.expected(headers)
        data = columns(headers, packed)
        others: dict[str, Any] = {name: numpy.array(data[name]) for name in ("sport", "dport", "proto")}
        flat = {name: b"".join(data[name]) for name in ("src", "dst")}
        rows: dict[str, Any] = {
            name: numpy.frombuffer(value, "u1").reshape(-1, size) for name, value in flat.items()
        }
        assert rules_of(table.classify(**rows, **others)) == expected
        strided: dict[str, Any] = {name: numpy.repeat(array, 2, axis=0)[::2] for name, array in rows.items()}
        assert rules_of(table.classify(**strided, **others)) == expected
        voids: dict[str, Any] = {name: numpy.frombuffer(value, f"V{size}") for name, value in flat.items()}
        assert rules_of(table.classify(**voids, **others)) == expected
        texts: dict[str, Any] = {name: numpy.array(columns(headers)[name]) for name in ("src", "dst")}
        assert rules_of(table.classify(**texts, **others)) == expected


def test_lists_and_single_values(table: classyard.Table) -> None:
    headers = random_headers(8, 300, nulls=0.1)
    expected = ORACLE.expected(headers)

    def same(value: Any) -> Any:
        return value

    for address in text, same, packed:
        data = columns(headers, address, proto=lambda proto: PROTOCOLS.get(proto))
        assert rules_of(table.classify(**data)) == expected
    series: dict[str, Any] = {name: polars.Series(values) for name, values in columns(headers).items()}
    assert rules_of(table.classify(**series)) == expected
    arrays: dict[str, Any] = {name: pyarrow.array(values) for name, values in columns(headers).items()}
    assert rules_of(table.classify(**arrays)) == expected
    for header in headers:
        if header.has_null():
            continue
        for row in [columns([header]), columns([header], same)]:
            verdict = table.classify_one(**{name: value[0] for name, value in row.items()})
            winner = ORACLE.winner(header)
            assert verdict.rule == (winner and winner.id)
            assert verdict.action == (winner and winner.action)
            assert bool(verdict) == (winner is not None)
    # One value for all rows.
    constant = [Header(h.src, h.dst, 1000, 80, 6) for h in headers]
    data = {name: values for name, values in columns(headers).items() if name in ("src", "dst")}
    result = table.classify(**data, sport=numpy.uint16(1000), dport=80, proto="TCP")
    assert rules_of(result) == ORACLE.expected(constant)


def test_result_for_numpy_and_arrow(table: classyard.Table) -> None:
    headers = random_headers(9, 300, nulls=0.1)
    expected = ORACLE.expected(headers)
    actions = [None if rule is None else ORACLE.rules[rule].action for rule in expected]
    result = table.classify(arrow(headers))
    assert len(result) == 300
    rules = numpy.asarray(result.rule)
    assert rules.dtype == numpy.uint32 and not rules.flags.writeable
    # Both arrays have the memory of the result.
    assert rules.__array_interface__["data"] == numpy.asarray(result.rule).__array_interface__["data"]
    assert numpy.asarray(result.matched).tolist() == [rule is not None for rule in expected]
    assert numpy.asarray(result.has_header).tolist() == [not h.has_null() for h in headers]
    names = result.action_names
    ids = [names.index(action) if action else classyard.NO_RULE for action in actions]
    assert numpy.asarray(result.action_ids).tolist() == ids
    assert result.actions() == actions
    matched = [None if h.has_null() else rule is not None for h, rule in zip(headers, expected)]
    wanted = {"matched": matched, "rule": expected, "action": actions}
    assert pyarrow.table(result).to_pydict() == wanted
    assert pyarrow.record_batch(result).to_pydict() == wanted
    assert polars.DataFrame(result).to_dict(as_series=False) == wanted
    assert result.rule[0] == rules[0] and result.rule[-1] == rules[-1]
    with pytest.raises(IndexError):
        result.rule[300]
    with pytest.raises(TypeError, match="read-only"):
        memoryview(result.rule)[0] = 1


def test_threads_find_the_same_winners(table: classyard.Table) -> None:
    headers = random_headers(10, 300, nulls=0.02) * 200
    batch = arrow(headers)
    one = numpy.asarray(table.classify(batch).rule)
    for threads in 2, 3, 64:
        several = numpy.asarray(table.classify(batch, threads=threads).rule)
        assert (several == one).all()
    with pytest.raises(ValueError, match="at least 1"):
        table.classify(batch, threads=0)


def test_columns_presets_and_constants() -> None:
    table = classyard.Table(classyard.Policy.from_rules("acl", [
        "permit proto=tcp dport=443 state=new",
        "permit proto=icmp",
        "deny dst=10.0.0.0/8",
    ]))
    flows = pyarrow.table({
        "srcaddr": ["192.0.2.1", "2001:db8::1", "-", "192.0.2.1"],
        "dstaddr": ["10.0.0.1", "2001:db8::2", "-", "10.0.0.1"],
        "srcport": ["1", "2", "-", "0"],
        "dstport": ["443", "443", "-", "0"],
        "protocol": ["6", "6", "-", "1"],
    })
    with pytest.raises(classyard.ColumnError, match="field `state`: no column"):
        table.classify(flows, columns="vpc")
    result = table.classify(flows, columns="vpc", constants={"state": "new"})
    assert result.actions() == ["permit", "permit", None, "permit"]
    with_state = flows.append_column("st", pyarrow.array(["established"] * 4))
    result = table.classify(with_state, preset="vpc", columns={"state": "st"})
    assert result.actions() == ["deny", None, None, "permit"]
    mapped = {"src": "srcaddr", "dst": ["none", "dstaddr"], "dport": "dstport", "proto": "protocol"}
    numbers = flows.slice(0, 2)
    result = table.classify(numbers, columns=mapped, constants={"state": 0})
    assert result.actions() == ["permit", "permit"]
    assert "vpc" in classyard.PRESETS
    with pytest.raises(ValueError, match="unknown preset `pcap`; expected one of fields, vpc"):
        table.classify(flows, columns="pcap")


@pytest.mark.parametrize(
    "change, column, row, message",
    [
        ({"dport": [1, -5]}, "dport", 1, "negative number -5"),
        ({"dport": numpy.array([70000, 1])}, "dport", 0, "70000 does not fit in the 16 bits"),
        ({"dport": [1, 2**70]}, "dport", 1, "does not fit"),
        ({"dport": [1.5, 2.0]}, "dport", 0, "1.5 of type float"),
        ({"dport": numpy.array([1.5, 2.0])}, "dport", None, "format `d`"),
        ({"dport": [1, 2, 3]}, "dport", None, "has 3 values"),
        ({"dport": None}, "dport", None, "is None"),
        ({"dport": pyarrow.array([1.0, 2.0])}, "dport", None, "Float64"),
        ({"src": ["10.0.0.1", "10.0.0.1.2"]}, "src", 1, "`10.0.0.1.2`"),
        ({"src": ["10.0.0.1", "::1"]}, "dst", 1, "IPv6 address, and `dst` has an IPv4"),
        ({"proto": "tpc"}, None, None, "the field `proto` cannot have the constant `tpc`"),
        ({"prot": [6, 6]}, "dport", None, "prot"),
    ],
)
def test_bad_columns(change: Any, column: str | None, row: int | None, message: str) -> None:
    table = classyard.Table(classyard.Policy.from_rules(
        "dual-5tuple", ["permit dport=80 sport=1-9 proto=6 src=10.0.0.0/8 dst=10.0.0.0/8"]
    ))
    address = numpy.array([0x0A000001] * 2, dtype="u4")
    data: dict[str, Any] = {
        "src": address, "dst": address, "sport": [1, 2], "dport": [80, 80], "proto": [6, 6],
    }
    assert len(table.classify(**data)) == 2
    if "prot" in change:
        # A column with the name of no field is not used.
        del data["dport"]
    with pytest.raises(classyard.ColumnError, match=message.split(",")[0]) as caught:
        table.classify(**(data | change))
    assert message in str(caught.value)
    assert (caught.value.column, caught.value.row) == (column, row)


def test_row_of_an_error_counts_over_chunks(table: classyard.Table) -> None:
    good = arrow(random_headers(11, 10))
    bad = good.slice(0, 1).set_column(0, "src", pyarrow.array(["nowhere"]))
    with pytest.raises(classyard.ColumnError, match="row 10: `nowhere`") as caught:
        table.classify(pyarrow.concat_tables([good, bad]))
    assert caught.value.row == 10


def test_rows_of_another_family_are_null_and_counted(table4: classyard.Table) -> None:
    headers = random_headers(12, 200)
    result = table4.classify(arrow(headers))
    ipv4 = [isinstance(header.src, ipaddress.IPv4Address) for header in headers]
    expected = ORACLE4.expected(headers)
    assert rules_of(result) == [rule if is_ipv4 else None for rule, is_ipv4 in zip(expected, ipv4)]
    assert result.has_header.tolist() == ipv4
    assert result.other_family_rows == ipv4.count(False)
    assert not table4.classify_one(src="::1", dst="::1", sport=0, dport=0, proto=6).has_header


def test_wrong_calls(table: classyard.Table) -> None:
    with pytest.raises(TypeError, match="no batch"):
        table.classify()
    with pytest.raises(TypeError, match="has no Arrow data"):
        table.classify([1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a batch and the columns src"):
        table.classify(arrow([]), src=[1])
    with pytest.raises(ValueError, match="2 headers"):
        table.classify_one(src=["10.0.0.1"] * 2, dst="10.0.0.1", sport=1, dport=1, proto=1)  # type: ignore[arg-type]


def test_empty_batches(table: classyard.Table) -> None:
    assert len(table.classify(arrow([]))) == 0
    assert pyarrow.table(table.classify(arrow([]))).num_rows == 0
    assert len(table.classify(**columns([]))) == 0
    assert numpy.asarray(table.classify(arrow([])).rule).shape == (0,)
    empty: dict[str, Any] = {name: numpy.zeros(0, "u2") for name in columns([])}
    assert len(table.classify(**empty)) == 0
    rows: Any = numpy.zeros((0, 16), "u1")
    assert len(table.classify(**(empty | {"src": rows, "dst": rows}))) == 0


def test_arrays_of_unusual_layout(table: classyard.Table) -> None:
    headers = random_headers(13, 200, versions=(4,))
    expected = ORACLE.expected(headers)
    data = columns(headers, packed)
    others = {name: data[name] for name in ("sport", "dport", "proto")}
    rows = numpy.frombuffer(b"".join(data["src"] + data["dst"]), "u1").reshape(2, -1, 4)
    fortran: dict[str, Any] = {
        name: numpy.asfortranarray(array_) for name, array_ in zip(("src", "dst"), rows)
    }
    assert rules_of(table.classify(**fortran, **others)) == expected
    memory = b"x" + numpy.array(data["dport"], "u2").tobytes()
    unaligned: Any = numpy.frombuffer(memory, "u2", offset=1)
    assert rules_of(table.classify(**fortran, **(others | {"dport": unaligned}))) == expected
    objects: Any = numpy.array(columns(headers)["src"], dtype=object)
    assert rules_of(table.classify(**(fortran | others | {"src": objects}))) == expected
    numbers: Any = array.array("H", data["dport"])
    assert rules_of(table.classify(**(fortran | others | {"dport": numbers}))) == expected
    header = headers[0]
    assert header.src is not None and header.dst is not None
    row: dict[str, Any] = vars(header) | {"src": header.src.packed, "dst": header.dst.packed}
    assert table.classify_one(**row).rule == expected[0]


class Capsules:
    """An object with capsules of Arrow that were made before."""

    def __init__(self, capsules: Any) -> None:
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.capsules


def test_bad_capsules_are_errors(table: classyard.Table) -> None:
    batch = arrow(random_headers(14, 5)).to_batches()[0]
    capsules = Capsules(batch.__arrow_c_array__())
    assert len(table.classify(capsules)) == 5
    with pytest.raises(classyard.Error, match="already used"):
        table.classify(capsules)
    with pytest.raises(ValueError, match="incorrect name"):
        table.classify(Capsules(batch.__arrow_c_array__()[::-1]))
    with pytest.raises(TypeError):
        table.classify(Capsules((1, 2)))
    with pytest.raises(classyard.Error, match="with nulls"):
        table.classify(pyarrow.array([{"src": "10.0.0.1"}, None]))
    with pytest.raises(classyard.Error, match="expected a record batch"):
        table.classify(pyarrow.array([1]))

    def failing() -> Any:
        yield batch
        raise RuntimeError("no more rows")

    stream = pyarrow.RecordBatchReader.from_batches(batch.schema, failing())
    with pytest.raises(classyard.Error, match="no more rows"):
        table.classify(stream)
