"""The admin client: asks and changes topics, settings, offsets, disks. Blocking, for one thread at a time.

A call tries again by itself what may pass (a moved leader, a cut connection) within
`default.api.timeout.ms`, as long as trying again cannot do harm; changes are sent once.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar

from ottla.client.admin_calls import AdminCalls
from ottla.client.blocking import blocking
from ottla.client.cluster import Cluster
from ottla.client.forks import stays_with_its_process
from ottla.client.settings import COMMON_SETTINGS, bootstrap_of, load


class Admin:
    _cluster_type: ClassVar[type[Cluster]] = Cluster

    def __init__(self, bootstrap: str | Sequence[str] = "", **settings: object) -> None:
        bootstrap = bootstrap_of(bootstrap, settings)
        loaded = load(settings, COMMON_SETTINGS)
        self._cluster = self._cluster_type(bootstrap, loaded)
        self._calls = AdminCalls(self._cluster, loaded.integer("default.api.timeout.ms"))
        stays_with_its_process(self)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    cluster = blocking(AdminCalls.cluster)
    broker_versions = blocking(AdminCalls.broker_versions)
    find_coordinator = blocking(AdminCalls.find_coordinator)
    log_dirs = blocking(AdminCalls.log_dirs)
    topics = blocking(AdminCalls.topics)
    topic_pages = blocking(AdminCalls.topic_pages)
    topic_names = blocking(AdminCalls.topic_names)
    topic = blocking(AdminCalls.topic)
    partitions_of = blocking(AdminCalls.partitions_of)
    create_topic = blocking(AdminCalls.create_topic)
    create_topics = blocking(AdminCalls.create_topics)
    delete_topic = blocking(AdminCalls.delete_topic)
    delete_topics = blocking(AdminCalls.delete_topics)
    create_partitions = blocking(AdminCalls.create_partitions)
    topic_configs = blocking(AdminCalls.topic_configs)
    broker_configs = blocking(AdminCalls.broker_configs)
    alter_topic_configs = blocking(AdminCalls.alter_topic_configs)
    replace_topic_configs = blocking(AdminCalls.replace_topic_configs)
    alter_broker_configs = blocking(AdminCalls.alter_broker_configs)
    config_resources = blocking(AdminCalls.config_resources)
    list_offsets = blocking(AdminCalls.list_offsets)
    earliest_offsets = blocking(AdminCalls.earliest_offsets)
    latest_offsets = blocking(AdminCalls.latest_offsets)
    resolve_offsets = blocking(AdminCalls.resolve_offsets)
    leader_epoch_ends = blocking(AdminCalls.leader_epoch_ends)
    delete_records = blocking(AdminCalls.delete_records)
    groups = blocking(AdminCalls.groups)
    group = blocking(AdminCalls.group)
    remove_group_members = blocking(AdminCalls.remove_group_members)
    delete_groups = blocking(AdminCalls.delete_groups)
    group_offsets = blocking(AdminCalls.group_offsets)
    alter_group_offsets = blocking(AdminCalls.alter_group_offsets)
    delete_group_offsets = blocking(AdminCalls.delete_group_offsets)
    transactions = blocking(AdminCalls.transactions)
    transaction = blocking(AdminCalls.transaction)
    open_transactions = blocking(AdminCalls.open_transactions)
    fence_producer = blocking(AdminCalls.fence_producer)
    end_transactions = blocking(AdminCalls.end_transactions)
    end_transaction = blocking(AdminCalls.end_transaction)
    abort_open_transaction = blocking(AdminCalls.abort_open_transaction)
