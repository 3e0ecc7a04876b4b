"""What users plug into clients: serializers, partitioners, interceptors, assignors; by name, class or object.

A text is one of the built-in names, Java's class name for the same thing, or `module.Class` of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from ottla.client.errors import InvalidSetting
from ottla.model import config_types

Factories = Mapping[str, Callable[[], Any]]


def taken(settings: dict[str, object], *names: str) -> dict[str, object]:
    """Takes pluggable settings out of `settings`, under Kafka's spelling of their names."""
    found = {}
    for argument in list(settings):
        name = argument.replace("_", ".")
        if name in names:
            found[name] = settings.pop(argument)
    return found


def configs_of(settings: dict[str, object], plugged: Mapping[str, object]) -> dict[str, object]:
    """What `configure` is told: all settings under Kafka's names, and what was given as `configs`.

    The latter is for options of the plugins themselves, which the client does not know; it is taken out.
    """
    own = settings.pop("configs", None)
    named = {argument.replace("_", "."): value for argument, value in settings.items()}
    return {**named, **plugged, **(own if isinstance(own, Mapping) else {})}


def resolve(name: str, given: object, built_in: Factories) -> Any:
    """The object that a setting means. Raises InvalidSetting."""
    if isinstance(given, type):
        return given()
    if not isinstance(given, str):
        return given
    short = given.rpartition(".")[2] if given.startswith("org.apache.kafka.") else given
    if short in built_in:
        return built_in[short]()
    module, _, attribute = given.rpartition(".")
    if not module:
        meant = config_types.nearest(given, built_in)
        cure = f"did you mean {meant}?" if meant else f"known are {', '.join(built_in)}, or module.Class"
        raise InvalidSetting(f"{name}: there is no {given!r}", cure)
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise InvalidSetting(f"{name}: {given!r} cannot be loaded: {error}") from error


def resolve_all(name: str, given: object, built_in: Factories) -> list[Any]:
    """Several of them: a list, or a text with commas."""
    if given is None:
        return []
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    items = given if isinstance(given, Iterable) else [given]
    return [resolve(name, each, built_in) for each in items]


def configure(plugin: object, *arguments: object) -> None:
    """Those that want to be."""
    method = getattr(plugin, "configure", None)
    if method is not None:
        method(*arguments)


def close(plugin: object) -> None:
    method = getattr(plugin, "close", None)
    if method is not None:
        method()
