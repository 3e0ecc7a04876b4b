"""One cleaning pass as the broker's owner drives it: a job for the cleaner's process, a swap for every
segment that comes back, and a checkpoint at the end.

What blocks (the process, directory syncs, the checkpoints) is done by one worker thread, one thing after the
other; in between the owner takes short steps. When the log has changed in a way that makes the new segments
worthless (truncated, partly dropped by retention, deleted, not compacted any more), the pass is abandoned.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.cleaning_job import Cleaned, CleanedGroup, CleaningJob
from ottla.log.directory import LogDirectory
from ottla.log.segment_swap import SegmentSwap, Stage
from ottla.model.clock import Clock
from ottla.node.cleaner_process import CleanerFailed, CleanerProcess, Trouble
from ottla.node.workers import Workers
from ottla.replica.partition import Partition

Outcome = Cleaned | BaseException | None
"""What a pass ends with: its figures, what failed, or None when it was abandoned."""


class CleaningPass:
    def __init__(
        self,
        partition: Partition,
        directory: LogDirectory,
        process: CleanerProcess,
        worker: Workers,
        clock: Clock,
        ended: Callable[[CleaningPass, Outcome], None],
        fail: Callable[[str, OSError], None],
    ) -> None:
        self.partition = partition
        self._log = partition.log
        self._directory = directory
        self._process = process
        self._worker = worker
        self._clock = clock
        self._ended = ended
        self._fail = fail  # a directory could not be synced: nothing is known of it any more
        self._truncation_count = self._log.segment_files.truncation_count
        self._report: CleanedGroup | Cleaned | None = None  # handed over by the worker

    def start(self, job: CleaningJob) -> None:
        checkpoint = self._directory.begin_cleaning(self._log, job.end_offset)

        def submit() -> None:
            checkpoint.run()
            self._process.submit(job)

        self._worker(submit, self._then(self._await_report))

    def abandon(self) -> None:
        """The process is ended; `ended` follows."""
        self._process.kill()

    @property
    def _is_void(self) -> bool:
        return (
            self.partition.unavailable is not None
            or self._log.segment_files.truncation_count != self._truncation_count
            or not self._log.config.cleanup_compact
        )

    def _then(self, step: Callable[[], None]) -> Callable[[BaseException | None], None]:
        """What follows when the worker is done; an error ends the pass."""

        def done(error: BaseException | None) -> None:
            if error is not None:
                self._end(error)
                return
            step()

        return done

    def _await_report(self) -> None:
        def wait() -> None:
            self._report = self._process.next_report()

        self._worker(wait, self._then(self._take_report))

    def _take_report(self) -> None:
        report = self._report
        if self._is_void:
            self._end(None)
        elif isinstance(report, CleanedGroup):
            swap = self._log.segment_files.begin_swap(report, self._truncation_count)
            if swap is None:
                self._end(None)
            else:
                self._step(swap)
        elif isinstance(report, Cleaned):
            self._checkpoint(report)

    def _step(self, swap: SegmentSwap) -> None:
        if swap.is_over:  # something that could not wait has undone it
            self._end(None)
            return
        try:
            self._log.segment_files.step_swap(swap, self._clock.wall_ms())
        except OSError as error:
            self._end(CleanerFailed(Trouble.SWAP, f"a cleaned segment cannot take its place: {error}"))
            return
        self._worker(swap.sync, lambda error: self._synced(swap, error))

    def _synced(self, swap: SegmentSwap, error: BaseException | None) -> None:
        if isinstance(error, OSError):
            self._fail(self._directory.path, error)
            self._end(None)
        elif swap.stage is Stage.FINISHED:
            self._await_report()
        else:
            self._step(swap)

    def _checkpoint(self, cleaned: Cleaned) -> None:
        writes = self._directory.checkpoints.begin_cleaned(self._log.topic_partition, cleaned.end_offset)
        self._worker(writes.run, self._then(lambda: self._ended(self, cleaned)))

    def _end(self, error: BaseException | None) -> None:
        """Before its end: the process may be in the middle of its job, and is of no more use."""
        if self._is_void or (isinstance(error, CleanerFailed) and error.trouble is Trouble.GONE):
            error = None
        is_here = self.partition.unavailable is None
        self._process.kill()

        def tidy_up() -> None:
            self._process.end()
            if is_here:
                self._log.segment_files.discard_cleaned()

        self._worker(tidy_up, lambda _: self._ended(self, error))
