"""The files of new partitions: the owner decides which, a worker makes them, the owner takes them over.

`Creation.run` touches files and nothing else. Files that cannot be made whole are not left behind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from ottla.log import checkpoints, file_names
from ottla.log.checkpoint_writes import CheckpointWrites
from ottla.log.files import Files
from ottla.model.configs import TopicConfig
from ottla.model.topics import TopicId, TopicPartition

_FIRST_SEGMENT = file_names.offset_name(0, "")


class NewLog:
    """One partition whose files are to be made."""

    __slots__ = ("config", "has_log", "partition", "problem", "topic_id")

    def __init__(self, partition: TopicPartition, topic_id: TopicId, config: TopicConfig) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.has_log = False  # found without a topic id, as a crash can leave it: only that is added
        self.problem: OSError | None = None  # why it has no files


class Creation:
    """Of one log directory. `run` may be taken to a worker thread; nobody else looks at these files yet."""

    __slots__ = ("_before", "_directory", "_files", "failures", "new_logs")

    def __init__(
        self, files: Files, directory: str, new_logs: Sequence[NewLog], before: Sequence[CheckpointWrites]
    ) -> None:
        self.new_logs = new_logs
        self.failures: list[OSError] = []  # that `run` met
        self._files = files
        self._directory = directory
        self._before = before  # what must be on disk first

    def run(self) -> None:
        try:
            for writes in self._before:
                writes.run()
        except OSError as error:
            self.failures.append(error)
            for new in self.new_logs:
                new.problem = new.problem or error
        for new in self.new_logs:
            if new.problem is None:
                try:
                    self._make(new)
                except OSError as error:
                    self.failures.append(error)
                    new.problem = error

    def _make(self, new: NewLog) -> None:
        directory = os.path.join(self._directory, str(new.partition))
        metadata = os.path.join(directory, checkpoints.PARTITION_METADATA)
        identity = checkpoints.encode_partition_metadata(new.topic_id)
        if new.has_log:
            self._files.write_atomically(metadata, identity)
            return
        if self._files.exists(directory):
            self._files.remove_tree(directory)  # what a creation that failed has left
        self._files.make_directory(directory)
        try:
            self._files.write_new(metadata, identity).close()
            make_segment_files(self._files, directory, new.config)
        except OSError:
            with contextlib.suppress(OSError):
                self._files.remove_tree(directory)
            raise


def make_segment_files(files: Files, directory: str, config: TopicConfig) -> None:
    """Of the first, empty segment of a log."""
    stem = os.path.join(directory, _FIRST_SEGMENT)
    log = files.create_anew(stem + file_names.LOG)
    try:
        if config.preallocate:
            log.reserve(config.segment_bytes)
    finally:
        log.close()
    files.create_anew(stem + file_names.OFFSET_INDEX).close()
    files.create_anew(stem + file_names.TIME_INDEX).close()
