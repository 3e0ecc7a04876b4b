"""The exceptions for bytes that are wrong. `errors` has them too, beside the table of Kafka's errors, which
need not be loaded by who speaks another protocol.
"""

from __future__ import annotations


class Malformed(ValueError):
    """The peer's bytes are not what the protocol says; nothing of them was applied."""


class CorruptData(Exception):
    """What lies on our disk fails its own checks. The message names file, position and what to run."""
