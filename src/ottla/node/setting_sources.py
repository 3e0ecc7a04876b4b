"""Where settings are written: properties and TOML files, the environment, the command line.

Each source becomes the same list of names and texts, with the place to blame. What a name or value means is
not known here, except which environment variables are settings at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ottla.model.config_types import InvalidSetting, Value, format_value, nearest
from ottla.model.configs import BROKER_SETTINGS
from ottla.model.values import NamedTuple
from ottla.node.properties import parse_properties

COMMAND_LINE = "--set"
ENVIRONMENT_PREFIX = "OTTLA_"
_NO_SETTINGS = ("BOOTSTRAP", "DATA", "DEBUG", "KERNEL", "LOG_FORMAT", "NO_KERNEL", "PROFILE", "TEST_")
"""Environment variables of ours, or beginnings of their names, that are no settings of a broker."""


class Given(NamedTuple):
    name: str
    text: str
    origin: str  # where the user wrote it


def from_file(path: Path) -> list[Given]:
    """A properties file, or TOML when its name ends so. Raises InvalidSetting."""
    try:
        content = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidSetting(f"{path}: byte {error.start} is not UTF-8") from error
    try:
        return _from_toml(path, content) if path.suffix == ".toml" else _from_properties(path, content)
    except InvalidSetting as error:
        raise InvalidSetting(f"{path}: {error}") from error


def _from_properties(path: Path, content: str) -> list[Given]:
    return [Given(name, value, f"{path}:{line}") for name, value, line in parse_properties(content)]


def _from_toml(path: Path, content: str) -> list[Given]:
    """Tables and dotted keys are one thing in TOML: `[log]` with `dirs` and `log.dirs` both are log.dirs."""
    import tomllib

    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting(f"is not TOML: {error}") from error
    return [Given(name, text, str(path)) for name, text in _flattened(document, "")]


def _flattened(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flattened(value, f"{name}.")
        else:
            yield name, _text(name, value)


def _text(name: str, value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = tuple(value)
    if not isinstance(value, bool | int | float | str | tuple):
        raise InvalidSetting(f"{name}: expected a text, a number, true, false or a list of texts")
    known: Value = value
    return format_value(known) or ""


def from_environment(environment: Mapping[str, str]) -> list[Given]:
    """OTTLA_LOG_RETENTION_HOURS is log.retention.hours. Raises InvalidSetting for a name that is none."""
    ours = [name for name in sorted(environment) if name.startswith(ENVIRONMENT_PREFIX)]
    ours = [name for name in ours if not name.removeprefix(ENVIRONMENT_PREFIX).startswith(_NO_SETTINGS)]
    if not ours:
        return []  # as nearly always; the names of all settings take a while
    variables = {_variable(name): name for name in BROKER_SETTINGS}
    given, problems = [], []
    for variable, text in ((name, environment[name]) for name in ours):
        if variable in variables:
            given.append(Given(variables[variable], text, f"environment variable {variable}"))
        else:
            problems.append(f"environment variable {variable} names no setting{_hint(variable, variables)}")
    if problems:
        raise InvalidSetting("\n".join(problems))
    return given


def _variable(name: str) -> str:
    name = name.removeprefix(ENVIRONMENT_PREFIX.lower().replace("_", "."))
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "_").replace("-", "_")


def _hint(variable: str, variables: Iterable[str]) -> str:
    near = nearest(variable.lower(), [known.lower() for known in variables])
    return f"; did you mean {near.upper()}?" if near else ""


def from_assignment(assignment: str) -> Given:
    """`name=value`. Raises InvalidSetting."""
    name, separator, text = assignment.partition("=")
    if not separator or not name.strip():
        raise InvalidSetting(f"{COMMAND_LINE} {assignment}: not valid, expected name=value")
    return Given(name.strip(), text, COMMAND_LINE)
