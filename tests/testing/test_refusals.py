"""Every API can be refused in every version, in the shape of the request."""

from __future__ import annotations

import random

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import apis
from ottla.protocol.apis import APIS, Api
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Message
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.testing.refusals import refusal
from protocol.random_messages import random_message

WITHOUT_ERRORS = {apis.METADATA}  # refused by its real answer, which has the brokers
CASES = [
    (api, version)
    for api in APIS.values()
    if api not in WITHOUT_ERRORS
    for version in range(api.versions[0], api.versions[1] + 1)
]


def codes_in(message: Message) -> list[int]:
    codes = []
    for name in message.__field_defaults__:
        value = getattr(message, name)
        if name in ("error_code", "partition_error_code"):
            codes.append(value)
        elif isinstance(value, (list, tuple)):
            codes += [code for each in value if isinstance(each, Message) for code in codes_in(each)]
    return codes


@pytest.mark.parametrize(
    ("api", "version"), CASES, ids=lambda each: each.name if isinstance(each, Api) else str(each)
)
def test_a_refusal_can_be_encoded_and_carries_the_error(api: Api, version: int) -> None:
    rng = random.Random(version)
    for code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR):
        for _ in range(20):
            request = random_message(rng, api.request, version)
            answer = refusal(request, api.response, version, code)
            read, _ = decode(api.response, version, encode_bytes(answer, version))
            if code in codes_in(read):
                break  # one that names nothing, in lists that are empty, has nothing to be refused
        else:
            pytest.fail(f"{api.name} v{version} was never told {code.name}")


def test_a_refused_produce_names_each_partition() -> None:
    partitions = [PartitionProduceData(index=3, records=b""), PartitionProduceData(index=5, records=b"")]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=partitions)])
    answer = refusal(request, apis.PRODUCE.response, 9, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (topic,) = answer.responses
    assert topic.name == "orders"
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [(3, 6), (5, 6)]
