"""Every command of `ottla`: its name, one line about it, and the module that has it.

A module is imported only when its command is used. It has `add_arguments(parser)`, which declares options
(the shared ones are in `options`) and names the function to call, `parser.set_defaults(run=function)`, where
`function(options) -> int` returns an exit code or raises `CommandFailed`.
"""

from __future__ import annotations

from ottla.model.values import NamedTuple


class Command(NamedTuple):
    name: str
    summary: str
    module: str  # below ottla.cli


COMMANDS = (
    Command("up", "run a broker, here or in the background", "up"),
    Command("down", "stop the broker that runs in the background", "down"),
    Command("status", "tell how the broker of this machine does", "status"),
    Command("logs", "show what the broker in the background logs", "logs"),
    Command("log", "show, verify and repair the files of logs", "log_files"),
    Command("topic", "list, show, create, change and delete topics", "topic"),
    Command("group", "list, show, watch, reset and delete consumer groups", "group"),
    Command("produce", "write records into topics", "produce"),
    Command("consume", "read records of a topic", "consume"),
    Command("bench", "measure a cluster: produce, consume, end to end", "bench"),
    Command("txn", "show transactions, end those that hang", "txn"),
    Command("pipeline", "define, check, test, run and replay pipelines on Spark", "pipeline"),
    Command("config", "show, change and explain settings", "config"),
    Command("cluster", "show the brokers of a cluster", "cluster"),
    Command("coordination", "run the coordination service alone", "coordination"),
    Command("zk", "look at znodes, change them, follow them live", "zk"),
    Command("profile", "names for clusters", "profile"),
    Command("completion", "completion for bash, zsh and fish", "completion"),
    Command("doctor", "check this machine and installation", "doctor"),
)
"""In the order of `ottla --help`."""
