"""What the word under the cursor may become: commands, verbs, options, choices, and live names of a cluster.

Knows nothing of the commands but their parsers: an argument with the metavar TOPIC is completed with topics.
Never fails and never waits long: a shell that hangs on Tab is worse than one that completes nothing.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client import Admin

_PATIENCE_MS = 1_000


def print_completions(words: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """`words` are those behind `ottla`; the last one is not finished."""
    try:
        for candidate in completions(words, parser):
            print(candidate)
    except Exception:
        if os.environ.get("OTTLA_DEBUG"):
            raise


def completions(words: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    *finished, current = words or [""]
    place = _Place(parser)
    for word in finished:
        place.take(word)
    option, joined, _ = current.partition("=")
    if place.wanted is None and option.startswith("--") and joined:
        place.take(option)
        possible: Iterable[str] = [f"{option}={value}" for value in place.candidates(finished)]
    elif place.wanted is None and current.startswith("-"):
        possible = place.options()
    else:
        possible = place.candidates(finished)
    return sorted(word for word in possible if word.startswith(current))


class _Place:
    """Where in a parser's grammar the words before the cursor lead."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._enter(parser)

    def _enter(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser
        self._positionals = [action for action in parser._actions if not action.option_strings]
        self.wanted: argparse.Action | None = None  # the option that waits for its value

    def take(self, word: str) -> None:
        if self.wanted is not None:
            self.wanted = None
        elif word.startswith("-"):
            self._take_option(word)
        elif self._positionals:
            self._take_positional(word)

    def _take_option(self, word: str) -> None:
        for action in self._parser._actions:
            if word in action.option_strings and action.nargs != 0:
                self.wanted = action

    def _take_positional(self, word: str) -> None:
        action = self._positionals[0]
        if isinstance(action, argparse._SubParsersAction):
            if word in action.choices:
                self._enter(action.choices[word])
            else:
                self._positionals.clear()  # nothing is known behind a word that is no command
        elif action.nargs not in ("*", "+"):
            self._positionals.pop(0)

    def options(self) -> list[str]:
        return [
            option
            for action in self._parser._actions
            if action.help is not argparse.SUPPRESS
            for option in action.option_strings
            if option.startswith("--")
        ]

    def candidates(self, words: Sequence[str]) -> Iterable[str]:
        action = self.wanted or (self._positionals[0] if self._positionals else None)
        if action is None:
            return ()
        if action.choices is not None:
            return [str(choice) for choice in action.choices]
        names = _NAMES.get(str(action.metavar))
        return names(words) if names else ()


def _topics(words: Sequence[str]) -> Iterable[str]:
    with _admin(words) as admin:
        return admin.topic_names()


def _groups(words: Sequence[str]) -> Iterable[str]:
    with _admin(words) as admin:
        return [group.id for group in admin.groups()]


def _admin(words: Sequence[str]) -> Admin:
    """Of the cluster that the words so far mean."""
    from ottla.cli.clusters import access_of
    from ottla.cli.options import add_cluster
    from ottla.client import Admin
    from ottla.client.settings import common_of

    asked = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_cluster(asked)
    options, _ = asked.parse_known_args(words)
    access = access_of(options)
    return Admin(access.bootstrap, **common_of(access.settings), default_api_timeout_ms=_PATIENCE_MS)


def _targets(words: Sequence[str]) -> Iterable[str]:
    with _admin(words) as admin:
        brokers = [f"broker:{broker.id}" for broker in admin.cluster().brokers]
        return ["cluster", *brokers, *(f"topic:{name}" for name in admin.topic_names())]


def _transactions(words: Sequence[str]) -> Iterable[str]:
    with _admin(words) as admin:
        return [each.id for each in admin.transactions()]


def _settings(_: Sequence[str]) -> Iterable[str]:
    from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS

    return {*TOPIC_SETTINGS, *BROKER_SETTINGS}


def _assignments(_: Sequence[str]) -> Iterable[str]:
    from ottla.model.configs import TOPIC_SETTINGS

    return [f"{name}=" for name in TOPIC_SETTINGS]


def _client_assignments(_: Sequence[str]) -> Iterable[str]:
    from ottla.client.settings import CONSUMER_SETTINGS, PRODUCER_SETTINGS

    return {f"{name}=" for name in (*PRODUCER_SETTINGS, *CONSUMER_SETTINGS)}


def _profiles(_: Sequence[str]) -> Iterable[str]:
    from ottla.cli.profiles import load_profiles

    return load_profiles().clusters


_NAMES: dict[str, Callable[[Sequence[str]], Iterable[str]]] = {
    "GROUP": _groups,
    "NAME=VALUE": _assignments,
    "PROFILE": _profiles,
    "SETTING": _settings,
    "SETTING=VALUE": _client_assignments,
    "TARGET": _targets,
    "TOPIC": _topics,
    "TRANSACTION": _transactions,
}
"""By metavar: how to find the names that an argument may have."""
