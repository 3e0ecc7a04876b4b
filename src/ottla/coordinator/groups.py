"""A group of either protocol."""

from __future__ import annotations

from typing import TypeAlias

from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.consumer_group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup
