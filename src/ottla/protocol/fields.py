"""The vocabulary in which messages are declared: one class per message with all its versions.

    class FindCoordinatorRequest(Message, versions=(0, 6), flexible_since=3):
        key: Annotated[str, until(3)] = ""
        key_type: Annotated[Int8, since(1)] = 0
        coordinator_keys: Annotated[Sequence[str], since(4)] = ()

Fields stand in wire order and have the default of Kafka's definition; where that has none, a field that is
nullable in all its versions is None. `X | None` is nullable. A field that a version lacks is left out when it
is `ignorable` or has its default; else encoding refuses. Modules of messages need
`from __future__ import annotations`: annotations are evaluated only when a codec is compiled.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ottla.model.topics import TopicId
from ottla.model.values import NamedTuple
from ottla.protocol.primitives import ByteSource

VERSION_END = sys.maxsize


class Fixed(NamedTuple):
    """A value of a fixed size, by its `struct` letter."""

    letter: str
    size: int


class Text:
    """A UTF-8 string."""


class Blob:
    """Bytes of any length."""


class RecordData:
    """Record batches: a view of the frame when read, any chunk when written."""


class Array(NamedTuple):
    element: WireType


class Struct(NamedTuple):
    type: type[Message]


WireType: TypeAlias = Fixed | Text | Blob | RecordData | Array | Struct

UUID = Fixed("16s", 16)
NO_UUID = bytes(16)

Int8 = Annotated[int, Fixed("b", 1)]
Int16 = Annotated[int, Fixed("h", 2)]
Int32 = Annotated[int, Fixed("i", 4)]
Int64 = Annotated[int, Fixed("q", 8)]
Uint16 = Annotated[int, Fixed("H", 2)]
Uint32 = Annotated[int, Fixed("I", 4)]
Float64 = Annotated[float, Fixed("d", 8)]
Uuid = Annotated[bytes, UUID]
Records = Annotated[bytes | bytearray | memoryview | ByteSource | None, RecordData()]

_PLAIN_TYPES: dict[object, WireType] = {bool: Fixed("?", 1), str: Text(), bytes: Blob(), TopicId: UUID}


class Mark(dict[str, Any]):
    """Attributes of a `Field`, as an annotation."""


ignorable = Mark(ignorable=True)
"""Versions without the field drop it silently, whatever its value."""


def since(version: int) -> Mark:
    """The first version that has the field."""
    return Mark(since=version)


def until(version: int) -> Mark:
    """The last version that has the field."""
    return Mark(until=version)


def nullable_since(version: int) -> Mark:
    """The first version in which the field may be null."""
    return Mark(nullable_since=version)


def tagged(tag: int, *, since: int) -> Mark:
    """The field travels by its tag (KIP-482), and only when it differs from its default."""
    return Mark(tag=tag, since=since)


class Field(NamedTuple):
    """One field of a message, with the versions that have it."""

    name: str
    wire: WireType
    default: Any
    since: int = 0
    until: int = VERSION_END
    tag: int | None = None
    nullable_since: int = VERSION_END
    ignorable: bool = False

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        return version >= self.nullable_since


@dataclass_transform(frozen_default=True)
class MessageType(type):
    """Makes slotted classes of declarations; instances are frozen for the type checker only, so cheap."""

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        versions: tuple[int, int] | None = None,
        flexible_since: int | None = None,
    ) -> MessageType:
        names = tuple(namespace.get("__annotations__", ())) if bases else ()
        for field in names:
            if field not in namespace:
                raise TypeError(f"{name}.{field} needs a default")
        defaults = {field: namespace.pop(field) for field in names}
        namespace["__slots__"] = names
        if bases:
            namespace["__init__"] = _lazy_init(defaults)
            namespace["__field_defaults__"] = defaults
            namespace["__versions__"] = versions
            namespace["__flexible_since__"] = flexible_since
        return super().__new__(mcs, name, bases, namespace)


def _lazy_init(defaults: dict[str, Any]) -> Any:
    """An `__init__` that compiles its better at the first call: most structs are only ever read."""

    def __init__(self: Message, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        message_type: Any = type(self)
        message_type.__init__ = _compile_init(defaults)
        message_type.__init__(self, *args, **kwargs)

    return __init__


def _compile_init(defaults: dict[str, Any]) -> Any:
    parameters = "".join(f", {name}=defaults[{name!r}]" for name in defaults)
    body = "".join(f"\n self.{name} = {name}" for name in defaults) or "\n pass"
    namespace: dict[str, Any] = {"defaults": defaults}
    exec(f"def __init__(self{parameters}):{body}", namespace)
    return namespace["__init__"]


class Message(metaclass=MessageType):
    """A request, a response, or a struct within one; only the former two declare versions."""

    __field_defaults__: ClassVar[dict[str, Any]] = {}
    __versions__: ClassVar[tuple[int, int] | None] = None
    __flexible_since__: ClassVar[int | None] = None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__field_defaults__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Only what differs from the defaults, so that a log line stays short."""
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self.__field_defaults__.items()
            if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def fields_of(message_type: type[Message]) -> tuple[Field, ...]:
    """The declared fields, in wire order."""
    hints = get_type_hints(message_type, include_extras=True)
    return tuple(
        _field(name, hints[name], default) for name, default in message_type.__field_defaults__.items()
    )


def _field(name: str, annotation: Any, default: Any) -> Field:
    attributes = Mark()
    wire: WireType | None = None
    if get_origin(annotation) is Annotated:
        annotation, *marks = get_args(annotation)
        for mark in marks:
            if isinstance(mark, Mark):
                attributes |= mark
            else:
                wire = mark
    if get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
        attributes.setdefault("nullable_since", 0)
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    return Field(name, wire or _wire_type(annotation), default, **attributes)


def _wire_type(annotation: Any) -> WireType:
    if get_origin(annotation) is Annotated:
        wire: WireType = get_args(annotation)[1]
        return wire
    if get_origin(annotation) is Sequence:
        return Array(_wire_type(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return Struct(annotation)
    return _PLAIN_TYPES[annotation]
