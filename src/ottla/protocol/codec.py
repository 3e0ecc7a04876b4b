"""Messages to bytes and back. Readers and writers are compiled at first use of a (type, version) and kept.

What a peer sends can only raise `Malformed`, what we cannot send raises `ValueError`; both name the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import TypeVar

from ottla.model.errors import Malformed
from ottla.protocol.fields import Message
from ottla.protocol.primitives import Buffer, ByteSource, Chunk
from ottla.protocol.readers import ReaderSource
from ottla.protocol.source import Source
from ottla.protocol.writers import WriterSource

__all__ = ["ByteSource", "Chunk", "decode", "encode", "encode_bytes", "is_flexible", "reader", "writer"]

M = TypeVar("M", bound=Message)


def decode(message_type: type[M], version: int, data: Buffer, position: int = 0) -> tuple[M, int]:
    """The message that starts at `position`, and the position after it. Raises `Malformed`."""
    return reader(message_type, version)(data, position)


def encode(message: Message, version: int) -> list[Chunk]:
    """The message's bytes; record data that is large or not in memory is a chunk of its own."""
    return writer(type(message), version)(message)


def encode_bytes(message: Message, version: int) -> bytes:
    """As `encode`, for messages whose record data, if any, is in memory."""
    return b"".join(writer(type(message), version)(message))  # type: ignore[arg-type]


def is_flexible(message_type: type[Message], version: int) -> bool:
    since = message_type.__flexible_since__
    return since is not None and version >= since


@cache
def reader(message_type: type[M], version: int) -> Callable[[Buffer, int], tuple[M, int]]:
    """The compiled function behind `decode`."""
    _check_version(message_type, version)
    source = ReaderSource(message_type, version, is_flexible(message_type, version)).source
    message = f"{message_type.__name__} v{version}"

    def malformed(error: Exception, position: int) -> Malformed:
        return Malformed(f"{_place(message, source, error)} at byte {position}: {_reason(error)}")

    return source.compile(f"<reader of {message}>", "read", malformed=malformed)  # type: ignore[no-any-return]


@cache
def writer(message_type: type[M], version: int) -> Callable[[M], list[Chunk]]:
    """The compiled function behind `encode`."""
    _check_version(message_type, version)
    source = WriterSource(message_type, version, is_flexible(message_type, version)).source
    message = f"{message_type.__name__} v{version}"

    def unencodable(error: Exception) -> ValueError:
        return ValueError(f"{_place(message, source, error)}: {error}")

    return source.compile(f"<writer of {message}>", "write", unencodable=unencodable)  # type: ignore[no-any-return]


def _check_version(message_type: type[Message], version: int) -> None:
    versions = message_type.__versions__
    if versions is None:
        raise ValueError(f"{message_type.__name__} is part of a message and has no versions of its own")
    first, last = versions
    if not first <= version <= last:
        raise ValueError(f"{message_type.__name__} has versions {first} to {last}, not {version}")


def _place(message: str, source: Source, error: Exception) -> str:
    traceback = error.__traceback__
    assert isinstance(traceback, TracebackType)
    field = source.field_by_line.get(traceback.tb_lineno)
    return f"{message}, {field}" if field else message


def _reason(error: Exception) -> str:
    if isinstance(error, (struct.error, IndexError)):
        return "the bytes end before the value does"
    if isinstance(error, UnicodeDecodeError):
        return f"a string is not UTF-8 ({error.reason})"
    return str(error)
