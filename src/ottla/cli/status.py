"""`ottla status`: whether the broker of this machine runs, where, since when, and what is wrong with it.

Exit codes: 0 it runs and is well, 1 it runs with problems, 3 it does not run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from typing import Any

from ottla.cli.broker_home import BrokerHome, Running, add_home, broker_home
from ottla.cli.failures import ExitCode
from ottla.cli.options import add_output
from ottla.cli.output import Cell, print_facts, styled
from ottla.cli.sizes import format_bytes, format_duration

_ANSWER_SECONDS_MAX = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_output(parser)
    parser.set_defaults(run=status)


def status(options: argparse.Namespace) -> int:
    home = broker_home(options)
    running = home.running()
    if running is None:
        print_facts(_stopped(home, options.output), options.output)
        return ExitCode.NO_BROKER
    problems = _problems(running)
    facts = _facts(running, problems, people=options.output == "table")
    print_facts(facts, options.output)
    return ExitCode.FAILED if problems else ExitCode.DONE


def _stopped(home: BrokerHome, form: str) -> dict[str, Cell]:
    state = "starting" if home.is_locked() else "stopped"
    facts: dict[str, Cell] = {
        "state": styled(state, "yellow") if form == "table" else state,
        "data": [str(directory.absolute()) for directory in home.settings.log_dirs],
    }
    failure = home.failure()
    if failure is not None:
        facts["stopped_because"] = failure
    return facts


def _facts(running: Running, problems: list[dict[str, str]], *, people: bool) -> dict[str, Cell]:
    state = "degraded" if problems else "running"
    free_bytes = min(shutil.disk_usage(directory).free for directory in running.data)
    up_ms = int(time.time() * 1000) - running.started_ms
    return {
        "state": styled(state, "red" if problems else "green") if people else state,
        **({"problem": "\n".join(each["text"] for each in problems)} if people and problems else {}),
        **({} if people else {"problems": problems}),
        "broker": running.node_id,
        "pid": running.pid,
        "version": running.version,
        "up_for" if people else "up_ms": format_duration(up_ms) if people else up_ms,
        "listens_on": [f"{name}://{address}" for name, address in running.listeners.items()],
        "zookeeper": running.zookeeper,
        "http": f"http://{running.http}" if running.http else None,
        "data": running.data,
        "disk_free" if people else "disk_free_bytes": format_bytes(free_bytes) if people else free_bytes,
    }


def _problems(running: Running) -> list[dict[str, str]]:
    """As /healthz tells them; a broker that does not answer there has a problem too."""
    if running.http is None:
        return []
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(running.http, timeout=_ANSWER_SECONDS_MAX)
    try:
        connection.request("GET", "/healthz")
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return list(answer["problems"])
    except (OSError, HTTPException, ValueError, KeyError) as error:
        return [{"check": "answer", "text": f"it does not answer at http://{running.http}: {error}"}]
    finally:
        connection.close()
