"""What a setting is: its type, its rule, how its text is read and written. Knows no particular setting."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, Literal

from ottla.model.values import NamedTuple

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed setting; None is 'not set' and only possible where that is the default."""

Importance = Literal["high", "medium", "low"]
Scope = Literal["topic", "broker", "client"]
UpdateMode = Literal["read-only", "per-broker", "cluster-wide"]
"""Whether a running broker takes a new value: never, for itself only, or also as the cluster's default."""


class ConfigType(IntEnum):
    """The codes are DescribeConfigs' (version 3 and later)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST


class ConfigSource(IntEnum):
    """Where a value comes from; the codes are DescribeConfigs'. Of 1-5 the smaller overrides the larger."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class InvalidSetting(ValueError):
    """A name or value from a user that we cannot take. The text names setting, value and cure."""


class Rule(NamedTuple):
    """What a value must be besides its type: in words for people, and as a check."""

    text: str
    holds: Callable[[Value], bool]


class Synonym(NamedTuple):
    """The broker setting that gives a topic setting its default; `factor` turns its unit into the topic's."""

    name: str
    factor: int = 1


class Setting(NamedTuple):
    name: str
    type: ConfigType
    default: Value
    doc: str  # a sentence or two that help a user to decide
    rule: Rule | None = None
    importance: Importance = "medium"
    scope: Scope = "broker"
    update_mode: UpdateMode = "read-only"
    synonyms: tuple[Synonym, ...] = ()  # in the order of their precedence
    unsupported: str = ""  # why only the default can be had; empty: every valid value is honoured
    inert: str = ""  # why a value is taken but changes nothing; empty: it has its effect
    internal: bool = False  # for tests; not described unless set

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def supported(self) -> bool:
        return not self.unsupported

    @property
    def described(self) -> str:
        """Its documentation, with what keeps it from having an effect."""
        if self.inert:
            return f"{self.doc} Has no effect here: {self.inert}."
        if self.unsupported:
            return f"{self.doc} Only the default is taken: {self.unsupported}."
        return self.doc

    @property
    def expectation(self) -> str:
        """What a valid value is, in words."""
        kind = _KIND_TEXTS[self.type]
        return f"{kind}, {self.rule.text}" if self.rule else kind


SettingTable = dict[str, Setting]

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_KIND_TEXTS = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.STRING: "a text",
    ConfigType.SHORT: "a whole number of 16 bits",
    ConfigType.INT: "a whole number of 32 bits",
    ConfigType.LONG: "a whole number of 64 bits",
    ConfigType.DOUBLE: "a number",
    ConfigType.LIST: "a comma-separated list",
    ConfigType.CLASS: "a class name",
    ConfigType.PASSWORD: "a password",
}
# Python's own int() and float() also take underscores, other scripts' digits and 'nan'; Java's do not.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def at_least(least: float) -> Rule:
    return Rule(f"{least} or more", lambda value: isinstance(value, int | float) and value >= least)


def between(least: float, most: float) -> Rule:
    return Rule(
        f"from {least} to {most}", lambda value: isinstance(value, int | float) and least <= value <= most
    )


def one_of(*choices: str) -> Rule:
    return Rule(f"one of {', '.join(choices)}", lambda value: value in choices)


def some_of(*choices: str) -> Rule:
    return Rule(
        f"one or more of {', '.join(choices)}",
        lambda value: isinstance(value, tuple) and len(value) > 0 and set(value) <= set(choices),
    )


def some_or_none_of(*choices: str) -> Rule:
    return Rule(
        f"of {', '.join(choices)}, or empty",
        lambda value: isinstance(value, tuple) and set(value) <= set(choices),
    )


def parse(setting: Setting, text: str) -> Value:
    """The value that `text` stands for. Raises InvalidSetting."""
    value = _read(setting, text)
    if setting.rule is not None and value is not None and not setting.rule.holds(value):
        raise _refusal(setting, text)
    if setting.unsupported and value != setting.default:
        cure = (
            "leave it unset"
            if setting.default is None
            else f"only {format_value(setting.default)!r} is valid"
        )
        raise InvalidSetting(f"{setting.name}={text}: {setting.unsupported}; {cure}")
    return value


def _read(setting: Setting, text: str) -> Value:
    kind = setting.type
    if kind is ConfigType.PASSWORD:
        return text
    text = text.strip()
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise _refusal(setting, text)
        return text.lower() == "true"
    if kind in _BITS:
        number = int(text) if _WHOLE_NUMBER.match(text) and len(text) <= 20 else None
        limit = 1 << (_BITS[kind] - 1)
        if number is None or not -limit <= number < limit:
            raise _refusal(setting, text)
        return number
    if kind is ConfigType.DOUBLE:
        if not _NUMBER.match(text) or math.isinf(float(text)):
            raise _refusal(setting, text)
        return float(text)
    if kind is ConfigType.LIST:
        # What is there twice counts once (KIP-1161).
        return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text else ()
    return text or None if setting.default is None else text


def _refusal(setting: Setting, text: str) -> InvalidSetting:
    shown = "" if setting.sensitive else text
    return InvalidSetting(f"{setting.name}={shown}: not valid, expected {setting.expectation}")


def format_value(value: Value) -> str | None:
    """The text that Kafka's tools show; None stays None (not set)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    import difflib  # only mistakes need it

    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return found[0] if found else None


class TypedValues:
    """Values by setting name, read with the type that the setting declares; another type is our mistake."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def value(self, name: str) -> Value:
        return self._values[name]

    def flag(self, name: str) -> bool:
        value = self._values[name]
        assert isinstance(value, bool), name
        return value

    def integer(self, name: str) -> int:
        value = self._values[name]
        assert type(value) is int, name
        return value

    def number(self, name: str) -> float:
        value = self._values[name]
        assert isinstance(value, float), name
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str), name
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        assert isinstance(value, tuple), name
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self._values[name] is None else self.text(name)

    def integer_or_none(self, name: str) -> int | None:
        return None if self._values[name] is None else self.integer(name)
