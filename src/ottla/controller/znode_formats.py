"""Where Kafka 3.9 in ZooKeeper mode keeps what, and the JSON it keeps there. Pure text; no state.

Keys that we do not know are left out when a node is written again, as Kafka does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.model.topics import TopicId, parse_topic_id, topic_id_text
from ottla.model.values import NamedTuple

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
CONFIG_CHANGES = "/config/changes"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

DEFAULT_ENTITY = "<default>"
"""The name under /config/brokers that stands for the whole cluster."""

ROOTS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    "/admin/delete_topics",
    "/brokers/seqid",
    "/isr_change_notification",
    PRODUCER_ID_BLOCK,
    "/log_dir_event_notification",
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
    "/config/ips",
)
"""Persistent nodes that every broker expects to find; nodes above them are made with them."""

TREES = sorted({f"/{path.split('/')[1]}" for path in (*ROOTS, CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH)})
"""Everything that a controller reads is at or below these."""


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker_id: int | None) -> str:
    return f"{BROKER_CONFIGS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(data: bytes | None) -> dict[str, Any]:
    value = json.loads(data) if data else {}
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is expected, not {value!r}")
    return value


# /cluster/id, /controller, /controller_epoch


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return str(_decode(data)["id"])


def encode_controller(broker_id: int, now_ms: int) -> bytes:
    return _encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(now_ms), "kraftControllerEpoch": -1}
    )


def decode_controller(data: bytes | None) -> int:
    return int(_decode(data)["brokerid"])


# /brokers/ids/<id>


class EndPoint(NamedTuple):
    """An address that clients are told to use."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


def encode_broker(endpoints: Sequence[EndPoint], rack: str | None, now_ms: int) -> bytes:
    # Clients from before listeners had names look at host and port: the first plaintext address.
    plain = next((endpoint for endpoint in endpoints if endpoint.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {
        "version": 5,
        "host": plain.host if plain else None,
        "port": plain.port if plain else -1,
        "endpoints": [
            f"{endpoint.listener}://{_bracketed(endpoint.host)}:{endpoint.port}" for endpoint in endpoints
        ],
        "listener_security_protocol_map": {
            endpoint.listener: endpoint.security_protocol for endpoint in endpoints
        },
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "features": {},
    }
    if rack is not None:
        value["rack"] = rack
    return _encode(value)


def decode_broker(data: bytes | None) -> tuple[tuple[EndPoint, ...], str | None]:
    """Addresses and rack."""
    value = _decode(data)
    protocols = value.get("listener_security_protocol_map") or {}
    endpoints = []
    for text in value.get("endpoints", ()):
        listener, _, address = text.partition("://")
        host, _, port = address.rpartition(":")
        protocol = protocols.get(listener, listener)
        endpoints.append(EndPoint(listener, host.strip("[]"), int(port), protocol))
    return tuple(endpoints), value.get("rack")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# /brokers/topics/<t>


class Assignment(NamedTuple):
    """Who is to hold each partition of a topic."""

    topic_id: TopicId | None  # None: written by a Kafka before 2.8
    replicas: Sequence[Sequence[int]]  # by partition
    adding: Mapping[int, Sequence[int]]  # replicas that a reassignment under way brings in
    removing: Mapping[int, Sequence[int]]


def encode_assignment(assignment: Assignment) -> bytes:
    value: dict[str, Any] = {
        "partitions": {str(index): list(replicas) for index, replicas in enumerate(assignment.replicas)}
    }
    if assignment.topic_id is not None:
        value["topic_id"] = topic_id_text(assignment.topic_id)
    value["adding_replicas"] = {str(index): list(ids) for index, ids in assignment.adding.items()}
    value["removing_replicas"] = {str(index): list(ids) for index, ids in assignment.removing.items()}
    value["version"] = 3
    return _encode(value)


def decode_assignment(data: bytes | None) -> Assignment:
    value = _decode(data)
    by_partition = {int(index): tuple(ids) for index, ids in value["partitions"].items()}
    if sorted(by_partition) != list(range(len(by_partition))):
        raise ValueError(f"partitions must be numbered from 0 without a gap, not {sorted(by_partition)}")
    topic_id = value.get("topic_id")
    return Assignment(
        None if topic_id is None else parse_topic_id(topic_id),
        [by_partition[index] for index in range(len(by_partition))],
        {int(index): tuple(ids) for index, ids in value.get("adding_replicas", {}).items()},
        {int(index): tuple(ids) for index, ids in value.get("removing_replicas", {}).items()},
    )


# /brokers/topics/<t>/partitions/<p>/state


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


def encode_state(state: PartitionState) -> bytes:
    # By hand: a topic of 10,000 partitions writes as many, and these are all numbers.
    isr = ",".join(map(str, state.isr))
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,'
        f'"leader_epoch":{state.leader_epoch},"isr":[{isr}]}}'
    ).encode()


def decode_state(data: bytes | None) -> PartitionState:
    value = _decode(data)
    return PartitionState(
        value["leader"], value["leader_epoch"], tuple(value["isr"]), value["controller_epoch"]
    )


# /config/…


def encode_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(config)})


def decode_config(data: bytes | None) -> dict[str, str]:
    return {name: str(text) for name, text in _decode(data).get("config", {}).items()}


def encode_config_change(entity: str) -> bytes:
    """`entity` is the path below /config of what was changed."""
    return _encode({"version": 2, "entity_path": entity})


# /latest_producer_id_block


class ProducerIdBlock(NamedTuple):
    broker_id: int
    first_id: int
    last_id: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return _encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first_id),
            "block_end": str(block.last_id),
        }
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """None before the first block was handed out: Kafka creates the node empty."""
    if not data:
        return None
    value = _decode(data)
    return ProducerIdBlock(int(value["broker"]), int(value["block_start"]), int(value["block_end"]))
