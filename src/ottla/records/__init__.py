"""The bytes of record batches: headers, checks, CRC, compression, content. Knows no file, socket or clock."""

from ottla.records.kernel_choice import kernel_is_compiled

__all__ = ["kernel_is_compiled"]
