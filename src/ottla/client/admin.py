"""The admin client: asks and changes topics, settings, offsets, disks. Blocking; threads take turns.

A call tries again by itself what may pass (a moved leader, a cut connection) within
`default.api.timeout.ms`, as long as trying again cannot do harm; changes are sent once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import ClassVar

from ottla.client.admin_calls import AdminCalls
from ottla.client.blocking import in_turn
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
        self._user = threading.RLock()  # held during a call
        stays_with_its_process(self)

    def close(self) -> None:
        with self._user:
            self._cluster.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    cluster = in_turn(AdminCalls.cluster)
    broker_versions = in_turn(AdminCalls.broker_versions)
    find_coordinator = in_turn(AdminCalls.find_coordinator)
    log_dirs = in_turn(AdminCalls.log_dirs)
    topics = in_turn(AdminCalls.topics)
    topic_pages = in_turn(AdminCalls.topic_pages)
    topic_names = in_turn(AdminCalls.topic_names)
    topic = in_turn(AdminCalls.topic)
    partitions_of = in_turn(AdminCalls.partitions_of)
    create_topic = in_turn(AdminCalls.create_topic)
    create_topics = in_turn(AdminCalls.create_topics)
    delete_topic = in_turn(AdminCalls.delete_topic)
    delete_topics = in_turn(AdminCalls.delete_topics)
    create_partitions = in_turn(AdminCalls.create_partitions)
    topic_configs = in_turn(AdminCalls.topic_configs)
    broker_configs = in_turn(AdminCalls.broker_configs)
    alter_topic_configs = in_turn(AdminCalls.alter_topic_configs)
    replace_topic_configs = in_turn(AdminCalls.replace_topic_configs)
    alter_broker_configs = in_turn(AdminCalls.alter_broker_configs)
    config_resources = in_turn(AdminCalls.config_resources)
    list_offsets = in_turn(AdminCalls.list_offsets)
    earliest_offsets = in_turn(AdminCalls.earliest_offsets)
    latest_offsets = in_turn(AdminCalls.latest_offsets)
    resolve_offsets = in_turn(AdminCalls.resolve_offsets)
    leader_epoch_ends = in_turn(AdminCalls.leader_epoch_ends)
    delete_records = in_turn(AdminCalls.delete_records)
    groups = in_turn(AdminCalls.groups)
    group = in_turn(AdminCalls.group)
    remove_group_members = in_turn(AdminCalls.remove_group_members)
    delete_groups = in_turn(AdminCalls.delete_groups)
    group_offsets = in_turn(AdminCalls.group_offsets)
    alter_group_offsets = in_turn(AdminCalls.alter_group_offsets)
    delete_group_offsets = in_turn(AdminCalls.delete_group_offsets)
    transactions = in_turn(AdminCalls.transactions)
    transaction = in_turn(AdminCalls.transaction)
    open_transactions = in_turn(AdminCalls.open_transactions)
    fence_producer = in_turn(AdminCalls.fence_producer)
    end_transactions = in_turn(AdminCalls.end_transactions)
    end_transaction = in_turn(AdminCalls.end_transaction)
    abort_open_transaction = in_turn(AdminCalls.abort_open_transaction)
