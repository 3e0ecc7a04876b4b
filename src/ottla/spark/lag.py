"""Lag of a Spark query: out of the query's own progress, and mirrored as a consumer group for everybody
else.

A source in Python is not told which query it belongs to, but its tasks are. So the tasks of a run's first
batch commit their starts under a group named after the query, with the reader's id as metadata; the driver's
reader finds the group by that id, and from then on commits the end of finished batches: of each one when
nothing new waits to be read, else of one in half a second, since records wait while it commits.

The group is a mirror: Spark's checkpoint decides where a query goes on. What goes wrong here is logged, no
more.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin_values import CommittedOffset
from ottla.client.errors import ClientError
from ottla.model.topics import TopicPartition
from ottla.spark.offsets import Offsets, from_json
from ottla.spark.options import ReadOptions

log = logging.getLogger(__name__)

_COMMIT_SECONDS = 0.5  # between commits of a query that has something to do
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
    """In the driver: commits what the query has finished."""

    def __init__(self, options: ReadOptions, reader_id: str) -> None:
        self._prefix = options.group_prefix
        self._reader_id = reader_id
        self._group_id = options.group_id
        self._committed: Offsets = {}
        self._tried = -math.inf  # when, by the monotonic clock
        self._failed = False  # said once

    def commit(self, admin: Admin, offsets: Offsets, *, is_idle: bool) -> None:
        news = {target: offset for target, offset in offsets.items() if self._committed.get(target) != offset}
        now = time.monotonic()
        if not news or (not is_idle and now - self._tried < _COMMIT_SECONDS):
            return
        self._tried = now
        try:
            if self._group_id is None:
                self._group_id = self._find_group(admin)
            if self._group_id is None:
                return
            admin.alter_group_offsets(self._group_id, _commits(news, self._reader_id))
        except ClientError as error:
            if not self._failed:
                log.warning(
                    "the progress of the query is not mirrored as group %s: %s", self._group_id, error
                )
            self._failed = True
            return
        self._committed |= news

    def _find_group(self, admin: Admin) -> str | None:
        for group in admin.groups():
            if group.id.startswith(self._prefix):
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
