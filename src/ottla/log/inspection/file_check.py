"""Verification of whatever a path names, in one call."""

from __future__ import annotations

import os

from ottla.log import file_names
from ottla.log.files import Files
from ottla.log.inspection.directory_check import check_directory, is_in_use
from ottla.log.inspection.findings import Finding
from ottla.log.inspection.partition_check import check_partition
from ottla.log.inspection.places import Place, PlaceKind, find_place
from ottla.log.inspection.segment_check import check_segment


def check_place(files: Files, place: Place, *, look_inside: bool = False) -> list[Finding]:
    if place.kind is PlaceKind.LOG_DIRECTORY:
        return check_directory(files, place.path, look_inside=look_inside).findings
    is_running = is_in_use(files, place.log_directory)
    if place.kind is PlaceKind.PARTITION:
        report = check_partition(files, place.path, is_running=is_running, look_inside=look_inside)
        return report.findings
    if place.path.endswith(file_names.SEGMENT_SUFFIXES):
        return _check_segment_file(files, place.path, is_running=is_running, look_inside=look_inside)
    around = find_place(files, os.path.dirname(place.path))  # a file that only its log can judge
    return [finding for finding in check_place(files, around) if finding.path == place.path]


def _check_segment_file(files: Files, path: str, *, is_running: bool, look_inside: bool) -> list[Finding]:
    """A log with its indexes, or only what an index file says."""
    log_path = os.path.splitext(path)[0] + file_names.LOG
    directory, name = os.path.split(log_path)
    logs = [other for other, _ in files.list_directory(directory) if other.endswith(file_names.LOG)]
    if name not in logs:
        raise ValueError(f"{path} is judged by {name}, which is not beside it")
    is_last = name == max(logs)
    report = check_segment(
        files, log_path, is_last=is_last, is_growing=is_last and is_running, look_inside=look_inside
    )
    return [finding for finding in report.findings if path in (log_path, finding.path)]
