"""The answer to a request of any API that carries an error, made from the request alone. Pure.

An answer has the shape of its request: a topic's partition asked for is a partition answered. Most errors
belong to the innermost part that has room for one; those about the request as a whole (a coordinator that
has moved, a session that is lost) to the outermost.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.protocol.fields import Array, Field, Fixed, Message, RecordData, Struct, Text, fields_of

_ERRORS = ("error_code", "partition_error_code")
_ROLES = (
    ("name", "topic", "topic_name"),
    ("partition", "partition_index", "index"),
)  # same thing, many names

_OF_THE_WHOLE_REQUEST = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


def refusal(request: Message, response_type: type[Message], version: int, code: ErrorCode) -> Message:
    outermost = code in _OF_THE_WHOLE_REQUEST
    return _mirrored(response_type, request, version, code, outermost=outermost)


def _mirrored(kind: type[Message], source: Any, version: int, code: ErrorCode, *, outermost: bool) -> Message:
    values: dict[str, Any] = {}
    error_field = None
    has_inner = False
    for field in fields_of(kind):
        if not field.is_in(version):
            continue
        if field.name in _ERRORS:
            error_field = field.name
        elif field.name == "error_message":
            values[field.name] = code.text
        elif isinstance(field.wire, RecordData):
            values[field.name] = b""  # null would make some clients stumble
        elif isinstance(field.wire, Array):
            element = field.wire.element
            if isinstance(element, Struct) and _holds_error(element.type, version):
                values[field.name] = [
                    _mirrored(element.type, each, version, code, outermost=outermost)
                    for each in _sequence_for(field.name, source, version)
                ]
                has_inner = has_inner or bool(values[field.name])
        else:
            values |= _plain(field, source, kind)
    if error_field is not None and (outermost or not has_inner):
        values[error_field] = int(code)
        if outermost:
            values = {name: value for name, value in values.items() if not isinstance(value, list)}
    return kind(**values)


@cache
def _holds_error(kind: type[Message], version: int) -> bool:
    fields = [field for field in fields_of(kind) if field.is_in(version)]
    return any(
        field.name in _ERRORS
        or (
            isinstance(field.wire, Array)
            and isinstance(field.wire.element, Struct)
            and _holds_error(field.wire.element.type, version)
        )
        for field in fields
    )


def _sequence_for(name: str, source: Any, version: int) -> list[Any]:
    """What the request listed: under the same name, or first."""
    if not isinstance(source, Message):
        return []
    arrays = [
        field.name
        for field in fields_of(type(source))
        if field.is_in(version) and isinstance(field.wire, Array)
    ]
    if not arrays:
        return []
    return list(getattr(source, name if name in arrays else arrays[0]) or ())


def _plain(field: Field, source: Any, kind: type[Message]) -> dict[str, Any]:
    """The request's value for a field that is no list: an id, a name, a number."""
    if isinstance(source, Message):
        names = next((role for role in _ROLES if field.name in role), (field.name,))
        for name in (field.name, *names):
            if name in source.__field_defaults__ and type(getattr(source, name)) is not tuple:
                return {field.name: getattr(source, name)}
        return {}
    # A list of bare names or numbers: each is the first field of its kind.
    wanted = Text if isinstance(source, str) else Fixed
    first = next(
        each for each in fields_of(kind) if isinstance(each.wire, wanted) and each.name not in _ERRORS
    )
    return {field.name: source} if field == first else {}
