"""Clusters by name, so that nobody types addresses: a small file in the user's configuration folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from ottla.cli.failures import CommandFailed, ExitCode


def profiles_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ottla" / "profiles.json"


@dataclass(slots=True)
class Profiles:
    bootstraps: dict[str, str] = field(default_factory=dict)  # by name
    current: str | None = None  # used when nothing else is said

    def bootstrap(self, name: str) -> str:
        if name not in self.bootstraps:
            known = ", ".join(sorted(self.bootstraps)) or "none"
            raise CommandFailed(
                f"there is no profile {name!r}",
                f"known: {known}; `ottla profile set {name} HOST:PORT` makes it",
                ExitCode.NOT_FOUND,
            )
        return self.bootstraps[name]


def load_profiles() -> Profiles:
    file = profiles_file()
    try:
        content = json.loads(file.read_text())
        return Profiles({str(name): str(at) for name, at in content["profiles"].items()}, content["current"])
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}", "mend or remove it") from error


def save_profiles(profiles: Profiles) -> None:
    file = profiles_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"current": profiles.current, "profiles": profiles.bootstraps}
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    temporary.rename(file)
