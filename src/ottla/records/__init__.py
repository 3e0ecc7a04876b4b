"""The bytes of record batches: headers, checks, CRC, compression, content. Knows no file, socket or clock."""
