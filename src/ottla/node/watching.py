"""What those who watch the broker see over HTTP: /metrics, /healthz and /readyz, and what they check.

/readyz answers as soon as clients are served. /healthz answers 200 while the broker's loop turns, and its
body says what is wrong, so that an orchestrator does not restart a broker because its disk is full.
"""

from __future__ import annotations

import json
from http import HTTPStatus

from ottla.controller.controller import Controller
from ottla.log.directories import LogDirectories
from ottla.log.files import Files
from ottla.model.health import Health
from ottla.model.limits import DISK_USABLE_BYTES_LOW
from ottla.model.metrics import Registry
from ottla.node.metrics_page import MetricsPage
from ottla.replica.partitions import Partitions
from ottla.server.group_service import GroupService
from ottla.server.http.application import Page, Pages

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"
_NAMES_SHOWN_MAX = 10


class Watching:
    def __init__(
        self,
        health: Health,
        metrics: Registry,
        controller: Controller,
        partitions: Partitions,
        directories: LogDirectories,
        files: Files,
        groups: GroupService,
    ) -> None:
        self._health = health
        self._partitions = partitions
        self._directories = directories
        self._files = files
        self._metrics_page = MetricsPage(metrics, health, controller, partitions, groups)
        health.add("partitions", self._offline_partitions)
        health.add("directories", self._failed_directories)
        health.add("disk", self._full_disks)

    @property
    def pages(self) -> Pages:
        return {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}

    def _metrics(self) -> Page:
        return Page(self._metrics_page.pieces(), content_type=_PROMETHEUS)

    def _healthz(self) -> Page:
        problems = self._health.problems()
        body = {
            "status": "degraded" if problems else "ok",
            "problems": [problem._asdict() for problem in problems],
        }
        return Page([json.dumps(body) + "\n"], content_type=_JSON)

    def _readyz(self) -> Page:
        return Page(["ready\n"], HTTPStatus.OK)

    def _offline_partitions(self) -> str | None:
        offline = self._partitions.offline
        if not offline:
            return None
        shown = "; ".join(f"{each}: {each.reason}" for each in offline[:_NAMES_SHOWN_MAX])
        return f"{len(offline)} offline: {shown}" + ("; …" if len(offline) > _NAMES_SHOWN_MAX else "")

    def _failed_directories(self) -> str | None:
        failed = [f"{path} failed: {reason}" for path, reason in self._directories.failed.items()]
        return "; ".join(failed) + "; repair the disk, then restart the broker" if failed else None

    def _full_disks(self) -> str | None:
        for directory in self._directories:
            try:
                _, usable_bytes = self._files.space(directory.path)
            except OSError as error:
                return f"{directory.path}: {error.strerror}"
            if usable_bytes < DISK_USABLE_BYTES_LOW:
                return (
                    f"{directory.path} has {usable_bytes >> 20} MiB left; a full disk refuses writes: make "
                    "room, or shorten retention.ms of large topics"
                )
        return None
