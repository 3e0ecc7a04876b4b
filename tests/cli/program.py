"""The real `ottla` program, run as a user would run it, with an environment of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.warm_program import warm_program

DEADLINE_SECONDS = 60


class Done:
    """How a run ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.split("\n") if line]


class Program:
    def __init__(self, home: Path, environment: Mapping[str, str] | None = None) -> None:
        """`home` is the user's; nothing of the one who runs the tests is seen or changed."""
        self.home = home
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("OTTLA_")}
        self.environment = {
            **inherited,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
            **(environment or {}),
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ottla", *arguments]

    def __call__(self, *arguments: str, stdin: str | bytes = "", **environment: str) -> Done:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        seen = {**self.environment, **environment}
        code, out, err = warm_program().run(list(arguments), given, seen, self.home, DEADLINE_SECONDS)
        return Done(code, out.decode(), err.decode())

    def ok(self, *arguments: str, stdin: str | bytes = "", **environment: str) -> Done:
        done = self(*arguments, stdin=stdin, **environment)
        assert done.code == 0, f"ottla {' '.join(arguments)}: {done}"
        return done

    def fails(self, code: int, *arguments: str, stdin: str | bytes = "", **environment: str) -> str:
        """What it said when it ended with `code`; no failure shows a traceback."""
        done = self(*arguments, stdin=stdin, **environment)
        assert done.code == code, f"ottla {' '.join(arguments)}: {done}"
        assert "Traceback" not in done.err
        assert done.err.startswith("ottla: "), done
        return done.err
