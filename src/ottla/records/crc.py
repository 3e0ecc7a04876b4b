"""CRC32C (Castagnoli), the checksum of a record batch. One name, so that the library behind it can change."""

from __future__ import annotations

from fastcrc import crc32

crc32c = crc32.iscsi
"""(data, initial=None) -> int. Releases the GIL. `initial` is the checksum of the bytes before `data`."""
