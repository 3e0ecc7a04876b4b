"""`ottla pipeline new|infer|check|preview|test|graph`: what can be done without running one."""

from __future__ import annotations

import argparse
import shutil
from importlib import resources
from pathlib import Path

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.output import print_done, print_facts, print_rows, styled
from ottla.cli.pipeline_projects import (
    brokers_of,
    explained_problems,
    loaded,
    missing_topics,
    need_topics,
    session,
)
from ottla.pipeline.definition_file import FILE, load_pipeline


def new(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandFailed(f"{folder} is there and not empty", "name another folder", ExitCode.WRONG_USE)
    with resources.as_file(resources.files("ottla.pipeline") / "templates" / options.template) as template:
        shutil.copytree(template, folder, dirs_exist_ok=True)
    if options.output != "table":
        print_facts({"folder": str(folder), "template": options.template}, options.output)
        return ExitCode.DONE
    print(f"{folder}/{FILE} is there, with an example in {folder}/tests.")
    print(f"  test it     ottla pipeline test {folder}")
    for source in load_pipeline(folder).sources.values():
        for example in sorted(folder.glob(f"tests/*/{source.name}.jsonl")):
            topic = source.topics[0]
            print(f"  feed it     ottla topic create {topic}; ottla produce {topic} < {example}")
    print(f"  check it    ottla pipeline check {folder}")
    print(f"  run it      ottla pipeline run {folder}")
    return ExitCode.DONE


def infer(options: argparse.Namespace) -> int:
    from ottla.pipeline.definition_file import load_sources
    from ottla.pipeline.inference import infer_schema, write_schema

    with explained_problems():
        pipeline = load_sources(Path(options.folder))
        source = pipeline.sources.get(options.source)
        if source is None:
            raise CommandFailed(
                f"there is no source {options.source}",
                f"there are {', '.join(pipeline.sources)}",
                ExitCode.NOT_FOUND,
            )
        with session(options, pipeline) as spark:
            schema = infer_schema(source, spark, brokers_of(options, pipeline), options.records)
        if not options.dry_run:
            write_schema(pipeline.folder / FILE, source.name, schema)
    print_facts({"source": source.name, "schema": schema, "written": not options.dry_run}, options.output)
    return ExitCode.DONE


def check(options: argparse.Namespace) -> int:
    from ottla.pipeline import records
    from ottla.pipeline.checking import check_sinks
    from ottla.pipeline.parts import Parts

    with explained_problems():
        pipeline = loaded(options)
        missing = [] if options.offline else missing_topics(pipeline, brokers_of(options, pipeline))
        with session(options, pipeline) as spark:
            given = {name: records.examples(spark, source, None) for name, source in pipeline.sources.items()}
            parts = Parts(pipeline, spark, given)
            check_sinks(pipeline, parts)
            columns = {name: ", ".join(_columns(frame.columns)) for name, frame in parts.frames.items()}
    rows = [{"part": name, "columns": told} for name, told in columns.items()]
    print_rows(rows, options.output)
    need_topics(missing)
    if options.output == "table":
        print(styled(f"{pipeline.file} holds", "green"))
    return ExitCode.DONE


def _columns(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("_")]


def preview(options: argparse.Namespace) -> int:
    from ottla.pipeline.preview import preview as previewed

    with explained_problems():
        pipeline = loaded(options)
        access = brokers_of(options, pipeline)
        need_topics(missing_topics(pipeline, access))
        with session(options, pipeline) as spark:
            for name, rows in previewed(pipeline, spark, access, options.records, options.rows):
                if options.output == "table":
                    print(styled(name, "bold"))
                    print_rows(rows, "table")
                    print("" if rows else "no rows\n", end="\n" if rows else "")
                else:
                    print_rows([{"part": name, "row": row} for row in rows], "jsonl")
    return ExitCode.DONE


def test(options: argparse.Namespace) -> int:
    from ottla.pipeline.cases import run_cases

    with explained_problems():
        pipeline = loaded(options)
        with session(options, pipeline) as spark:
            outcomes = list(run_cases(pipeline, spark))
    if options.output != "table":
        print_rows(
            [
                {
                    "case": each.case,
                    "passed": each.passed,
                    "differences": [
                        {"part": one.part, "missing": one.missing, "unexpected": one.unexpected}
                        for one in each.differences
                    ],
                }
                for each in outcomes
            ],
            options.output,
        )
    else:
        for outcome in outcomes:
            print(f"{styled('pass', 'green') if outcome.passed else styled('FAIL', 'red')}  {outcome.case}")
            for difference in outcome.differences:
                print(f"      {difference.part}")
                for row in difference.missing:
                    print(styled(f"      - {row}", "red"))
                for row in difference.unexpected:
                    print(styled(f"      + {row}", "green"))
    failed = sum(not each.passed for each in outcomes)
    if failed:
        raise CommandFailed(f"{failed} of {len(outcomes)} examples failed", "- was expected, + came")
    return ExitCode.DONE


def graph(options: argparse.Namespace) -> int:
    from ottla.pipeline.graph import edges
    from ottla.pipeline.graph_picture import draw, mermaid

    with explained_problems():
        pipeline = loaded(options)
        if options.file is None and options.output != "table":
            print_rows([{"from": source, "to": target} for source, target in edges(pipeline)], options.output)
        elif options.file is None:
            print(mermaid(pipeline))
        elif Path(options.file).suffix not in (".png", ".svg"):
            raise CommandFailed(f"{options.file} is neither PNG nor SVG", "name it so", ExitCode.WRONG_USE)
        else:
            draw(pipeline, Path(options.file))
            print_done([{"file": options.file}], options.output, f"{options.file} is drawn")
    return ExitCode.DONE
