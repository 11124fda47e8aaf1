# SPDX-License-Identifier: Apache-2.0
"""One Spark for all tests: two executors, each a process of its own, and a server of Spark Connect before them."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A virtual machine that starts quickly, for work that is soon done."""


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        warnings.filterwarnings("ignore", category=ResourceWarning)  # sockets of py4j
        yield


@pytest.fixture(scope="session")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="session")
def spark(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("there is no Java")
    from pyspark.sql import SparkSession

    work = tmp_path_factory.mktemp("spark")
    source = Path(__file__).parents[2] / "src"
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(work), "SPARK_LOCAL_DIRS": str(work)}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH", "")]))
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "2",
        "spark.sql.files.maxPartitionBytes": "16k",  # so that small files are several partitions
        "spark.sql.files.openCostInBytes": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than a few hundred rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
