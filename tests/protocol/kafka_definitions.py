"""Apache Kafka's message definitions, as kafka-python carries them, and our declarations in the same form."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ottla.protocol.fields import (
    UUID,
    Array,
    Blob,
    Field,
    Fixed,
    Message,
    RecordData,
    Struct,
    Text,
    WireType,
    fields_of,
)

FIXED_NAMES = {
    "b": "int8",
    "h": "int16",
    "i": "int32",
    "q": "int64",
    "H": "uint16",
    "I": "uint32",
    "d": "float64",
    "?": "bool",
    UUID.letter: "uuid",
}


class Versions(NamedTuple):
    first: int
    last: int

    def within(self, outer: Versions) -> Versions:
        return Versions(max(self.first, outer.first), min(self.last, outer.last))

    @property
    def is_empty(self) -> bool:
        return self.first > self.last


class FieldFacts(NamedTuple):
    """What two definitions of a field must agree on, within the versions of the struct it stands in."""

    type: str
    versions: Versions
    nullable: Versions | None
    tag: int | None
    ignorable: bool | None  # None where every version has the field, and it makes no difference
    default: Any
    fields: dict[str, FieldFacts] | None


def definition(name: str) -> dict[str, Any]:
    package = find_spec("kafka")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "protocol" / "schemas" / "resources" / f"{name}.json"
    text = path.read_text()
    loaded: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    _put_in_place(
        loaded["fields"], {each["name"]: each["fields"] for each in loaded.get("commonStructs", ())}
    )
    return loaded


def _put_in_place(fields: list[dict[str, Any]], common: dict[str, list[dict[str, Any]]]) -> None:
    """Structs that are defined once and used in several places."""
    for field in fields:
        shared = common.get(field["type"].removeprefix("[]"))
        if shared is not None:
            field["fields"] = shared
        _put_in_place(field.get("fields", []), common)


def parse_versions(text: str) -> Versions:
    if text.endswith("+"):
        return Versions(int(text[:-1]), sys.maxsize)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


def snake_case(name: str) -> str:
    """`enable_2pc` is the one name where a digit starts a word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("Enable2Pc", "Enable_2pc")).lower()


def defined_facts(fields: list[dict[str, Any]], outer: Versions) -> dict[str, FieldFacts]:
    facts = {}
    for field in fields:
        versions = parse_versions(field["versions"]).within(outer)
        if versions.is_empty:
            continue
        nullable = _defined_nullable(field, versions)
        is_always_there = versions == outer
        facts[snake_case(field["name"])] = FieldFacts(
            type=field["type"],
            versions=versions,
            nullable=nullable,
            tag=field.get("tag"),
            ignorable=None if is_always_there else field.get("ignorable", False),
            default=_defined_default(field, nullable == versions),
            fields=defined_facts(field["fields"], versions) if "fields" in field else None,
        )
    return facts


def _defined_nullable(field: dict[str, Any], versions: Versions) -> Versions | None:
    if "nullableVersions" not in field:
        return None
    return parse_versions(field["nullableVersions"]).within(versions)


def _defined_default(field: dict[str, Any], always_nullable: bool) -> Any:
    """The default, in Python; without one, a field that is always nullable is null with us."""
    text = str(field["default"]) if "default" in field else None
    if text == "null" or (text is None and always_nullable):
        return None
    kind = field["type"]
    if kind.startswith("[]"):
        return ()
    if kind == "string":
        return text or ""
    if kind == "bytes":
        return (text or "").encode()
    if kind == "bool":
        return (text or "false").lower() == "true"
    if kind == "uuid":
        return bytes(16)
    if kind in FIXED_NAMES.values():
        return int(text or "0", 0)
    return "defaults of the struct"


def declared_facts(message_type: type[Message], outer: Versions) -> dict[str, FieldFacts]:
    facts = {}
    for field in fields_of(message_type):
        versions = Versions(field.since, field.until).within(outer)
        inner = field.wire.element if isinstance(field.wire, Array) else field.wire
        is_always_there = versions == outer
        facts[field.name] = FieldFacts(
            type=_type_name(field.wire),
            versions=versions,
            nullable=_declared_nullable(field, versions),
            tag=field.tag,
            ignorable=None if is_always_there else field.ignorable,
            default="defaults of the struct" if isinstance(field.default, Message) else field.default,
            fields=declared_facts(inner.type, versions) if isinstance(inner, Struct) else None,
        )
    return facts


def _declared_nullable(field: Field, versions: Versions) -> Versions | None:
    nullable = Versions(field.nullable_since, sys.maxsize).within(versions)
    return None if nullable.is_empty else nullable


def _type_name(wire: WireType) -> str:
    match wire:
        case Fixed(letter, _):
            return FIXED_NAMES[letter]
        case Text():
            return "string"
        case Blob():
            return "bytes"
        case RecordData():
            return "records"
        case Array(element):
            return "[]" + _type_name(element)
        case Struct(inner):
            return inner.__name__
    raise AssertionError(wire)
