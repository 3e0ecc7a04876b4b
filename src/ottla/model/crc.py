"""CRC32C (Castagnoli), of batches and of our files. One name, so that the library behind it can change."""

from __future__ import annotations

from fastcrc import crc32

crc32c = crc32.iscsi
"""(data, initial=None) -> int. Releases the GIL. `initial` is the checksum of the bytes before `data`."""
