"""Lag of a Spark query: out of the query's own progress, and mirrored as a consumer group for everybody
else.

A source in Python is not told which query it belongs to, but its tasks are. So the tasks of a run's first
batch commit their starts under a group named after the query, with the reader's id as metadata; the driver's
reader finds the group by that id, and from then on commits the end of each finished batch, in a thread: the
next batch does not wait for it.

The group is a mirror: Spark's checkpoint decides where a query goes on. What goes wrong here is logged, no
more.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin_values import CommittedOffset
from ottla.client.errors import ClientError
from ottla.model.topics import TopicPartition
from ottla.spark.connections import common_settings
from ottla.spark.offsets import Offsets, from_json
from ottla.spark.options import ReadOptions

log = logging.getLogger(__name__)

_SETTLING_SECONDS_MAX = 5.0  # that a query which ends waits for its last commit
_QUERY_ID = "sql.streaming.queryId"


def lag_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """By partition, what a query has not read yet. `progress` is `query.lastProgress`."""
    lag: dict[str, int] = {}
    for source in progress["sources"]:
        end, latest = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
        for target, offset in latest.items():
            lag[str(target)] = max(offset - end.get(target, 0), 0)
    return lag


def _offsets(written: Any) -> Offsets:
    parsed = json.loads(written) if isinstance(written, str) else written
    return from_json(parsed or {})


class ProgressMirror:
    """In the driver: commits what the query has finished, in a thread, so that no record waits for it."""

    def __init__(self, options: ReadOptions, reader_id: str) -> None:
        self._options = options
        self._reader_id = reader_id
        self._thread: _Committing | None = None  # none in the copies that travel to tasks

    def offer(self, offsets: Offsets) -> None:
        """The end of a finished batch, to be committed at once; one that comes meanwhile takes its place."""
        if self._thread is None:
            self._thread = _Committing(self._options, self._reader_id)
            self._thread.start()
        self._thread.offer(offsets)

    def settle(self) -> None:
        """Waits for what was offered, though not for ever."""
        if self._thread is not None:
            self._thread.settle(_SETTLING_SECONDS_MAX)

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.offer(None)
            self._thread.join(_SETTLING_SECONDS_MAX)


class _Committing(threading.Thread):
    def __init__(self, options: ReadOptions, reader_id: str) -> None:
        super().__init__(name="ottla-progress", daemon=True)
        self._options = options
        self._reader_id = reader_id
        self._group_id = options.group_id
        self._changed = threading.Condition()
        self._offered: deque[Offsets | None] = deque()  # the newest alone; None: there will be no more
        self._is_busy = False
        self._committed: Offsets = {}
        self._failed = False  # said once

    def offer(self, offsets: Offsets | None) -> None:
        with self._changed:
            if offsets is not None:
                self._offered.clear()
            self._offered.append(offsets)
            self._changed.notify_all()

    def settle(self, seconds_max: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._offered and not self._is_busy, seconds_max)

    def run(self) -> None:
        with Admin(self._options.bootstrap, **common_settings(self._options.client)) as admin:
            while (offsets := self._next()) is not None:
                try:
                    self._commit(admin, offsets)
                except ClientError as error:
                    self._tell(error)

    def _next(self) -> Offsets | None:
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._offered)
            self._is_busy = True
            return self._offered.popleft()

    def _commit(self, admin: Admin, offsets: Offsets) -> None:
        news = {target: offset for target, offset in offsets.items() if self._committed.get(target) != offset}
        if not news:
            return
        if self._group_id is None:
            self._group_id = self._find_group(admin)
        if self._group_id is not None:
            admin.alter_group_offsets(self._group_id, _commits(news, self._reader_id))
            self._committed |= news

    def _tell(self, error: ClientError) -> None:
        if not self._failed:
            log.warning("the progress of the query is not mirrored as group %s: %s", self._group_id, error)
        self._failed = True

    def _find_group(self, admin: Admin) -> str | None:
        for group in admin.groups():
            if group.id.startswith(self._options.group_prefix):
                commits = admin.group_offsets(group.id).values()
                if any(each.metadata == self._reader_id for each in commits):
                    return group.id
        return None


def announce(admin: Admin, options: ReadOptions, target: TopicPartition, offset: int, reader_id: str) -> None:
    """In a task: names the group after the query, for the driver to find."""
    group_id = options.group_id or _group_of_this_query(options.group_prefix)
    if group_id is None:
        return
    try:
        admin.alter_group_offsets(group_id, _commits({target: offset}, reader_id))
    except ClientError as error:
        log.warning("the progress of the query is not mirrored as group %s: %s", group_id, error)


def _commits(offsets: Offsets, reader_id: str) -> dict[TopicPartition, CommittedOffset]:
    return {target: CommittedOffset(offset, None, reader_id) for target, offset in offsets.items()}


def _group_of_this_query(prefix: str) -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
    return None if query_id is None else f"{prefix}-{query_id}"
