"""Numbers in Prometheus' text format, under the names that kafka_exporter and Strimzi gave them.

Made in pieces on the owner's thread, a few dozen partitions at a time. Everything without such a name is
`ottla_…`.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from ottla import __version__
from ottla.controller.cluster import NO_LEADER, PartitionImage
from ottla.controller.controller import Controller
from ottla.model.health import Health
from ottla.model.metrics import HISTOGRAM_BUCKETS, Registry
from ottla.model.values import NamedTuple
from ottla.node.group_metrics import escaped, group_pieces
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.server.group_service import GroupService

_PARTITIONS_PER_PIECE = 32
_QUANTILES = (0.5, 0.95, 0.99)


class _TopicFamily(NamedTuple):
    name: str
    text: str
    value: Callable[[PartitionImage, Partition | None], int | None]  # None: not known on this broker


_TOPIC_FAMILIES = (
    _TopicFamily(
        "kafka_topic_partition_current_offset",
        "The next offset that readers will get to see.",
        lambda _, partition: partition.high_watermark if partition else None,
    ),
    _TopicFamily(
        "kafka_topic_partition_oldest_offset",
        "The first offset that is kept.",
        lambda _, partition: partition.log_start_offset if partition else None,
    ),
    _TopicFamily(
        "kafka_topic_partition_leader",
        "The leader's broker id, -1 without one.",
        lambda state, _: state.leader,
    ),
    _TopicFamily(
        "kafka_topic_partition_leader_is_preferred",
        "1 when the first replica leads.",
        lambda state, _: int(state.leader == state.replicas[0]),
    ),
    _TopicFamily("kafka_topic_partition_replicas", "Replicas.", lambda state, _: len(state.replicas)),
    _TopicFamily(
        "kafka_topic_partition_in_sync_replica", "Replicas in sync.", lambda state, _: len(state.isr)
    ),
    _TopicFamily(
        "kafka_topic_partition_under_replicated_partition",
        "1 when a replica is not in sync.",
        lambda state, _: int(len(state.isr) < len(state.replicas)),
    ),
)

_TRAFFIC = (
    ("messagesin", "Records appended since the start."),
    ("bytesin", "Bytes appended since the start."),
    ("bytesout", "Bytes given to fetches since the start."),
)

Labels = dict[str, str]


class MetricsPage:
    def __init__(
        self,
        registry: Registry,
        health: Health,
        controller: Controller,
        partitions: Partitions,
        groups: GroupService,
    ) -> None:
        self._registry = registry
        self._health = health
        self._controller = controller
        self._partitions = partitions
        self._groups = groups

    def pieces(self) -> Iterator[str]:
        yield self._cluster()
        yield self._broker()
        yield self._requests()
        yield self._own()
        yield _process()
        yield from self._topics()
        yield from group_pieces(self._groups, self._partitions)

    # -- cluster and broker ----------------------------------------------------------------------------------

    def _cluster(self) -> str:
        image = self._controller.image
        states = [state for topic in image.topics.values() for state in topic.partitions]
        offline = sum(state.leader == NO_LEADER for state in states) + len(self._partitions.offline)
        return "".join(
            (
                _gauge("kafka_brokers", "Brokers of the cluster.", len(image.brokers)),
                _family(
                    "kafka_broker_info",
                    "gauge",
                    "A broker of the cluster, and where clients find it.",
                    [
                        ({"id": str(broker.id), "address": f"{place.host}:{place.port}"}, 1)
                        for broker in image.brokers.values()
                        for place in broker.endpoints[:1]
                    ],
                ),
                _gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 on the controller.", 1),
                _gauge(
                    "kafka_controller_kafkacontroller_offlinepartitionscount",
                    "Partitions without a leader.",
                    offline,
                ),
                _gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics.", len(image.topics)),
                _gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions.", len(states)),
            )
        )

    def _broker(self) -> str:
        values = self._registry.gauges()
        problems = {problem.check for problem in self._health.problems()}
        return "".join(
            (
                _family("ottla_build_info", "gauge", "Which version runs.", [({"version": __version__}, 1)]),
                _gauge(
                    "kafka_server_replicamanager_partitioncount",
                    "Partitions on this broker.",
                    len(self._partitions),
                ),
                _gauge(
                    "kafka_server_replicamanager_leadercount",
                    "Partitions that this broker leads.",
                    len(self._partitions),
                ),
                _gauge(
                    "kafka_server_replicamanager_underreplicatedpartitions",
                    "Led partitions with a replica that is not in sync.",
                    sum(each.in_sync_count < each.replica_count for each in self._partitions),
                ),
                _gauge(
                    "kafka_server_replicamanager_offlinereplicacount",
                    "Partitions whose files cannot be used.",
                    len(self._partitions.offline),
                ),
                _gauge(
                    "kafka_server_socket_server_metrics_connection_count",
                    "Open connections.",
                    values["server.connections.open"],
                ),
                _family(
                    "ottla_health_problem",
                    "gauge",
                    "1 when a check of the broker's health fails; /healthz says why.",
                    [({"check": check}, int(check in problems)) for check in self._health.checks],
                ),
            )
        )

    def _requests(self) -> str:
        counters, histograms = self._registry.counters(), self._registry.histograms()
        names = [name.split(".")[1] for name in counters if _is_of_request(name, "count")]
        return "".join(
            (
                _family(
                    "kafka_network_requestmetrics_requests_total",
                    "counter",
                    "Requests by API.",
                    [({"request": name}, counters[f"requests.{name}.count"]) for name in names],
                ),
                _family(
                    "kafka_network_requestmetrics_errors_total",
                    "counter",
                    "Requests that were answered with an error.",
                    [({"request": name}, counters[f"requests.{name}.errors"]) for name in names],
                ),
                _family(
                    "kafka_network_requestmetrics_totaltimems",
                    "gauge",
                    "Milliseconds from arrival to answer, within a factor of two, since the start.",
                    [
                        (
                            {"request": name, "quantile": str(share)},
                            histograms[f"requests.{name}.time"].quantile_us(share) / 1000,
                        )
                        for name in names
                        for share in _QUANTILES
                        if histograms[f"requests.{name}.time"].count
                    ],
                ),
            )
        )

    def _own(self) -> str:
        """What Kafka has no name for."""
        pieces = [
            _family(_own_name(name, "_total"), "counter", name, [({}, value)])
            for name, value in self._registry.counters().items()
            if not name.startswith("requests.")
        ]
        pieces += [
            _family(_own_name(name), "gauge", name, [({}, value)])
            for name, value in self._registry.gauges().items()
        ]
        for name, histogram in self._registry.histograms().items():
            if not name.startswith("requests."):
                pieces.append(
                    _histogram(_own_name(name, "_seconds"), name, histogram.buckets, histogram.sum_us)
                )
        return "".join(pieces)

    # -- topics --------------------------------------------------------------------------------------------

    def _topics(self) -> Iterator[str]:
        """Samples of one family must stand together, so the partitions are gone through once for each."""
        image = self._controller.image
        yield _family(
            "kafka_topic_partitions",
            "gauge",
            "Partitions of the topic.",
            [({"topic": topic.name}, len(topic.partitions)) for topic in image.topics.values()],
        )
        yield from self._traffic()
        for family in _TOPIC_FAMILIES:
            yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} gauge\n"
            names = iter(
                [
                    (topic.name, index)
                    for topic in image.topics.values()
                    for index in range(len(topic.partitions))
                ]
            )
            while part := list(islice(names, _PARTITIONS_PER_PIECE)):
                yield "".join(self._sample(family, topic, index) for topic, index in part)

    def _traffic(self) -> Iterator[str]:
        """By topic, over those of its partitions that this broker leads."""
        sums: dict[str, list[int]] = {}
        for number, partition in enumerate(self._partitions):
            counts = sums.setdefault(partition.topic, [0, 0, 0])
            counts[0] += partition.records_in
            counts[1] += partition.bytes_in
            counts[2] += partition.bytes_out
            if number % _PARTITIONS_PER_PIECE == 0:
                yield ""
        for at, (name, text) in enumerate(_TRAFFIC):
            samples = [({"topic": topic}, counts[at]) for topic, counts in sums.items()]
            yield _family(f"kafka_server_brokertopicmetrics_{name}_total", "counter", text, samples)

    def _sample(self, family: _TopicFamily, topic: str, index: int) -> str:
        image = self._controller.image.topics.get(topic)
        if image is None or index >= len(image.partitions):
            return ""  # deleted since the page was begun
        value = family.value(image.partitions[index], self._partitions.named(topic, index))
        return "" if value is None else f'{family.name}{{topic="{topic}",partition="{index}"}} {value}\n'


def _is_of_request(name: str, kind: str) -> bool:
    return name.startswith("requests.") and name.endswith(f".{kind}")


def _own_name(name: str, unit: str = "") -> str:
    return "ottla_" + name.removesuffix(".time").replace(".", "_") + unit


def _gauge(name: str, text: str, value: float) -> str:
    return _family(name, "gauge", text, [({}, value)])


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inner = ",".join(f'{label}="{escaped(content)}"' for label, content in labels.items())
        lines.append(f"{name}{{{inner}}} {value}" if inner else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _histogram(name: str, text: str, buckets: list[int], sum_us: int) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    seen = 0
    for index, count in enumerate(buckets[: HISTOGRAM_BUCKETS - 1]):
        seen += count
        lines.append(f'{name}_bucket{{le="{((1 << index) - 1) / 1e6:g}"}} {seen}')
    total = sum(buckets)
    lines += [f'{name}_bucket{{le="+Inf"}} {total}', f"{name}_sum {sum_us / 1e6:g}", f"{name}_count {total}"]
    return "\n".join(lines) + "\n"


def _process() -> str:
    """The names that every Prometheus client library gives."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    text = _family(
        "process_cpu_seconds_total",
        "counter",
        "User and system CPU time.",
        [({}, usage.ru_utime + usage.ru_stime)],
    )
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        text += _gauge(
            "process_resident_memory_bytes", "Resident memory.", pages * os.sysconf("SC_PAGE_SIZE")
        )
        text += _gauge("process_open_fds", "Open file descriptors.", len(os.listdir("/proc/self/fd")))
    text += _gauge(
        "process_max_fds",
        "The limit of open file descriptors.",
        resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
    return text
