"""Spark's workers collect garbage after each task: what stays for good is not looked at again."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROCESS = """
import gc, sys
from importlib.machinery import ModuleSpec
from ottla.spark.connections import consumer_of

class Node:
    def __init__(self):
        self.itself = self

sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
old = Node()
consumer_of("localhost:1", {})
old.young = Node()
gc.collect()
Node()  # garbage that only a collection finds
print(gc.get_freeze_count() > 10_000, gc.collect(), old.young.itself is old.young)
"""


@pytest.mark.parametrize(
    ("process", "is_set_aside"),
    [("pyspark.daemon", True), ("ottla.spark.worker_daemon", True), ("a_users_program", False)],
)
def test_a_workers_collections_leave_out_what_stays_and_find_what_is_new(
    process: str, is_set_aside: bool
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _PROCESS, process], capture_output=True, text=True, timeout=120, check=True
    )
    set_aside, found, is_young_there = told.stdout.split()
    assert (set_aside, is_young_there) == (str(is_set_aside), "True")
    assert int(found) >= 1
