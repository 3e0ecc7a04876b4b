"""Groups and transactions answer as Apache Kafka's do: stories told to both give the same transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from interop.apache_kafka import apache_kafka
from interop.stories import consumer_group_stories, group_stories, transaction_stories
from interop.stories.transcript import Side
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
AT_ONCE = {
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}  # Kafka waits, to assign for several members at once
STORIES = [*group_stories.STORIES, *consumer_group_stories.STORIES, *transaction_stories.STORIES]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Ours and Apache Kafka's."""
    with (
        BrokerProcess(settings=SETTINGS) as ours,
        apache_kafka(tmp_path_factory.mktemp("kafka"), SETTINGS | AT_ONCE) as theirs,
    ):
        yield ours.bootstrap, theirs


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_answers_are_the_same(story: Callable[[Side], None], brokers: tuple[str, str]) -> None:
    ours, theirs = (Side(each) for each in brokers)
    ours.limit(theirs)
    theirs.limit(ours)
    for side in (theirs, ours):
        try:
            story(side)
        finally:
            side.close()
    assert [what for what, _ in ours.transcript] == [what for what, _ in theirs.transcript]
    differences = [
        f"{what}\n  ours   {told}\n  theirs {others}"
        for (what, told), (_, others) in zip(ours.transcript, theirs.transcript, strict=True)
        if told != others
    ]
    assert not differences, "\n".join(differences)
