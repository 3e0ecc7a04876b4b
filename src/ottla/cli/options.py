"""Options that commands share, under one name everywhere, and the parser that explains wrong use."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

from ottla.cli.failures import CommandFailed, ExitCode

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run = Callable[[argparse.Namespace], int]

_CHOICE = r"invalid choice: '?([^']*?)'? \(choose from (.*)\)"
_COLUMNS = 80  # where nobody knows


class _HelpFormatter(argparse.HelpFormatter):
    """As wide as the terminal. argparse asks `shutil`, which brings three kinds of compression along."""

    def __init__(self, prog: str, indent_increment: int = 2, max_help_position: int = 24) -> None:
        super().__init__(prog, indent_increment, max_help_position, _columns() - 2)


def _columns() -> int:
    with contextlib.suppress(KeyError, ValueError):
        if (told := int(os.environ["COLUMNS"])) > 0:
            return told
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _COLUMNS  # type: ignore[union-attr]
    return _COLUMNS


class Parser(argparse.ArgumentParser):
    """argparse with full words only, and a suggestion for what was probably meant."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        keywords.setdefault("allow_abbrev", False)
        keywords.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*arguments, **keywords)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What is left over is explained by the command that was used, not by the whole program."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            used = self
            for word in args or ():
                for action in used._actions:
                    if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                        used = action.choices[word]
            used.error(_unknown_arguments(unknown, used))
        return options

    def error(self, message: str) -> NoReturn:
        import re

        choice = re.search(_CHOICE, message)
        if choice:
            message = _unknown_choice(choice[1], [known.strip(" '") for known in choice[2].split(",")])
        print(f"ottla: {message}\n       `{self.prog} --help` explains what is possible", file=sys.stderr)
        sys.exit(ExitCode.WRONG_USE)


def _unknown_choice(given: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(given, known, n=1)
    return f"{given!r} is not known; " + (
        f"did you mean {near[0]}?" if near else f"expected {', '.join(known)}"
    )


def _unknown_arguments(unknown: Sequence[str], parser: argparse.ArgumentParser) -> str:
    from difflib import get_close_matches

    known = [option for action in parser._actions for option in action.option_strings]
    near = get_close_matches(unknown[0].partition("=")[0], known, n=1)
    return f"unrecognized arguments: {' '.join(unknown)}" + (f"; did you mean {near[0]}?" if near else "")


def lazily(place: str) -> Callable[[Any], Any]:
    """`module.function` below ottla.cli, imported when it is called: for verbs, and for types of options."""

    def call(argument: Any) -> Any:
        module, _, name = place.partition(".")
        return getattr(import_module(f"ottla.cli.{module}"), name)(argument)

    return call


def add_verbs(parser: argparse.ArgumentParser) -> Verbs:
    """For a noun with verbs, as `ottla topic ls`."""
    return parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")


def add_verb(verbs: Verbs, name: str, run: Run, summary: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(run=run)
    add_debug(parser)
    return parser


def count(text: str) -> int:
    """For argparse: how many."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count, expected 0 or more")
    return int(text)


def assignment(text: str) -> tuple[str, str]:
    """For argparse: NAME=VALUE."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} sets nothing, expected NAME=VALUE")
    return name, value


def add_debug(parser: argparse.ArgumentParser) -> None:
    # No default: one given before the command must not be undone here.
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def debug_is_on(arguments: Sequence[str]) -> bool:
    """Known without a successful parse, because parsing may be what failed."""
    return "--debug" in arguments or os.environ.get("OTTLA_DEBUG", "") not in ("", "0")


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "jsonl", "csv"),
        default="table",
        help="form of the output (default: table)",
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Which cluster (`clusters.access_of` says what goes before what), and how to come to it."""
    parser.add_argument(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT[,…]",
        help="brokers to begin with (default: OTTLA_BOOTSTRAP, the profile's, 127.0.0.1:9092)",
    )
    parser.add_argument("--profile", metavar="PROFILE", help="a cluster saved with `ottla profile set`")
    add_client_settings(parser)


def add_client_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-X", "--client", action="extend", default=[], type=lazily("client_settings.given_settings"),
        metavar="SETTING=VALUE", help="a client's setting, as security.protocol=SSL, or @FILE of such lines",
    )  # fmt: skip


def add_confirmation(parser: argparse.ArgumentParser, *, dry_run: bool = True) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    if dry_run:
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")


def confirm(question: str, *, yes: bool) -> None:
    """Asks before something that cannot be undone. Raises CommandFailed unless the answer is yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(question, "nobody is here to confirm it; --yes does", ExitCode.NOT_CONFIRMED)
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandFailed("nothing was done", exit_code=ExitCode.NOT_CONFIRMED)
