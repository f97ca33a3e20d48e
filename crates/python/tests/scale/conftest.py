"""Sessions of Spark and Ray with two cores, and flows in Parquet files."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows import Flows, written

HERE = Path(__file__).parent

# Workers import the tests' modules, and the package from the driver's environment.
os.environ["PYTHONPATH"] = f"{HERE}{os.pathsep}{HERE.parent}"
os.environ["PYSPARK_PYTHON"] = sys.executable
# The workers of Ray are not to yield to other programs of the machine.
os.environ["RAY_worker_niceness"] = "0"
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")


@pytest.fixture(scope="session")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Flows:
    return written(tmp_path_factory.mktemp("flows"))


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "2g").config("spark.log.level", "FATAL")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()
