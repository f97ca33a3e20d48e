"""Looks up the rows of a Spark DataFrame in a policy, on all workers of the cluster.

The package, pandas and pyarrow must be installed on every node: `pip install 'classyard[spark]'`.

    flows = spark.read.parquet("s3://bucket/flows/")
    policy = classyard.Policy.read("fw.rules")
    classified = classyard.spark.classify(
        flows, policy, columns="vpc", outputs={"rule": "rule", "action": "verdict"})
    classified.write.parquet("s3://bucket/classified/")
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _workers
from ._native import Policy, Table

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import Column, DataFrame

    from ._workers import Columns, Constants, Outputs, Settings

__all__ = ["Report", "classify", "report"]

_TYPES = {"matched": "boolean", "rule": "long", "action": "string"}


def classify(
    df: DataFrame,
    policy: Policy,
    *,
    columns: Columns | None = None,
    constants: Constants | None = None,
    outputs: Outputs = _workers.OUTPUTS,
    engine: str = "forest",
    threads: int = 1,
) -> DataFrame:
    """Returns the DataFrame with result columns behind its own. Nothing runs before an action.

    `classyard.Table` describes `columns`, `constants`, `engine` and `threads`. `outputs` names
    some of `matched` (boolean), `rule` (bigint: the id of the winner) and `action` (string), or
    is a dict from these to names of columns. A row with a null in a mapped column is null in all
    outputs. A row that no rule matches has False, null, null.

    Each worker process builds one table and uses it for all its tasks. The policy is sent to
    each node once. The job has the rules that `policy` has now.

    Raises `ColumnError` for missing columns and wrong types and `ValueError` for names that
    clash, both before the job starts. A value that cannot be read stops the job; the error
    names the column and the row.
    """
    _require()
    settings = _workers.settings(columns, constants, outputs, engine, threads)
    _check(df, policy, settings)
    data = _workers.pickled(policy)
    name = _workers.digest(data, engine)
    lookup = _Lookup(name, settings, _broadcast(df, data))
    from pyspark.sql.types import StructType

    schema = StructType(list(df.schema.fields))
    for output, column in settings.outputs:
        schema.add(column, _TYPES[output])
    return df.mapInArrow(lookup, schema)


@dataclass(frozen=True)
class Report:
    """DataFrames about classified flows. Each is computed when it is used.

    `outcomes` (`outcome`, `flows`) counts all flows, each in one outcome: `no header` (a mapped
    column is null, or the policy has no rules for the IP version), `no rule` (no rule matches),
    and, if the report compares with a log, `unknown word`, `equal` and `different`; otherwise
    `matched`.

    `hits` has `rule`, `action` and `flows`; with a policy, also `line` and `text`, and all rules
    without hits. A rule that the policy does not have has no text. `unmatched` has the flows that
    no rule matches.

    `different` has the flows whose logged verdict differs from the action of the policy, and
    `unknown_words` (`word`, `flows`) the words of the log that `words` does not have. Both are
    None if the report does not compare with a log.
    """

    outcomes: DataFrame
    hits: DataFrame
    unmatched: DataFrame
    different: DataFrame | None
    unknown_words: DataFrame | None


def report(
    classified: DataFrame,
    policy: Policy | None = None,
    *,
    logged: str | None = None,
    words: Mapping[str, str] | None = None,
    matched: str = "matched",
    rule: str = "rule",
    action: str = "action",
) -> Report:
    """Returns counts and lists of flows that `classify` has looked up, by Spark SQL only.

    `matched`, `rule` and `action` name the columns with these outputs. `logged` names a column
    with the verdict that the log has, and `words` gives the action that each of its words stands
    for: `{"ACCEPT": "permit", "REJECT": "deny"}`. Words are compared exactly. Other words, and
    null, are counted as unknown.

    The DataFrames are computed from `classified` each: write it or `persist()` it first.
    """
    _require()
    _check_report(classified, policy, logged, words, [matched, rule, action])
    functions = _functions()
    rule_column, action_column, matched_column = map(_column, (rule, action, matched))
    expected, outcome = None, functions.when(matched_column.isNull(), "no header")
    outcome = outcome.when(~matched_column, "no rule")
    if logged is None or words is None:
        outcome = outcome.otherwise("matched")
    else:
        expected = _translated(_column(logged), words)
        outcome = outcome.when(expected.isNull(), "unknown word")
        outcome = outcome.when(expected.eqNullSafe(action_column), "equal").otherwise("different")
    flows = functions.count("*").alias("flows")
    different = unknown = None
    if logged is not None:
        different = classified.where(outcome == "different")
        unknown = classified.where(outcome == "unknown word")
        unknown = unknown.groupBy(_column(logged).alias("word")).agg(flows)
    hits = classified.where(matched_column)
    hits = hits.groupBy(rule_column.alias("rule"), action_column.alias("action")).agg(flows)
    return Report(
        outcomes=classified.groupBy(outcome.alias("outcome")).agg(flows),
        hits=hits if policy is None else _with_rules(hits, policy),
        unmatched=classified.where(~matched_column),
        different=different,
        unknown_words=unknown,
    )


class _Lookup:
    """The function that a worker process calls with the record batches of a partition."""

    def __init__(self, name: str, settings: Settings, policy: Broadcast[bytes] | bytes) -> None:
        self._name = name
        self._settings = settings
        self._policy = policy

    def _load(self) -> Policy:
        data = self._policy if isinstance(self._policy, bytes) else self._policy.value
        policy = pickle.loads(data)
        assert isinstance(policy, Policy)
        return policy

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        table = _workers.table_of(self._name, self._load, self._settings.engine)
        first_row = 0
        for batch in batches:
            try:
                found = _workers.with_results(table, batch, self._settings)
            except Exception as error:
                error.add_note(_row_numbers(first_row))
                raise
            first_row += batch.num_rows
            yield found


def _row_numbers(first_row: int) -> str:
    from pyspark import TaskContext

    task = TaskContext.get()
    partition = "unknown" if task is None else task.partitionId()
    return f"in partition {partition}; row 0 of the batch is row {first_row} of the partition"


def _require() -> None:
    try:
        import pandas
        import pyarrow
        import pyspark
    except ImportError as error:
        raise ImportError(
            "classyard.spark needs pyspark, pandas and pyarrow: pip install 'classyard[spark]'"
        ) from error


def _functions() -> Any:
    from pyspark.sql import functions

    return functions


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _column(name: str) -> Column:
    column: Column = _functions().col(_quoted(name))
    return column


def _is_case_sensitive(df: DataFrame) -> bool:
    return str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def _check(df: DataFrame, policy: Policy, settings: Settings) -> None:
    """Looks up no rows with the types of the DataFrame, which raises what a worker would."""
    for name in _workers.repeated(df.columns):
        raise ValueError(f"the data has two columns `{name}`; rename one of them, or drop it")
    _workers.refuse_clashes(settings, df.columns, _is_case_sensitive(df))
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    # Only the types matter. Spark 4 requires a time zone, and older versions have no argument.
    has_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    options: dict[str, Any] = {"timezone": "UTC"} if has_zone else {}
    schema = to_arrow_schema(df.schema, **options)
    rows = pyarrow.RecordBatch.from_pylist([], schema)
    _workers.with_results(Table(policy, settings.engine), rows, settings)


def _broadcast(df: DataFrame, data: bytes) -> Broadcast[bytes] | bytes:
    """Spark Connect has no broadcasts; there, the bytes are a part of the function."""
    session = df.sparkSession
    is_classic = hasattr(session, "_jsparkSession")
    return session.sparkContext.broadcast(data) if is_classic else data


def _check_report(
    classified: DataFrame,
    policy: Policy | None,
    logged: str | None,
    words: Mapping[str, str] | None,
    names: list[str],
) -> None:
    if (logged is None) != (words is None):
        raise ValueError("`logged` and `words` belong together; give both or none")
    same = (lambda name: name) if _is_case_sensitive(classified) else str.casefold
    present = {same(name) for name in classified.columns}
    for name in names if logged is None else [*names, logged]:
        if same(name) not in present:
            columns = ", ".join(f"`{column}`" for column in classified.columns)
            raise ValueError(
                f"there is no column `{name}`; the columns are {columns}; a report needs the "
                "outputs matched, rule and action, and arguments with their names"
            )
    if policy is not None and words and not set(words.values()) & set(policy.actions):
        actions = ", ".join(f"`{action}`" for action in policy.actions)
        raise ValueError(f"no value of `words` is an action of the policy, which has {actions}")


def _translated(column: Column, words: Mapping[str, str]) -> Column:
    """Returns the actions that words stand for, and null for words without a meaning."""
    functions = _functions()
    translated: Column = functions.lit(None).cast("string")
    for word, action in words.items():
        translated = functions.when(column == word, action).otherwise(translated)
    return translated


def _with_rules(hits: DataFrame, policy: Policy) -> DataFrame:
    functions = _functions()
    rules = [policy.rule(id) for id in policy.ids]
    rows = [(rule.id, rule.action, rule.line, rule.text) for rule in rules]
    schema = "rule bigint, action string, line bigint, text string"
    all_rules = hits.sparkSession.createDataFrame(rows, schema)
    found = hits.withColumnRenamed("action", "found_action")
    # Rules that the policy does not have are of another version; they must not be lost.
    joined = all_rules.join(found, "rule", "full_outer")
    return joined.select(
        "rule",
        functions.coalesce("action", "found_action").alias("action"),
        functions.coalesce("flows", functions.lit(0)).alias("flows"),
        "line",
        "text",
    )
