"""Looks up headers in lists of rules, exactly and fast, and analyses the lists.

`Policy` reads rules of any format: firewalls, flows, classyard's own. `Table` looks up
headers in columns of numpy, Arrow, polars, DuckDB or pandas. `lint`, `diff` and `query`
answer questions about policies, and their answers hold for all headers. The modules
`classyard.spark` and `classyard.ray` look up headers on the workers of a cluster.

>>> import classyard
>>> policy = classyard.Policy.from_rules("dual-5tuple", ["permit dport=443 proto=tcp", "deny"])
>>> table = classyard.Table(policy)
>>> table.classify(dst=["10.0.0.1", "2001:db8::1"], dport=[443, 22], proto="tcp").actions()
['permit', 'deny']
"""

from ._native import (
    NO_RULE,
    PRESETS,
    Answer,
    Array,
    Capture,
    ColumnError,
    Diff,
    Difference,
    Error,
    Explanation,
    Finding,
    Lint,
    ParseError,
    Policy,
    Query,
    Result,
    Rule,
    Table,
    Update,
    UpdateError,
    Verdict,
    __version__,
    diff,
    lint,
    query,
)

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
