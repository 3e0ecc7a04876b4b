"""DescribeLogDirs: what lies where, how large it is, and how much room is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calls import append, batch_of, create_topic
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ottla.testing import BrokerProcess
from wire import WireClient


def sizes(response: DescribeLogDirsResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_sizes_and_room(broker: BrokerProcess, client: WireClient, version: int) -> None:
    topic = create_topic(client, partitions=2)
    append(client, topic, b"v" * 1_000, partition=1)
    response = client.call(DescribeLogDirsRequest(None), version)
    assert response.error_code == ErrorCode.NONE
    (result,) = response.results
    assert (result.error_code, result.log_dir) == (ErrorCode.NONE, str(broker.data_dir / "log"))
    found = sizes(response)
    assert (found[topic, 0], found[topic, 1]) == (0, len(batch_of(b"v" * 1_000)))
    if version >= 4:
        assert result.total_bytes >= result.usable_bytes > 0
    else:
        assert (result.total_bytes, result.usable_bytes) == (-1, -1)
    for each in result.topics:
        assert all((part.offset_lag, part.is_future_key) == (0, False) for part in each.partitions)


@pytest.mark.parametrize("version", range(1, 5))
def test_only_what_was_asked_for(client: WireClient, version: int) -> None:
    topic = create_topic(client, partitions=3)
    asked = [DescribableLogDirTopic(topic, [0, 2, 9]), DescribableLogDirTopic("nowhere", [0])]
    response = client.call(DescribeLogDirsRequest(asked), version)
    assert sizes(response).keys() == {(topic, 0), (topic, 2)}
    assert sizes(client.call(DescribeLogDirsRequest([]), version)) == {}


def test_several_directories_share_the_partitions(tmp_path: Path) -> None:
    directories = [str(tmp_path / "one"), str(tmp_path / "two")]
    settings = {"log.dirs": ",".join(directories)}
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=6)
        for partition in range(6):
            append(client, topic, b"v", partition=partition)
        response = client.call(DescribeLogDirsRequest(None), 4)
        assert [result.log_dir for result in response.results] == directories
        for result in response.results:
            (found,) = result.topics
            assert len(found.partitions) == 3
            for partition in found.partitions:
                assert os.path.isdir(f"{result.log_dir}/{topic}-{partition.partition_index}")
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        assert set(sizes(client.call(DescribeLogDirsRequest(None), 4)).values()) == {len(batch_of(b"v"))}
