"""What verbs of `ottla pipeline` share: the definition, its broker, its Spark session, its errors."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.clusters import access_of
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.client.access import Access
from ottla.pipeline.definition import Pipeline
from ottla.pipeline.definition_file import FILE, load_pipeline
from ottla.pipeline.problems import DefinitionError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def explained_problems() -> Iterator[None]:
    """What a pipeline's user can mend, as a command says it."""
    try:
        yield
    except DefinitionError as error:
        count = len(error.problems)
        raise CommandFailed(
            f"{count} {'problem' if count == 1 else 'problems'} in the definition\n"
            + "\n".join(f"  {problem}" for problem in error.problems),
            exit_code=ExitCode.WRONG_USE,
        ) from error
    except PipelineError as error:
        raise CommandFailed(error.text, error.cure) from error


def loaded(options: argparse.Namespace) -> Pipeline:
    """The folder, or the definition itself."""
    path = Path(options.folder)
    return load_pipeline(path.parent if path.name == FILE and path.is_file() else path)


def brokers_of(options: argparse.Namespace, pipeline: Pipeline) -> Access:
    """What the command says goes before what the definition says."""
    return access_of(options, otherwise=pipeline.bootstrap)


def missing_topics(pipeline: Pipeline, access: Access) -> list[str]:
    """Of what is read; what is written to is made by the broker, unless that does not make topics."""
    from ottla.client import Admin

    with Admin(access.bootstrap, **access.settings) as admin:
        there = set(admin.topic_names())
    return [topic for topic in pipeline.topics if topic not in there]


def need_topics(missing: list[str]) -> None:
    if missing:
        raise CommandFailed(
            f"topics that are not there: {', '.join(missing)}",
            f"check the names, or create them: ottla topic create {' '.join(missing)}",
            ExitCode.NOT_FOUND,
        )


@contextmanager
def session(options: argparse.Namespace, pipeline: Pipeline) -> Iterator[SparkSession]:
    from ottla.cli.progress import Waiting
    from ottla.pipeline.session import spark_session

    with Waiting("Spark starts") as waiting:
        waiting.show()
        master = options.master or pipeline.master
        spark = spark_session(pipeline.name, master, pipeline.spark, pipeline.state / "spark.log")
    try:
        yield spark
    finally:
        spark.stop()
