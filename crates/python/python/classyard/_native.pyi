"""The part of the package that is written in Rust."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias, SupportsIndex, final, type_check_only

__all__ = [
    "NO_RULE",
    "PRESETS",
    "Answer",
    "Array",
    "Capture",
    "ColumnError",
    "Diff",
    "Difference",
    "Error",
    "Explanation",
    "Finding",
    "Lint",
    "ParseError",
    "Policy",
    "Query",
    "Result",
    "Rule",
    "Table",
    "Update",
    "UpdateError",
    "Verdict",
    "__version__",
    "diff",
    "lint",
    "query",
]

NO_RULE: Final[int]
PRESETS: Final[list[str]]
__version__: Final[str]

@type_check_only
class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@type_check_only
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class _Buffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...

@type_check_only
class _Address(Protocol):
    @property
    def packed(self) -> bytes: ...

_Value: TypeAlias = SupportsIndex | str | bytes | _Address
_Batch: TypeAlias = _ArrowArray | _ArrowStream
_Column: TypeAlias = _Value | _Batch | _Buffer | Iterable[_Value | None]

class Error(Exception): ...

class ParseError(Error):
    file: str
    line: int | None
    column: int | None
    found: str | None
    expected: str | None
    problems: list[tuple[int, int, str, str]]
    total: int

class ColumnError(Error):
    column: str | None
    row: int | None

class UpdateError(Error):
    change: str | None
    index: int | None

@final
class Rule:
    @property
    def id(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def action(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def text(self) -> str: ...

@final
class Policy:
    @staticmethod
    def read(
        path: str | PathLike[str],
        format: str | None = None,
        schema: str | None = None,
        list: str | None = None,
    ) -> Policy: ...
    @staticmethod
    def parse(
        text: str,
        source: str = "<text>",
        format: str | None = None,
        schema: str | None = None,
        list: str | None = None,
    ) -> Policy: ...
    @staticmethod
    def from_rules(schema: str, lines: Sequence[str]) -> Policy: ...
    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def schemas(self) -> list[str]: ...
    @property
    def fields(self) -> list[str]: ...
    @property
    def lists(self) -> list[str]: ...
    @property
    def actions(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def ids(self) -> list[int]: ...
    def rule(self, id: int) -> Rule: ...
    def to_text(self, format: str = "rules") -> str: ...

@final
class Array:
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> int | bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def tolist(self) -> list[int | bool]: ...

@final
class Result:
    def __len__(self) -> int: ...
    @property
    def rule(self) -> Array: ...
    @property
    def action_ids(self) -> Array: ...
    @property
    def matched(self) -> Array: ...
    @property
    def has_header(self) -> Array: ...
    @property
    def other_family_rows(self) -> int: ...
    @property
    def action_names(self) -> list[str]: ...
    @property
    def version(self) -> int: ...
    def actions(self) -> list[str | None]: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...

@final
class Capture:
    @staticmethod
    def read(path: str | PathLike[str], schema: str = "dual-5tuple") -> Capture: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...

@final
class Verdict:
    @property
    def rule(self) -> int | None: ...
    @property
    def action(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def has_header(self) -> bool: ...
    @property
    def version(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Explanation:
    @property
    def verdict(self) -> Verdict: ...
    @property
    def winner(self) -> Rule | None: ...
    @property
    def beaten(self) -> list[Rule]: ...

@final
class Update:
    @property
    def version(self) -> int: ...
    @property
    def inserted(self) -> list[int]: ...

@final
class Table:
    def __new__(cls, policy: Policy, engine: str = "forest") -> Table: ...
    def classify(
        self,
        batch: _Batch | None = None,
        *,
        columns: str | Mapping[str, str | Sequence[str]] | None = None,
        preset: str | None = None,
        constants: Mapping[str, _Value] | None = None,
        threads: int = 1,
        **fields: _Column,
    ) -> Result: ...
    def classify_one(self, **fields: _Value) -> Verdict: ...
    def explain(self, **fields: _Value) -> Explanation: ...
    def apply(
        self,
        *,
        insert: Sequence[str] = ...,
        remove: Sequence[int] = ...,
        modify: Sequence[str] = ...,
    ) -> Update: ...
    def policy(self) -> Policy: ...
    def rule(self, id: int) -> Rule: ...
    def __len__(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def actions(self) -> list[str]: ...

@final
class Finding:
    @property
    def kind(self) -> str: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def others(self) -> list[Rule]: ...
    @property
    def similar_action(self) -> str | None: ...

@final
class Lint:
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def undecided(self) -> list[int]: ...

@final
class Difference:
    @property
    def first(self) -> Rule | None: ...
    @property
    def second(self) -> Rule | None: ...
    @property
    def header(self) -> dict[str, str]: ...
    @property
    def share(self) -> float: ...
    @property
    def more(self) -> bool: ...

@final
class Diff:
    @property
    def differences(self) -> list[Difference]: ...
    @property
    def undecided(self) -> list[tuple[int, int]]: ...
    @property
    def equivalent(self) -> bool | None: ...

@final
class Answer:
    @property
    def rule(self) -> Rule | None: ...
    @property
    def header(self) -> dict[str, str]: ...
    @property
    def share(self) -> float: ...

@final
class Query:
    @property
    def answers(self) -> list[Answer]: ...
    @property
    def undecided(self) -> list[int | None]: ...

def lint(
    policy: Policy,
    *,
    redundant: bool = True,
    equal_priority: bool = False,
    correlated: bool = False,
    mergeable: bool = False,
    rare_action: bool = False,
) -> Lint: ...
def diff(first: Policy, second: Policy) -> Diff: ...
def query(policy: Policy, text: str) -> Query: ...
