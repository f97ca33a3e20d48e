"""Looks up the rows of a Ray dataset in a policy, in the actors of a cluster.

The package and pyarrow must be installed on every node: `pip install 'classyard[ray]'`.

    policy = ray.put(classyard.Policy.read("fw.rules"))
    classified = ray.data.read_parquet("s3://bucket/flows/").map_batches(
        classyard.ray.Classify,
        fn_constructor_args=(policy,),
        fn_constructor_kwargs={"columns": "vpc", "outputs": {"rule": "rule", "action": "verdict"}},
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=8),
    )
    classified.write_parquet("s3://bucket/classified/")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _workers
from ._native import Policy

if TYPE_CHECKING:
    from ray import ObjectRef

    from ._workers import Columns, Constants, Outputs

__all__ = ["Classify"]


class Classify:
    """A callable class for `map_batches` with `batch_format="pyarrow"`.

    `policy` is a policy or a reference to one. `ray.put(policy)` stores it once for all actors;
    otherwise each actor gets a copy with its arguments. An actor builds the table when it starts.

    `classyard.Table` describes `columns`, `constants`, `engine` and `threads`. `outputs` names
    some of `matched` (bool), `rule` (int64: the id of the winner) and `action` (string), or is
    a dict from these to names of columns. A row with a null in a mapped column is null in all
    outputs. A row that no rule matches has False, null, null.

    A call takes a `pyarrow.Table` and returns it with result columns behind its own. It raises
    `ColumnError` for missing columns, wrong types and values that cannot be read, and
    `ValueError` for names that clash.
    """

    def __init__(
        self,
        policy: Policy | ObjectRef[Policy],
        *,
        columns: Columns | None = None,
        constants: Constants | None = None,
        outputs: Outputs = _workers.OUTPUTS,
        engine: str = "forest",
        threads: int = 1,
    ) -> None:
        self._settings = _workers.settings(columns, constants, outputs, engine, threads)
        if not isinstance(policy, Policy):
            policy = _fetched(policy)
        name = _workers.digest(_workers.pickled(policy), engine)
        self._table = _workers.table_of(name, lambda: policy, engine)

    def __call__(self, batch: Any) -> Any:
        if not hasattr(batch, "append_column"):
            raise TypeError(
                f"a batch of type {type(batch).__name__}; expected a pyarrow.Table: "
                'pass batch_format="pyarrow" to map_batches'
            )
        for name in _workers.repeated(batch.column_names):
            raise ValueError(f"the data has two columns `{name}`; rename one of them, or drop it")
        _workers.refuse_clashes(self._settings, batch.column_names)
        return _workers.with_results(self._table, batch, self._settings)


def _fetched(reference: ObjectRef[Policy]) -> Policy:
    try:
        import ray
    except ImportError as error:
        raise ImportError("classyard.ray needs ray: pip install 'classyard[ray]'") from error
    value: object = ray.get(reference) if isinstance(reference, ray.ObjectRef) else reference
    if not isinstance(value, Policy):
        raise TypeError(
            f"`policy` is of type {type(value).__name__}; expected a classyard.Policy, or a "
            "reference to one from ray.put"
        )
    return value
