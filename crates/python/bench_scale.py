"""Costs of a policy, and rows a second of Spark and Ray from Parquet to Parquet.

    classyard generate --profile acl1 -n 10k -o acl.rules
    PYSPARK_PYTHON=$(which python) python bench_scale.py acl.rules

Needs pyspark, ray and Java. Flows are random points of random rules over IPv4 five-tuples, as
integers, in `--files` Parquet files. Each job runs `--runs` times; numbers are of the fastest
run. Processor time is of all processes of the engine; it is steadier than time by the clock if
other programs run.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet

import classyard
import classyard.ray
import classyard.spark
from bench import plain_rules

FIELDS = {"src": "u4", "dst": "u4", "sport": "u2", "dport": "u2", "proto": "u1"}
BATCH_ROWS = (10_000, 100_000)
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def write_flows(policy: classyard.Policy, folder: Path, rows: int, files: int) -> Any:
    """Writes the files and returns the data of the first one."""
    rng = numpy.random.default_rng(1)
    ranges = []
    for src, dst, sport, dport, proto, _ in plain_rules(policy):
        networks = [(int(n[0]), int(n[-1])) if n else (0, 2**32 - 1) for n in (src, dst)]
        ports = [range_ or (0, 65535) for range_ in (sport, dport)]
        ranges.append([*networks, *ports, (6, 6) if proto is None else (proto, proto)])
    bounds = numpy.array(ranges, dtype="i8")
    first = None
    for file in range(files):
        picked = bounds[rng.integers(0, len(bounds), rows // files)]
        size = picked[:, :, 1] - picked[:, :, 0] + 1
        values = picked[:, :, 0] + (rng.random(size.shape) * size).astype("i8")
        arrays = zip(FIELDS.items(), values.T)
        data = pyarrow.table({name: array.astype(type) for (name, type), array in arrays})
        pyarrow.parquet.write_table(data, folder / f"{file}.parquet")
        first = first or data
    return first


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds() -> float:
    """Returns the processor time of this process and all those below it."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(words[1])
        ticks[int(folder.name)] = sum(map(int, words[11:15]))
    below, last = set(), {os.getpid()}
    while last:
        below |= last
        last = {pid for pid, parent in parents.items() if parent in last} - below
    return sum(ticks[pid] for pid in below) / TICKS_A_SECOND


def show_policy(rules: str) -> classyard.Policy:
    before = resident_bytes()
    policy = classyard.Policy.read(rules)
    start = time.perf_counter()
    data = pickle.dumps(policy)
    written = time.perf_counter()
    copy = pickle.loads(data)
    read = time.perf_counter()
    table = classyard.Table(copy)
    built = time.perf_counter()
    print(
        f"{len(table)} rules: {len(data) / 1e6:.2f} MB pickled, written in {written - start:.3f} s, "
        f"read in {read - written:.3f} s, table built in {built - read:.3f} s; two policies and a "
        f"table take {(resident_bytes() - before) / 1e6:.0f} MB"
    )
    return policy


def show_function(policy: classyard.Policy, data: Any, runs: int) -> None:
    """Shows the rate of the function in a worker, without the engine around it."""
    table = classyard.Table(policy)
    settings = classyard._workers.settings(None, None, classyard._workers.OUTPUTS, "forest", 1)
    for rows in BATCH_ROWS:
        batches = data.combine_chunks().to_batches(max_chunksize=rows)
        for name, call in (
            ("lookup", table.classify),
            ("with result columns", lambda b: classyard._workers.with_results(table, b, settings)),
        ):
            times = []
            for _ in range(runs):
                start = time.thread_time()
                for batch in batches:
                    call(batch)
                times.append(time.thread_time() - start)
            print(f"one core, batches of {rows}: {name}: {len(data) / min(times) / 1e6:.1f} M rows/s")


def show_jobs(engine: str, rows: int, runs: int, jobs: dict[str, Callable[[], object]]) -> None:
    for name, job in jobs.items():
        results = []
        for _ in range(runs):
            start, cpu = time.perf_counter(), cpu_seconds()
            job()
            results.append((time.perf_counter() - start, cpu_seconds() - cpu))
        seconds, cpu = min(results)
        print(
            f"{engine}: {name}: {rows / seconds / 1e6:.2f} M rows/s; {cpu * 1e6 / rows:.2f} s of "
            "processor time for a million rows"
        )


