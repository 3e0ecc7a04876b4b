"""How to come to a cluster: where its brokers are, and what every client of it must be told."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Access:
    bootstrap: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # there may be passwords among them
