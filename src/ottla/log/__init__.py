"""Partitions on disk: segments, indexes, producer state, recovery. The only room that opens, writes or
syncs files.

Nothing here starts a thread or reads a clock: time comes in as an argument, and what may block on the disk
(a sync round) is an object whose `run` the caller takes to a thread of its own.
"""