class TimedLookup(classyard.spark._Lookup):
    """Adds a line with rows and processor time in the function to a file of its process."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        rows, seconds = 0, 0.0
        results = super().__call__(self._counted(batches))
        while True:
            start = time.thread_time()
            self.input_seconds = 0.0
            batch = next(results, None)
            seconds += time.thread_time() - start - self.input_seconds
            if batch is None:
                break
            rows += batch.num_rows
            yield batch
        with open(os.environ["CLASSYARD_TIMES"] + f"/{os.getpid()}", "a") as file:
            print(rows, seconds, file=file)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Leaves the time out that it takes to receive a batch."""
        while True:
            start = time.thread_time()
            batch = next(batches, None)
            self.input_seconds += time.thread_time() - start
            if batch is None:
                return
            yield batch


def with_spark(policy: classyard.Policy, folder: Path, rows: int, runs: int) -> None:
    from pyspark.sql import SparkSession

    times = folder.parent / "times"
    times.mkdir()
    os.environ["CLASSYARD_TIMES"] = str(times)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    flows = spark.read.parquet(str(folder))
    target = str(folder.parent / "spark")

    def write(df: Any) -> None:
        df.write.mode("overwrite").parquet(target)

    for batch_rows in BATCH_ROWS:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch_rows)
        show_jobs(f"Spark, batches of {batch_rows}", rows, runs, {
            "Parquet to Parquet": lambda: write(flows),
            "through Python, unchanged": lambda: write(flows.mapInArrow(lambda b: b, flows.schema)),
            "classify": lambda: write(classyard.spark.classify(flows, policy)),
            "classify, only `rule`": lambda: write(
                classyard.spark.classify(flows, policy, outputs=["rule"])),
        })
        original = classyard.spark._Lookup
        setattr(classyard.spark, "_Lookup", TimedLookup)
        write(classyard.spark.classify(flows, policy))
        setattr(classyard.spark, "_Lookup", original)
        lines = [line.split() for file in times.iterdir() for line in file.read_text().splitlines()]
        counted = sum(int(line[0]) for line in lines)
        rate = counted / sum(float(line[1]) for line in lines) / 1e6
        print(f"Spark, batches of {batch_rows}: in the function: {rate:.1f} M rows/s")
        for file in times.iterdir():
            file.unlink()
    spark.stop()


def with_ray(policy: classyard.Policy, folder: Path, rows: int, runs: int) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    reference = ray.put(policy)

    def job(fn: Any, **options: Any) -> None:
        shutil.rmtree(folder.parent / "ray", ignore_errors=True)
        blocks = len(list(folder.iterdir()))
        data = ray.data.read_parquet(str(folder), override_num_blocks=blocks)
        if fn is not None:
            data = data.map_batches(fn, batch_format="pyarrow", batch_size=BATCH_ROWS[-1], **options)
        data.write_parquet(str(folder.parent / "ray"))

    class Unchanged:
        def __call__(self, batch: Any) -> Any:
            return batch

    # Two actors leave one of two processors to the tasks that read and write.
    pool = {"compute": ray.data.ActorPoolStrategy(size=2), "num_cpus": 0.5}
    arguments = {"fn_constructor_args": (reference,)}
    show_jobs("Ray", rows, runs, {
        "Parquet to Parquet": lambda: job(None),
        "through actors, unchanged": lambda: job(Unchanged, **pool),
        "classify": lambda: job(classyard.ray.Classify, **arguments, **pool),
    })
    ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rules", help="rules over IPv4 five-tuples")
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="spark,ray", help="spark, ray, or both; empty for none")
    arguments = parser.parse_args()
    policy = show_policy(arguments.rules)
    if not arguments.engines:
        return
    with tempfile.TemporaryDirectory() as folder:
        flows = Path(folder) / "flows"
        flows.mkdir()
        data = write_flows(policy, flows, arguments.rows, arguments.files)
        show_function(policy, data, arguments.runs)
        engines = {"spark": with_spark, "ray": with_ray}
        for name in arguments.engines.split(","):
            engines[name](policy, flows, arguments.rows, arguments.runs)


if __name__ == "__main__":
    main()
