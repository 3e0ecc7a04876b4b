"""Found first by the Python processes of a job under test: stops one of them at a named step, once.

A file named after the step in $OTTLA_FAULTS arms it; whoever comes first takes the file away. Its content is
what happens: `die` kills the process, `hang` keeps it there (for the test to kill the whole job).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def reached(step: str) -> None:
    armed = Path(os.environ["OTTLA_FAULTS"]) / step
    try:
        taken = armed.rename(armed.with_suffix(".hit"))
    except FileNotFoundError:
        return
    if taken.read_text() == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(3600)


def stepped(owner: type, method: str, before: str, after: str) -> None:
    whole: Callable[..., Any] = getattr(owner, method)

    def call(*arguments: Any, **named: Any) -> Any:
        reached(before)
        result = whole(*arguments, **named)
        reached(after)
        return result

    setattr(owner, method, call)


def one_by_one(owner: Any) -> None:
    """The burst in two parts, with a step between them."""
    whole = owner.end_transactions

    def call(self: Any, transactions: Any, *, commit: bool) -> Any:
        asked = list(transactions)
        outcomes = dict(whole(self, asked[:1], commit=commit))
        reached("ended_first")
        return {**outcomes, **whole(self, asked[1:], commit=commit)}

    owner.end_transactions = call


if os.environ.get("OTTLA_FAULTS"):
    from ottla.client.admin import Admin
    from ottla.client.producer import Producer
    from ottla.spark.ledger import Ledger

    stepped(Ledger, "claim", "claiming", "claimed")
    stepped(Ledger, "decide", "deciding", "decided")
    stepped(Ledger, "note_ended", "ended_all", "noted")
    stepped(Producer, "detach_transaction", "writing", "written")
    one_by_one(Admin)
