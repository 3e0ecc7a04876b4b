"""A data directory with everything in it that verification looks at."""

from __future__ import annotations

import os
from pathlib import Path

from log.building import NOW_MS, PARTITION, append, config, new_log, produced, sync
from ottla.log.system_files import SystemFiles
from ottla.records.compression import Codec

FILES = SystemFiles()
VALUES_PER_BATCH = 5
BATCHES = 40


def filled_directory(path: Path) -> str:
    """Stopped cleanly: segments, codecs, idempotent producers, epochs. Returns the path of its partition."""
    topic = config(segment_bytes=2048, index_interval_bytes=300)
    directory, log = new_log(FILES, str(path), topic)
    sequences = {7: 0, 8: 0}
    for number in range(BATCHES):
        values = [b"value %d of batch %d" % (at, number) for at in range(VALUES_PER_BATCH)]
        append(log, values, epoch=number // 15, codec=list(Codec)[number % 5], timestamp=NOW_MS + number * 10)
        producer = 7 + number % 2
        log.append([produced(producer, 0, sequences[producer], 3)], number // 15, NOW_MS)
        sequences[producer] += 3
        sync(log)
    directory.close({PARTITION: log.log_end_offset})
    return os.path.join(str(path), str(PARTITION))


def segment_paths(partition: str, suffix: str = ".log") -> list[str]:
    return sorted(os.path.join(partition, name) for name in os.listdir(partition) if name.endswith(suffix))


def flip(path: str, position: int) -> None:
    data = bytearray(Path(path).read_bytes())
    data[position] ^= 0x55
    Path(path).write_bytes(data)
