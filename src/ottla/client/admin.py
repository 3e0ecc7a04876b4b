"""The admin client: asks and changes topics, settings, offsets, disks. Blocking, for one thread at a time.

A call tries again by itself what may pass (a moved leader, a cut connection) within
`default.api.timeout.ms`, as long as trying again cannot do harm; changes are sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, TypeVar

from ottla.client import (
    admin_configs,
    admin_ends,
    admin_groups,
    admin_offsets,
    admin_topics,
    admin_transactions,
)
from ottla.client.addresses import Address
from ottla.client.admin_values import (
    BrokerVersions,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    FoundOffset,
    GroupDescription,
    GroupListing,
    ListedTransaction,
    LogDir,
    NewTopic,
    OpenTransaction,
    PartitionTransaction,
    TransactionDescription,
)
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker, ClusterView, Topic
from ottla.client.errors import BrokerError, ClientError, UnknownTopic
from ottla.client.offset_spec import AtTime, End, Exact, FromEnd, OffsetSpec, Start, parse_offset
from ottla.client.settings import COMMON_SETTINGS, load
from ottla.model.errors import ErrorCode
from ottla.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.model.topics import TopicPartition

T = TypeVar("T")

_NOTHING: Mapping[str, str] = {}


class Admin:
    def __init__(self, bootstrap: str | Sequence[str], **settings: object) -> None:
        loaded = load(settings, COMMON_SETTINGS)
        self._timeout_ms = loaded.integer("default.api.timeout.ms")
        self._cluster = Cluster(bootstrap, loaded)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- cluster -------------------------------------------------------------------------------------------

    def cluster(self) -> ClusterDescription:
        return admin_topics.describe_cluster(self._cluster, self._deadline_ms())

    def broker_versions(self, broker_id: int | None = None) -> BrokerVersions:
        """What a broker (None: any) speaks, and the features of its cluster."""
        return self._asking(broker_id, admin_topics.broker_versions)

    def find_coordinator(self, key: str, kind: Literal["group", "transaction"] = "group") -> Broker:
        return admin_topics.find_coordinator(self._cluster, key, kind, self._deadline_ms())

    def log_dirs(self, broker_ids: Iterable[int] | None = None) -> tuple[LogDir, ...]:
        """The data directories of brokers (None: all), with what lies there."""
        deadline_ms = self._deadline_ms()
        seen = self._view((), deadline_ms)
        wanted = sorted(seen.brokers) if broker_ids is None else list(broker_ids)
        brokers = [_broker(seen, broker_id) for broker_id in wanted]
        return admin_offsets.log_dirs(self._cluster, brokers, deadline_ms)

    # -- topics --------------------------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None = None, *, internal: bool = False) -> tuple[Topic, ...]:
        """Topics by name (None: all), sorted. A name that is not there raises UnknownTopic."""
        wanted = None if names is None else tuple(names)
        seen = self._view(wanted, self._deadline_ms())
        return admin_topics.topics_of(seen, internal=internal or wanted is not None)

    def topic_names(self, *, internal: bool = False) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.topics(internal=internal))

    def topic(self, name: str) -> Topic:
        (topic,) = self.topics((name,))
        return topic

    def partitions_of(self, name: str) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(name, partition.index) for partition in self.topic(name).partitions)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] = _NOTHING,
        assignment: Mapping[int, Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        new = NewTopic(name, partitions, replication_factor, configs, assignment)
        outcome = self.create_topics((new,), validate_only=validate_only)[name]
        if isinstance(outcome, ClientError):
            raise outcome
        return outcome

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | ClientError]:
        return admin_topics.create_topics(
            self._cluster, tuple(topics), self._deadline_ms(), validate_only=validate_only
        )

    def delete_topic(self, name: str) -> None:
        outcome = self.delete_topics((name,))[name]
        if outcome is not None:
            raise outcome

    def delete_topics(self, names: Iterable[str]) -> dict[str, ClientError | None]:
        """By name, what hindered the deletion; None: it is gone."""
        return admin_topics.delete_topics(self._cluster, tuple(names), self._deadline_ms())

    def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grows a topic to `count` partitions; `assignment` places the new ones."""
        admin_topics.create_partitions(
            self._cluster, name, count, assignment, self._deadline_ms(), validate_only=validate_only
        )

    # -- settings ------------------------------------------------------------------------------------------

    def topic_configs(self, name: str, names: Iterable[str] | None = None) -> dict[str, ConfigEntry]:
        deadline_ms = self._deadline_ms()
        try:
            return self._configs(None, ConfigResource("topic", name), names)
        except UnknownTopic:
            raise admin_topics.unknown_topic(self._cluster, name, deadline_ms) from None

    def broker_configs(
        self, broker_id: int | None = None, names: Iterable[str] | None = None
    ) -> dict[str, ConfigEntry]:
        """Of one broker, or (None) the defaults that were set for the whole cluster."""
        return self._configs(broker_id, _broker_resource(broker_id), names)

    def alter_topic_configs(
        self,
        name: str,
        *,
        set: Mapping[str, str] = _NOTHING,  # noqa: A002  # Kafka's word for it
        delete: Iterable[str] = (),
        append: Mapping[str, str] = _NOTHING,
        subtract: Mapping[str, str] = _NOTHING,
        validate_only: bool = False,
    ) -> None:
        deadline_ms = self._deadline_ms()
        changed = admin_configs.changes(set, delete, append, subtract)
        address = admin_topics.controller_address(self._cluster, deadline_ms)
        resource = ConfigResource("topic", name)
        try:
            admin_configs.alter(
                self._cluster, address, resource, changed, deadline_ms, validate_only=validate_only
            )
        except UnknownTopic:
            raise admin_topics.unknown_topic(self._cluster, name, deadline_ms) from None

    def alter_broker_configs(
        self,
        broker_id: int | None,
        *,
        set: Mapping[str, str] = _NOTHING,  # noqa: A002
        delete: Iterable[str] = (),
        append: Mapping[str, str] = _NOTHING,
        subtract: Mapping[str, str] = _NOTHING,
        validate_only: bool = False,
    ) -> None:
        changed = admin_configs.changes(set, delete, append, subtract)
        deadline_ms = self._deadline_ms()
        address = self._address(broker_id, deadline_ms)
        admin_configs.alter(
            self._cluster,
            address,
            _broker_resource(broker_id),
            changed,
            deadline_ms,
            validate_only=validate_only,
        )

    def config_resources(self) -> tuple[ConfigResource, ...]:
        """What has settings of its own."""
        return self._asking(None, admin_configs.resources)

    # -- offsets -------------------------------------------------------------------------------------------

    def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec | int], *, read_committed: bool = False
    ) -> dict[TopicPartition, FoundOffset]:
        """Start, End and AtTime as brokers answer them; a number is a raw timestamp of the protocol."""
        timestamps = {target: _timestamp(spec) for target, spec in specs.items()}
        return admin_offsets.list_offsets(
            self._cluster, timestamps, self._deadline_ms(), read_committed=read_committed
        )

    def earliest_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._ends(partitions, EARLIEST_TIMESTAMP, read_committed=False)

    def latest_offsets(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will get (read_committed: the last stable offsets)."""
        return self._ends(partitions, LATEST_TIMESTAMP, read_committed=read_committed)

    def resolve_offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: str | int | OffsetSpec,
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, int]:
        """A place (`offset_spec`) as an offset of each partition, within what the partition holds."""
        place = parse_offset(spec, self._cluster.clock.wall_ms())
        return admin_offsets.resolve(
            self._cluster,
            dict.fromkeys(partitions, place),
            self._deadline_ms(),
            read_committed=read_committed,
        )

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Drops what is before these offsets (-1: everything). The partitions' new first offsets."""
        return admin_offsets.delete_records(self._cluster, before, self._deadline_ms())

    # -- groups --------------------------------------------------------------------------------------------

    def groups(self) -> tuple[GroupListing, ...]:
        """All groups of the cluster, by id."""
        return admin_groups.list_groups(self._cluster, self._deadline_ms())

    def group(self, group_id: str) -> GroupDescription:
        return admin_groups.describe_group(self._cluster, group_id, self._deadline_ms())

    def delete_groups(self, ids: Iterable[str]) -> dict[str, ClientError | None]:
        """By id, what hindered the deletion; None: it is gone."""
        return admin_groups.delete_groups(self._cluster, ids, self._deadline_ms())

    def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed; partitions without a commit are left out."""
        wanted = None if partitions is None else tuple(partitions)
        return admin_groups.fetch_offsets(self._cluster, group_id, wanted, self._deadline_ms())

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | CommittedOffset]
    ) -> None:
        """Commits for a group that has no members; one that is not there is made."""
        commits = {
            target: CommittedOffset(each) if isinstance(each, int) else each
            for target, each in offsets.items()
        }
        admin_groups.alter_offsets(self._cluster, group_id, commits, self._deadline_ms())

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        admin_groups.delete_offsets(self._cluster, group_id, tuple(partitions), self._deadline_ms())

    # -- transactions --------------------------------------------------------------------------------------

    def transactions(self, states: Sequence[str] = ()) -> tuple[ListedTransaction, ...]:
        """The transactional ids of all coordinators, in these states (none named: in any)."""
        deadline_ms = self._deadline_ms()
        brokers = self._view((), deadline_ms).brokers.values()
        return admin_transactions.list_transactions(self._cluster, brokers, states, deadline_ms)

    def transaction(self, transactional_id: str) -> TransactionDescription:
        return admin_transactions.describe_transaction(self._cluster, transactional_id, self._deadline_ms())

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> tuple[PartitionTransaction, ...]:
        """Those that have records in the partitions and no end, whatever a coordinator knows of them."""
        return admin_transactions.open_transactions(self._cluster, partitions, self._deadline_ms())

    def fence_producer(self, transactional_id: str) -> None:
        """Whoever writes under the id is fenced, and its open transaction aborted."""
        admin_transactions.fence_producer(self._cluster, transactional_id, self._deadline_ms())

    def end_transactions(
        self, transactions: Iterable[OpenTransaction], *, commit: bool
    ) -> dict[OpenTransaction, ClientError | None]:
        """Ends what `Producer.detach_transaction` left open; by transaction, why not (None: it is ended).

        One that was ended the same way before counts as ended. After TimedOut or a broken connection the
        outcome is open, and may be asked for again.
        """
        return admin_ends.end_transactions(self._cluster, transactions, self._deadline_ms(), commit=commit)

    def end_transaction(self, transaction: OpenTransaction, *, commit: bool = True) -> None:
        error = self.end_transactions([transaction], commit=commit)[transaction]
        if error is not None:
            raise error

    def abort_open_transaction(self, hanging: PartitionTransaction) -> None:
        """Ends it in that partition, past any coordinator: only for one that no coordinator will end."""
        admin_transactions.abort_open(self._cluster, hanging, self._deadline_ms())

    # -- how -----------------------------------------------------------------------------------------------

    def _deadline_ms(self) -> int:
        return self._cluster.now_ms() + self._timeout_ms

    def _view(self, topics: Sequence[str] | None, deadline_ms: int) -> ClusterView:
        return admin_topics.view(self._cluster, topics, deadline_ms)

    def _address(self, broker_id: int | None, deadline_ms: int) -> Address:
        if broker_id is None:
            return self._cluster.any_address()
        return _broker(self._view((), deadline_ms), broker_id).address

    def _asking(self, broker_id: int | None, ask: Callable[[Cluster, Address, int], T]) -> T:
        """A question to one broker (None: any), asked again where that helps."""
        return self._cluster.retry(
            lambda deadline_ms: ask(self._cluster, self._address(broker_id, deadline_ms), deadline_ms),
            self._deadline_ms(),
        )

    def _configs(
        self, broker_id: int | None, resource: ConfigResource, names: Iterable[str] | None
    ) -> dict[str, ConfigEntry]:
        wanted = None if names is None else tuple(names)
        return self._asking(
            broker_id,
            lambda cluster, address, deadline_ms: admin_configs.describe(
                cluster, address, resource, wanted, deadline_ms
            ),
        )

    def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, *, read_committed: bool
    ) -> dict[TopicPartition, int]:
        return admin_offsets.ends(
            self._cluster, partitions, timestamp, self._deadline_ms(), read_committed=read_committed
        )


def _broker_resource(broker_id: int | None) -> ConfigResource:
    return ConfigResource("broker", "" if broker_id is None else str(broker_id))


def _broker(seen: ClusterView, broker_id: int) -> Broker:
    broker = seen.brokers.get(broker_id)
    if broker is None:
        known = ", ".join(str(each) for each in sorted(seen.brokers))
        raise BrokerError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id}", f"the brokers are {known}"
        )
    return broker


def _timestamp(spec: OffsetSpec | int) -> int:
    match spec:
        case Start():
            return EARLIEST_TIMESTAMP
        case End():
            return LATEST_TIMESTAMP
        case AtTime(timestamp_ms):
            return timestamp_ms
        case Exact() | FromEnd():
            raise ValueError(f"{spec} is no question to a broker; resolve_offsets answers it")
        case _:
            return spec
