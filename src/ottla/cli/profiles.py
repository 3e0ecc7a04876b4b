"""Clusters by name, so that nobody types addresses: a small file in the user's configuration folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.client.access import Access
from ottla.model.values import dataclass, field


def profiles_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ottla" / "profiles.json"


@dataclass(slots=True)
class Profiles:
    clusters: dict[str, Access] = field(default_factory=dict)  # by name
    current: str | None = None  # used when nothing else is said

    def access(self, name: str) -> Access:
        if name not in self.clusters:
            known = ", ".join(sorted(self.clusters)) or "none"
            raise CommandFailed(
                f"there is no profile {name!r}",
                f"known: {known}; `ottla profile set {name} HOST:PORT` makes it",
                ExitCode.NOT_FOUND,
            )
        return self.clusters[name]


def load_profiles() -> Profiles:
    file = profiles_file()
    try:
        content = json.loads(file.read_text())
        clusters = {name: _access(kept) for name, kept in content["profiles"].items()}
        return Profiles(clusters, content["current"])
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}", "mend or remove it") from error


def _access(kept: str | Mapping[str, Any]) -> Access:
    """A text is an address alone: so profiles were kept before they had settings."""
    if isinstance(kept, str):
        return Access(kept)
    return Access(kept["bootstrap"], dict(kept["settings"]))


def save_profiles(profiles: Profiles) -> None:
    """For the eyes of the user only: there may be passwords in it."""
    file = profiles_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        name: {"bootstrap": access.bootstrap, "settings": dict(access.settings)}
        for name, access in profiles.clusters.items()
    }
    temporary = file.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    with open(temporary, "x", opener=_private) as output:
        output.write(json.dumps({"current": profiles.current, "profiles": kept}, indent=2) + "\n")
    temporary.rename(file)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
