"""Tab in the real shells: what a person types, and what stands on the line then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.program import Program
from cli.terminal import Terminal
from ottla.testing import BrokerProcess

_RC = {
    "bash": "PS1='$ '\nsource <(ottla completion bash)\n",
    "zsh": "PS1='$ '\nbindkey -e\nunsetopt beep\nsource <(ottla completion zsh)\n",
    "fish": "function fish_prompt; echo '$ '; end\nset fish_greeting\nottla completion fish | source\n",
}
_PRINT_THE_LINE = '\x01echo "<"">"\n'  # Ctrl-A: the line becomes something to print, behind <>


class _Shell(Program):
    def __init__(self, name: str, client: Program) -> None:
        super().__init__(client.home, {**client.environment, "ZDOTDIR": str(client.home)})
        self.environment["PATH"] = f"{client.home}:{self.environment['PATH']}"
        rc = client.home / (".zshrc" if name == "zsh" else "rc")
        rc.write_text(_RC[name] + "echo loaded\n")
        if name == "fish":  # else its first start goes through all manual pages, long after the test
            (client.home / "data" / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
        way = {"bash": ("--rcfile", str(rc)), "zsh": (), "fish": ("--init-command", f"source {rc}")}
        self._command = [name, *way[name], "-i"]
        _make_program(client, client.home / "ottla")

    def command(self, *arguments: str) -> list[str]:
        return self._command


def _make_program(client: Program, path: Path) -> None:
    path.write_text(f'#!/bin/sh\nexec {" ".join(client.command())} "$@"\n')
    path.chmod(0o755)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_tab_completes_commands_options_and_live_names(
    client: Program, broker: BrokerProcess, name: str
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    client.ok("topic", "create", "tabbed-topic", "--if-not-exists")
    client.ok("group", "reset", "tabbed-group", "--topic", "tabbed-topic", "--to", "end", "--yes")
    client.ok("profile", "set", "tabbed-profile", broker.bootstrap)
    lines = {
        "top": "topic",
        "topic create x --part": "topic create x --partitions",
        "topic create x -c retention.m\t5": "topic create x -c retention.ms=5",
        "config get topic:tabb": "config get topic:tabbed-topic",
        f"group show -b {broker.bootstrap} tabb": f"group show -b {broker.bootstrap} tabbed-group",
        "topic ls --profile tabb": "topic ls --profile tabbed-profile",
        "topic ls --output=cs": "topic ls --output=csv",
    }
    with Terminal(_Shell(name, client)) as terminal:
        terminal.wait_for("loaded")
        for typed, completed in lines.items():
            terminal.type(f"ottla {typed}\t{_PRINT_THE_LINE}")
            terminal.wait_for(f"<>ottla {completed}")
        terminal.type("ottla topic show tabb\t\n")
        terminal.wait_for("PARTITION")
