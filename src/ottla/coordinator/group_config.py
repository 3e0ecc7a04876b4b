"""The settings that groups obey, with the names of Kafka."""

from __future__ import annotations

from ottla.model.configs import BrokerConfig
from ottla.model.values import dataclass

MINUTE_MS = 60_000


@dataclass(slots=True, frozen=True)
class GroupConfig:
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 30 * MINUTE_MS
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = 2**31 - 1
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 7 * 24 * 60 * MINUTE_MS
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")  # the first is the default
    can_upgrade: bool = True  # to the new protocol, with members
    can_downgrade: bool = True
    new_member_timeout_ms: int = 5 * MINUTE_MS  # as in Kafka, where it is no setting either

    @classmethod
    def of(cls, config: BrokerConfig) -> GroupConfig:
        policy = config.text("group.consumer.migration.policy")
        return cls(
            session_timeout_ms_min=config.integer("group.min.session.timeout.ms"),
            session_timeout_ms_max=config.integer("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
            size_max=config.integer("group.max.size"),
            offset_metadata_bytes_max=config.integer("offset.metadata.max.bytes"),
            offsets_retention_ms=config.integer("offsets.retention.minutes") * MINUTE_MS,
            consumer_session_timeout_ms=config.integer("group.consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=config.integer("group.consumer.heartbeat.interval.ms"),
            consumer_size_max=config.integer("group.consumer.max.size"),
            consumer_assignors=config.texts("group.consumer.assignors"),
            can_upgrade=policy in ("upgrade", "bidirectional"),
            can_downgrade=policy in ("downgrade", "bidirectional"),
        )
