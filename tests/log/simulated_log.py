"""A log on a simulated disk to which anything may happen: what the models of this room have in common."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from faults.power_cut import PowerCut, SimulatedFiles
from log.building import NOW_MS, PARTITION, TOPIC_ID, config, open_directory
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog

_DISK = "/disk/logs"
_START_OPERATIONS_MAX = 30  # of a start that a power cut may end


class SimulatedLog:
    directory: LogDirectory
    log: PartitionLog

    def __init__(self, seed: int, **settings: Any) -> None:
        """`settings` are values of the topic, or tuples of which one is chosen."""
        self.random = random.Random(seed)
        self.files = SimulatedFiles()
        self.files.has_filesystem_sync = self.random.random() < 0.5
        self.now_ms = NOW_MS
        chosen = {
            name: self.random.choice(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
        }
        self.topic = config(**chosen)

    def operations(self) -> Mapping[Callable[[], None], int]:
        """What may happen in a step, and how often in proportion."""
        raise NotImplementedError

    def step(self) -> None:
        self.now_ms += self.random.randrange(200)
        self.files.now_ms = self.now_ms
        operations = self.operations()
        self.random.choices(list(operations), list(operations.values()))[0]()

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def remove_files(self) -> None:
        removal = self.directory.take_due_deletions(self.now_ms + 120_000)
        if removal is not None:
            removal.run()

    def open(self) -> None:
        self.directory = open_directory(self.files, _DISK, self.topic, now_ms=self.now_ms)
        assert not self.directory.failed, self.directory.failed
        if PARTITION in self.directory.topic_ids:
            self.log = self.directory.logs[PARTITION]
        else:
            self.log = self.directory.create(PARTITION, TOPIC_ID, self.topic, self.now_ms)

    def start_after_power_cut(self) -> None:
        """The machine has stopped, wherever it was; perhaps it does again while it starts."""
        while True:
            self.files = self.files.cut(self.random.randrange(1 << 30))
            if self.random.random() < 0.3:
                self.files.stop_at = self.random.randrange(1, _START_OPERATIONS_MAX)
            try:
                self.open()
                break
            except PowerCut:
                continue
        self.files.stop_at = None
