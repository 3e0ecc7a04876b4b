"""One directory of `log.dirs`: its lock, whose it is, the logs in it, and the checkpoints beside them.

After a clean stop (the marker file is there) logs are opened as they are. Without it each is recovered from
its recovery point, and everything found is synced before the directory is handed out. A log that cannot be
opened is set aside in `failed`; the others serve.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ottla.log import checkpoints, file_names
from ottla.log.ballast import BALLAST_BYTES, Ballast
from ottla.log.checkpoint_writes import CheckpointWrites
from ottla.log.creation import Creation, NewLog
from ottla.log.deletions import Deletions, Removal, Renaming
from ottla.log.directory_checkpoints import DirectoryCheckpoints
from ottla.log.directory_properties import claim_directory
from ottla.log.files import Files, Lock
from ottla.log.flusher import Flusher
from ottla.log.loading import Hints, new_log, open_log
from ottla.log.log_state import Storage
from ottla.log.open_files import OPEN_FILES_MAX, OpenFiles
from ottla.log.partition_log import PartitionLog
from ottla.model.config_types import LONG_MAX
from ottla.model.configs import TopicConfig
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicId, TopicPartition

_log = logging.getLogger(__name__)

LOCK = ".lock"


class NotStoppedCleanly(Exception):
    """The files could not be completed. Nothing is lost; the next start has to recover."""


class LogDirectory:
    def __init__(
        self,
        path: str,
        files: Files,
        *,
        cluster_id: str,
        node_id: int,
        config_of: Callable[[str], TopicConfig],
        now_ms: int,
        open_files_max: int = OPEN_FILES_MAX,
        ballast_bytes: int = BALLAST_BYTES,
    ) -> None:
        """Lock and load. DirectoryLocked, WrongDirectory: the broker must not start on it."""
        self.path = os.path.abspath(path)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.topic_ids: dict[TopicPartition, TopicId] = {}  # of the logs, from partition.metadata
        self.failed: dict[TopicPartition, Exception] = {}  # logs that could not be opened, or failed later
        self.coming: set[TopicPartition] = set()  # whose files are being made
        self._files = files
        files.make_directories(self.path)
        self._lock: Lock = files.lock(self._file(LOCK))
        try:
            self.properties = claim_directory(files, self.path, cluster_id, node_id)
            self._deletions = Deletions(files)
            self.ballast = Ballast(files, self.path, ballast_bytes)
            self._storage = Storage(
                OpenFiles(files, open_files_max),
                self._deletions,
                self.ballast,
                files.filesystem_sync(self.path),
            )
            self.was_clean = self._take_clean_marker()
            self.checkpoints = DirectoryCheckpoints(files, self.path, self.ballast, self.logs, self.failed)
            self._load(config_of, now_ms)
            self._sync()
            if not self.was_clean:
                self.checkpoints.begin().run()
        except BaseException:
            self._lock.release()
            raise

    # -- loading -------------------------------------------------------------------------------------------

    def _take_clean_marker(self) -> bool:
        """Whether the last stop was clean. From here on a crash is one."""
        marker = self._file(checkpoints.CLEAN_SHUTDOWN)
        if not self._files.exists(marker):
            return False
        self._files.remove(marker)
        self._files.sync_directory(self.path)
        return True

    def _load(self, config_of: Callable[[str], TopicConfig], now_ms: int) -> None:
        for name, is_directory in self._files.list_directory(self.path):
            if not is_directory:
                continue
            if file_names.is_delete_directory(name):
                self._deletions.schedule([self._file(name)], now_ms)
                continue
            partition = file_names.parse_directory(name)
            if partition is None:
                _log.warning("%s is no partition's directory and is left alone", self._file(name))
                continue
            try:
                self.ballast.help(partial(self._load_one, partition, config_of(partition.topic), now_ms))
            except (CorruptData, OSError) as error:
                _log.error("%s stays offline: %s", partition, error)
                self.failed[partition] = error

    def _load_one(self, partition: TopicPartition, config: TopicConfig, now_ms: int) -> None:
        directory = self._file(str(partition))
        noted = self.checkpoints
        recovery_point = noted.recovery_points.get(partition, 0)
        hints = Hints(
            self.was_clean,
            recovery_point,
            noted.log_starts.get(partition),
            is_dense=self.properties.was_ours and noted.cleaned_offsets.get(partition, 0) <= recovery_point,
            listed=noted.listed_segments(partition),
        )
        metadata = os.path.join(directory, checkpoints.PARTITION_METADATA)
        try:
            self.topic_ids[partition] = checkpoints.decode_partition_metadata(self._files.read_all(metadata))
        except FileNotFoundError:
            _log.warning("%s has no %s", directory, checkpoints.PARTITION_METADATA)
        except CorruptData:
            if hints.recovery_point > 0:
                raise
            _log.warning("%s was created just before a crash", directory)
            self._files.remove(metadata)  # or a start after this one, with a recovery point, would mind it
            self._files.sync_directory(directory)
        self.logs[partition] = open_log(
            self._storage_of(directory), directory, partition, config, hints, now_ms
        )

    def _storage_of(self, directory: str) -> Storage:
        """A partition's directory may be a link to another filesystem, which is not synced with this one."""
        whole = self._storage.filesystem_sync
        if whole is not None and self._files.device(directory) != whole.device:
            return self._storage._replace(filesystem_sync=None)
        return self._storage

    # -- partitions come and go ----------------------------------------------------------------------------

    @property
    def partition_count(self) -> int:
        """Those on their way included."""
        return len(self.logs) + len(self.coming)

    def begin_creation(self, new_logs: Sequence[NewLog]) -> Creation:
        """What a worker has to do for new, empty logs; `finish_creation` takes them over.

        A log without a topic id, which a crash right after its creation can leave, becomes the topic's.
        """
        for new in new_logs:
            new.has_log = new.partition in self.logs and new.partition not in self.topic_ids
            try:
                if not new.has_log:
                    self.ballast.check()
            except OSError as error:
                new.problem = error
        self.coming.update(new.partition for new in new_logs)
        before = self.checkpoints.before_creation([new.partition for new in new_logs if new.problem is None])
        return Creation(self._files, self.path, new_logs, before)

    def finish_creation(self, creation: Creation, now_ms: int) -> None:
        """Those whose files were made are in `logs`; their names are durable after their first round."""
        for error in creation.failures:
            self.ballast.note(error)
        for new in creation.new_logs:
            self.coming.discard(new.partition)
            if new.problem is not None:
                continue
            if not new.has_log:
                directory = self._file(str(new.partition))
                self.logs[new.partition] = new_log(
                    self._storage, directory, new.partition, new.config, now_ms
                )
            self.topic_ids[new.partition] = new.topic_id

    def create(
        self, partition: TopicPartition, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> PartitionLog:
        """The same for one log, all of it here and now."""
        new = NewLog(partition, topic_id, config)
        creation = self.begin_creation([new])
        creation.run()
        self.finish_creation(creation, now_ms)
        if new.problem is not None:
            raise new.problem
        return self.logs[partition]

    def set_aside(self, partition: TopicPartition, error: Exception) -> None:
        """The log is not to be trusted any more: it is not touched again, and a person must look at it."""
        self.logs.pop(partition).close()
        self.failed[partition] = error

    def begin_deletion(self, partitions: Mapping[TopicPartition, int]) -> Renaming:
        """Of partitions, with how long their files are kept (ms): a worker renames their directories.

        Should a power cut bring an old name back, its topic id tells that it is nobody's.
        """
        renames = []
        for partition, delay_ms in partitions.items():
            log = self.logs.pop(partition, None)
            self.failed.pop(partition, None)
            self.topic_ids.pop(partition, None)
            if log is not None:
                log.close()
            directory = self._file(str(partition))
            self._deletions.forget_below(directory)
            renames.append((directory, self._file(file_names.delete_directory_name(partition)), delay_ms))
        return Renaming(self._files, renames)

    def finish_deletion(self, renaming: Renaming, now_ms: int) -> None:
        """What was renamed is removed when its time has come; what was not, the next start finds."""
        for path, delay_ms in renaming.renamed:
            self._deletions.schedule([path], now_ms + delay_ms)
        for path, error in renaming.problems:
            _log.error("%s is not needed any more but cannot be removed, do it by hand: %s", path, error)

    def delete(self, partition: TopicPartition, now_ms: int, delay_ms: int) -> None:
        """The same for one partition, all of it here and now."""
        renaming = self.begin_deletion({partition: delay_ms})
        renaming.run()
        self.finish_deletion(renaming, now_ms)

    def truncate(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Cut the log's end, with the checkpoints lowered before: what was cut must not look damaged."""
        log.segment_files.settle_swap()
        # The batch that spans `offset` goes too, so the end may be lower.
        self.checkpoints.lower(log.topic_partition, log.segment_base(offset))
        log.truncate_to(offset, now_ms)

    def restart(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Drop everything in the log and go on, empty, at `offset`."""
        log.segment_files.settle_swap()
        self.checkpoints.restart(log.topic_partition, offset)
        log.restart_at(offset, now_ms)

    def take_due_deletions(self, now_ms: int) -> Removal | None:
        """What was renamed long enough ago, on a full disk all of it; the caller runs the removal, best in a
        worker thread.
        """
        self.drop_expired(now_ms)
        return self._deletions.take_due(LONG_MAX if self.ballast.is_spent else now_ms)

    def drop_expired(self, now_ms: int) -> None:
        """The segments before the log starts that a checkpoint holds."""
        for partition, start_offset in self.checkpoints.take_settled_starts().items():
            log = self.logs.get(partition)
            if log is not None and log.first_base_offset < start_offset <= log.log_start_offset:
                log.segment_files.drop_before(start_offset, now_ms)

    def begin_cleaning(self, log: PartitionLog, end_offset: int) -> CheckpointWrites:
        """A pass may replace the segments before `end_offset` once this is written: a crash is recovered from
        the checkpointed recovery point on as if nothing there had been cleaned, and no list of segments may
        name one that the pass takes away. `segment_files.end_pass` ends it.
        """
        log.segment_files.begin_pass(end_offset)
        return self.checkpoints.begin()

    # -- the rest ------------------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs.values())

    def space(self) -> tuple[int, int]:
        """Bytes (in all, usable) of the filesystem."""
        return self._files.space(self.path)

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Stop cleanly: complete and sync everything, then leave the marker. No round may be under way.

        A disk so full that the ballast does not help costs the marker and nothing else: NotStoppedCleanly is
        raised, and the next start recovers. A failed sync is raised as it is.
        """
        try:
            problem = self._complete_logs()
            self._sync()
            if problem is None:
                problem = self._write_marker(high_watermarks)
            if problem is not None:
                raise NotStoppedCleanly(f"{self.path}: {problem}") from problem
        finally:
            self.abandon()

    def _complete_logs(self) -> OSError | None:
        try:
            for log in self.logs.values():
                self.ballast.help(log.prepare_close)
        except OSError as error:
            return error
        return None

    def _write_marker(self, high_watermarks: Mapping[TopicPartition, int] | None) -> OSError | None:
        if self.failed:
            return None  # they are not complete; the next start looks at all of them
        marker = self._file(checkpoints.CLEAN_SHUTDOWN)
        try:
            self.checkpoints.begin(high_watermarks).run()
            self.ballast.help(
                lambda: self._files.write_atomically(marker, checkpoints.encode_clean_shutdown())
            )
        except OSError as error:
            return error
        return None

    def abandon(self) -> None:
        """Let go of everything without completing it: the next start recovers."""
        for log in self.logs.values():
            log.close()
        self._lock.release()

    def _sync(self) -> None:
        flusher = Flusher()
        for log in self.logs.values():
            flusher.mark_dirty(log)
        everything = flusher.next_round()
        if everything is not None:
            everything.run()
            everything.raise_failure()
            flusher.finish(everything)

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)
