"""How a command fails: one line for the cause, one for the cure, and an exit code for scripts."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """Stable: a script that tests for one of these must go on working."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "done"
    FAILED = 1, "failed"
    WRONG_USE = 2, "wrong use"
    NO_BROKER = 3, "no broker answers"
    NOT_FOUND = 4, "what was named does not exist"
    NOT_CONFIRMED = 5, "not confirmed"
    INTERRUPTED = 130, "interrupted"
    OUTPUT_CLOSED = 141, "output closed"


_NAMES_NOTHING = ("BROKER_ID_NOT_REGISTERED", "GROUP_ID_NOT_FOUND", "TRANSACTIONAL_ID_NOT_FOUND")
_WRONG_INPUT = (
    "INVALID_TOPIC_EXCEPTION",
    "INVALID_CONFIG",
    "INVALID_PARTITIONS",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_GROUP_ID",
)
"""Codes of brokers for what was given and cannot be; all others are failures."""


class CommandFailed(Exception):
    """Ends a command. `cause` says what is wrong, `cure` what to do about it."""

    def __init__(self, cause: str, cure: str = "", exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(cause)
        self.cause = cause
        self.cure = cure
        self.exit_code = exit_code


def explained(error: Exception) -> CommandFailed:
    """`error` of a room below in words for people."""
    client_errors = sys.modules.get("ottla.client.errors")  # not loaded: then it is none of them
    if client_errors is not None and isinstance(error, client_errors.ClientError):
        return CommandFailed(error.text, error.cure, _client_exit_code(error, client_errors))
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED
        return CommandFailed(f"{place}{error.strerror or error}", exit_code=code)
    return CommandFailed(
        f"{type(error).__name__}: {error}", "this is a mistake of ours; --debug shows where it happened"
    )


def _client_exit_code(error: Exception, kinds: Any) -> ExitCode:
    if isinstance(error, kinds.TimedOut) and isinstance(error.__cause__, kinds.ClientError):
        return _client_exit_code(error.__cause__, kinds)  # what went wrong all the time
    if isinstance(error, kinds.ConnectionFailed | kinds.TimedOut):
        return ExitCode.NO_BROKER
    if isinstance(error, kinds.UnknownTopic | kinds.UnknownPartition):
        return ExitCode.NOT_FOUND
    if isinstance(error, kinds.BrokerError) and error.code.name in _NAMES_NOTHING:
        return ExitCode.NOT_FOUND
    if isinstance(error, kinds.BrokerError) and error.code.name in _WRONG_INPUT:
        return ExitCode.WRONG_USE
    if isinstance(error, kinds.InvalidSetting | kinds.InvalidOffsetSpec):
        return ExitCode.WRONG_USE
    return ExitCode.FAILED


def report(failure: CommandFailed) -> None:
    sys.stdout.flush()  # what came before stays before
    lines = f"ottla: {failure.cause}"
    if failure.cure:
        lines += f"\n       {failure.cure}"
    print(lines, file=sys.stderr)
