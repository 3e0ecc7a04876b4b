"""Offsets of partitions as Spark keeps them in checkpoints and options: {"topic":{"0":23}}. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.topics import TopicPartition

Offsets = dict[TopicPartition, int]
Json = dict[str, dict[str, int]]


def to_json(offsets: Mapping[TopicPartition, int]) -> Json:
    """In a fixed order: Spark compares the texts to see whether there is anything new."""
    written: Json = {}
    for target in sorted(offsets):
        written.setdefault(target.topic, {})[str(target.partition)] = offsets[target]
    return written


def from_json(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in written.items()
        for partition, offset in partitions.items()
    }
