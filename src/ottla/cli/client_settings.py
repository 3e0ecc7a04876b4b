"""Settings of clients as the command line has them: one by one, or as a file for Kafka's own tools."""

from __future__ import annotations

import argparse
import os.path
from pathlib import Path

from ottla.cli.options import assignment

_FILE_SIGN = "@"


def given_settings(text: str) -> list[tuple[str, str]]:
    """For argparse: SETTING=VALUE, or @FILE with such lines, as Kafka's tools take it."""
    if not text.startswith(_FILE_SIGN):
        return [_dotted(*assignment(text))]
    from ottla.model.configs import InvalidSetting
    from ottla.node.properties import parse_properties

    path = Path(text.removeprefix(_FILE_SIGN))
    try:
        properties = parse_properties(path.read_text(encoding="utf-8"))
    except (InvalidSetting, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None
    return [_dotted(each.name, each.value) for each in properties]


def _dotted(name: str, value: str) -> tuple[str, str]:
    return name.replace("_", "."), value


def kept_settings(given: dict[str, str]) -> dict[str, str]:
    """As a profile keeps them: it is used in other folders too."""
    return {
        name: os.path.abspath(value) if name.endswith(".location") else value for name, value in given.items()
    }
