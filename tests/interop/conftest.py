"""One broker for all tests with clients in other languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.broker import CreateTopic, running_broker, topic_creator


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def create_topic(bootstrap: str) -> CreateTopic:
    return topic_creator(bootstrap)
