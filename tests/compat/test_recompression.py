"""A topic with a coding of its own stores every batch in it; readers see the same records as ever."""

from __future__ import annotations

import pytest

from compat.broker import CreateTopic
from compat.cases import CODECS, TOPIC_CONFIGS, Lane, few_cases
from compat.clients.confluent import Confluent
from compat.clients.roster import CLIENTS
from compat.record import CREATE_TIME, LOG_APPEND_TIME, Record
from compat.writing import write_topic


def _cases() -> list[Record]:
    return [
        *few_cases(),
        Record("plain", key=b"k", value=b"ottla " * 20_000),
        Record("tombstone", b"k", None),
    ]


_LANES = tuple(Lane(codec, _cases, codec=codec, idempotent=False) for codec in CODECS)


@pytest.mark.parametrize("timestamp_type", [CREATE_TIME, LOG_APPEND_TIME])
@pytest.mark.parametrize("topic_codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_records_survive_the_topics_own_coding(
    bootstrap: str, create_topic: CreateTopic, topic_codec: str, timestamp_type: str
) -> None:
    kind = "CreateTime" if timestamp_type == CREATE_TIME else "LogAppendTime"
    configs = {**TOPIC_CONFIGS, "compression.type": topic_codec, "message.timestamp.type": kind}
    topic = create_topic(f"stored-{topic_codec}", partitions=len(_LANES), configs=configs)
    written = write_topic(Confluent(), bootstrap, topic, _LANES, timestamp_type)
    for reader in ("confluent", "kafka-python"):
        problems = written.unread_by(CLIENTS[reader], bootstrap)
        assert not problems, "\n".join([f"read by {reader}:", *problems])
