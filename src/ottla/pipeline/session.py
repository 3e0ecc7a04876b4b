"""The Spark session of a pipeline: on this machine by default, quiet, in UTC; a cluster by its address."""

from __future__ import annotations

import logging
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.pipeline.failure_reasons import reason
from ottla.pipeline.problems import PipelineError
from ottla.spark.errors import JobError
from ottla.spark.session import ON_THIS_MACHINE, use_some_java, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = "local[*]"
_ADDRESS = re.compile(r"(spark|sc)://(?P<places>[^/,]+:\d+(,[^/,]+:\d+)*)(/.*)?")
_ANSWER_SECONDS = 10
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # else readers are not told the zone
}
_DEFAULTS = _EVERYWHERE | {
    "spark.sql.shuffle.partitions": "2",  # a local run with the usual 200 spends its time on empty ones
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %m%n
logger.streaming.name = org.apache.spark.sql.execution.streaming
logger.streaming.level = off
logger.executor.name = org.apache.spark
logger.executor.level = off
"""


def spark_session(app: str, master: str | None, settings: Mapping[str, str], log: Path) -> SparkSession:
    """One for this process; what the JVM says goes into `log`. Raises PipelineError if it does not start."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineError("pipelines need PySpark", "pip install 'ottla[spark]'") from None
    master = master or _LOCAL
    _check_answer(master)
    use_this_python(on_a_cluster=not master.startswith("local"))
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they print what the raised error says as well
    builder = SparkSession.builder.appName(app)
    if master.startswith("sc://"):
        builder = builder.remote(master)
        defaults = _EVERYWHERE
    else:
        _find_java()
        builder = builder.master(master)
        defaults = _DEFAULTS
        java = f"-Dlog4j2.configurationFile={_log_settings()} {settings.get(_JAVA_OPTIONS, '')}"
        settings = {**settings, _JAVA_OPTIONS: java.strip()}
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            defaults = _DEFAULTS | ON_THIS_MACHINE
    for setting, value in {**defaults, **settings}.items():
        builder = builder.config(setting, value)
    try:
        with _errors_into(log):
            return builder.getOrCreate()
    except Exception as error:
        cure = f"{log} may tell why"
        if "://" in master:
            cure = f"is it there, and of the version of your PySpark? {cure}"
        raise PipelineError(f"Spark does not start at {master}: {reason(error)}", cure) from error


def _check_answer(master: str) -> None:
    """Whoever is nowhere is told so at once: Spark itself tries for minutes, and Connect for longer."""
    found = _ADDRESS.fullmatch(master)
    if found is None:
        return
    for host, _, port in (each.rpartition(":") for each in found["places"].split(",")):
        with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS):
            return
    raise PipelineError(f"nothing answers at {master}", "start Spark there, or check the address")


def _find_java() -> None:
    try:
        use_some_java()
    except JobError as error:
        raise PipelineError(str(error)) from None


@contextmanager
def _errors_into(path: Path) -> Iterator[None]:
    """For processes that start within: the JVM greets everybody on its standard error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    own = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _log_settings() -> str:
    """Only what fails for good is said; a failing query is explained by whoever runs it."""
    path = os.path.join(tempfile.gettempdir(), f"ottla-log4j2-{os.getuid()}.properties")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_LOGGING)
    return path
