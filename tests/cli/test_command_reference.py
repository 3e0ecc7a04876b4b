"""docs/commands.md has every command and option that the program has, and no other."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ottla.cli.commands import COMMANDS
from ottla.cli.main import parser_for
from ottla.cli.options import add_cluster

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
WIDTH = 116
FORMS = ("table", "json", "jsonl", "csv")


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of everything that can be run."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for action in nested:
        for verb in action.choices.values():
            yield from leaves(verb)
    if not nested:
        yield parser


def form(action: argparse.Action) -> str:
    """An argument as a line of the page has it."""
    if action.choices == FORMS:
        return "[-o FORM]"
    name = str(action.metavar or action.dest.upper())
    if action.choices is not None:
        name = "|".join(map(str, action.choices))
    many = "…" if action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction) else ""
    if not action.option_strings:
        return f"[{name}{many}]" if action.nargs in ("?", "*") else f"{name}{many}"
    words = "|".join(action.option_strings)
    text = words if action.nargs == 0 else f"{words} {name}{many}"
    return text if action.required else f"[{text}]"


def reference(parser: argparse.ArgumentParser) -> str:
    """What the page says of one command: its line, and below what it does."""
    shared = argparse.ArgumentParser()
    add_cluster(shared)
    common = {word for action in shared._actions for word in action.option_strings}
    words = [parser.prog]
    words += [
        form(action)
        for action in sorted(parser._actions, key=lambda action: bool(action.option_strings))
        if action.help is not argparse.SUPPRESS and not common & set(action.option_strings)
    ]
    if any("--bootstrap" in action.option_strings for action in parser._actions):
        words.append("CLUSTER")
    elif any("--client" in action.option_strings for action in parser._actions):
        words.append("[-X|--client SETTING=VALUE…]")
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join([*lines, f"    # {parser.description}"])


def test_every_command_and_option_is_in_the_reference_and_nothing_else() -> None:
    expected = "\n".join(
        reference(leaf)
        for command in COMMANDS
        for leaf in leaves(parser_for([command.name])._subparsers._group_actions[0].choices[command.name])  # type: ignore[union-attr, index, call-overload]
    )
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Every command")
    _, _, block = section.partition("```\n")
    assert block.partition("\n```")[0] == expected
