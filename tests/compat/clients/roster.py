"""The Python clients and kcat, by name; a client that is not installed skips its tests and says so."""

from __future__ import annotations

import pytest

from compat.clients.aio import AioKafka
from compat.clients.client import Client
from compat.clients.confluent import Confluent
from compat.clients.kafka_python import KafkaPython
from compat.clients.kcat import Kcat, installed

CLIENTS: dict[str, Client] = {
    client.name: client for client in (Confluent(), Kcat(), KafkaPython(), AioKafka())
}

NAMES = tuple(
    pytest.param(name, marks=pytest.mark.skipif(not installed(), reason="kcat is not installed"))
    if name == Kcat.name
    else name
    for name in CLIENTS
)
