"""CRC32C, the checksum of a record batch."""

from __future__ import annotations

from ottla.model.crc import crc32c

__all__ = ["crc32c"]
