"""Lookups in the worker processes of a cluster: one table a process, results as columns."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._native import Policy, Table

if TYPE_CHECKING:
    from ._native import _Value

    Columns: TypeAlias = str | Mapping[str, str | Sequence[str]]
    Constants: TypeAlias = Mapping[str, _Value]
    Outputs: TypeAlias = Sequence[str] | Mapping[str, str]

OUTPUTS = ("matched", "rule", "action")

# A worker process rarely serves more jobs than this at a time. The table that was not used for
# the longest time is dropped first.
MAX_TABLES = 4

_tables: OrderedDict[str, Table] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class Settings:
    """How rows are looked up. `outputs` has pairs of an output and the name of its column."""

    columns: Columns | None
    constants: Constants | None
    outputs: tuple[tuple[str, str], ...]
    engine: str
    threads: int


def settings(
    columns: Columns | None,
    constants: Constants | None,
    outputs: Outputs,
    engine: str,
    threads: int,
) -> Settings:
    """Returns checked settings. Raises `ValueError` for unknown outputs and equal names."""
    if isinstance(outputs, str):
        raise ValueError(f"outputs: the text {outputs!r}; expected a list: [{outputs!r}]")
    pairs = outputs.items() if isinstance(outputs, Mapping) else [(name, name) for name in outputs]
    known = ", ".join(f"`{name}`" for name in OUTPUTS)
    if not pairs:
        raise ValueError(f"outputs: the list is empty; expected some of {known}")
    for output, _ in pairs:
        if output not in OUTPUTS:
            raise ValueError(f"outputs: there is no output `{output}`; there are {known}")
    for name in repeated(name for _, name in pairs):
        raise ValueError(f"outputs: two columns are named `{name}`; expected different names")
    # Not a view of the caller's dict, which can change before the job starts.
    columns = dict(columns) if isinstance(columns, Mapping) else columns
    constants = None if constants is None else dict(constants)
    return Settings(columns, constants, tuple(pairs), engine, threads)


def repeated(names: Iterable[str]) -> list[str]:
    """Returns the names that occur twice or more."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [name for name, count in counts.items() if count > 1]


def refuse_clashes(settings: Settings, names: Sequence[str], case_sensitive: bool = True) -> None:
    """Raises `ValueError` if a result column has the name of an input column."""
    same = (lambda name: name) if case_sensitive else str.casefold
    inputs = {same(name): name for name in names}
    for output, name in settings.outputs:
        if same(name) in inputs:
            renamed = {o: f"policy_{n}" if same(n) in inputs else n for o, n in settings.outputs}
            raise ValueError(
                f"the data has a column `{inputs[same(name)]}` already, which is also the name for "
                f"the output `{output}`; choose other names: outputs={renamed}"
            )


def digest(policy: bytes, engine: str) -> str:
    """Returns a name for the table of a pickled policy and an engine."""
    return hashlib.sha256(engine.encode() + b"\0" + policy).hexdigest()


def pickled(policy: Policy) -> bytes:
    return pickle.dumps(policy, protocol=pickle.HIGHEST_PROTOCOL)


def table_of(name: str, load: Callable[[], Policy], engine: str) -> Table:
    """Returns the table with a name, and builds it if this process has none yet."""
    with _lock:
        table = _tables.get(name)
        if table is None:
            table = Table(load(), engine)
            _tables[name] = table
            if len(_tables) > MAX_TABLES:
                _tables.popitem(last=False)
        _tables.move_to_end(name)
        return table


def with_results(table: Table, batch: Any, settings: Settings) -> Any:
    """Returns a record batch or table of pyarrow with result columns behind its own.

    The columns are `bool` (`matched`), `int64` (`rule`) and `string` (`action`). Rows with a
    null in a mapped column are null in all of them; rows without a match have False, null, null.
    """
    import pyarrow

    results = table.classify(
        batch, columns=settings.columns, constants=settings.constants, threads=settings.threads
    )
    winners = pyarrow.record_batch(results)
    for output, name in settings.outputs:
        column = winners.column(output)
        if output == "rule":
            # Spark has no unsigned integers.
            column = column.cast(pyarrow.int64())
        elif output == "action":
            column = column.dictionary_decode()
        batch = batch.append_column(name, column)
    return batch
