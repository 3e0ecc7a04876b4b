"""Topics that know their types: what goes in as an object comes out as one, and errors name the place."""

from __future__ import annotations

import json as standard
import struct
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import msgspec
import pydantic
import pytest

from ottla.client import Consumer, Producer, Topic, read
from ottla.client.errors import DeserializationFailed, InvalidSetting, SerializationFailed
from ottla.client.typed import avro, json
from ottla.client.typed.registry import RegistryError

NewTopic = Callable[..., str]


class State(Enum):
    NEW = "new"
    PAID = "paid"


@dataclass
class Item:
    name: str
    price: float


@dataclass
class Order:
    id: int
    items: list[Item]
    state: State = State.NEW
    total: Decimal | None = None
    at: datetime = field(default_factory=lambda: datetime(2026, 11, 16, 10))
    labels: dict[str, str] = field(default_factory=dict)


class PydanticOrder(pydantic.BaseModel):
    id: int
    items: list[str]


class MsgspecOrder(msgspec.Struct):
    id: int
    items: list[str]


SCHEMA = {
    "type": "record",
    "name": "Sale",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": ["null", "string"]}],
}


@dataclass
class Sale:
    id: int
    customer: str | None


ORDER = Order(7, [Item("tea", 2.5), Item("cup", 4)], State.PAID, Decimal("6.50"), labels={"a": "b"})


def there_and_back(bootstrap: str, topic: Topic, key: Any, value: Any) -> tuple[Any, Any]:
    with Producer(bootstrap) as producer:
        producer.send(topic, key=key, value=value).result()
    (record,) = read(bootstrap, topic)
    with Consumer(bootstrap, group_id=f"group-{uuid.uuid4()}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        records: list[Any] = []
        while not records:
            records = consumer.poll(1)
    assert (records[0].key, records[0].value) == (record.key, record.value)
    return record.key, record.value


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (json(Order), ORDER),
        (json(PydanticOrder), PydanticOrder(id=7, items=["tea"])),
        (json(MsgspecOrder), MsgspecOrder(7, ["tea"])),
        (json(), {"any": ["thing", 1, None]}),
        (avro(SCHEMA, kind=Sale), Sale(7, "Ada")),
        (avro(standard.dumps(SCHEMA)), {"id": 7, "customer": None}),
        (str, "text"),
        (int, -5),
        (bytes, b"raw"),
    ],
    ids=["dataclass", "pydantic", "msgspec", "json", "avro", "avro_dictionaries", "str", "int", "bytes"],
)
def test_what_goes_in_as_an_object_comes_out_as_one(
    bootstrap: str, new_topic: NewTopic, codec: Any, value: Any
) -> None:
    topic = Topic(new_topic(), key=str, value=codec)
    assert there_and_back(bootstrap, topic, "customer-7", value) == ("customer-7", value)


def test_a_tombstone_stays_one(bootstrap: str, new_topic: NewTopic) -> None:
    topic = Topic(new_topic(), key=str, value=json(Order))
    assert there_and_back(bootstrap, topic, "gone", None) == ("gone", None)


def test_json_of_a_dataclass_is_what_others_would_write(bootstrap: str, new_topic: NewTopic) -> None:
    topic = Topic(new_topic(), value=json(Order))
    with Producer(bootstrap) as producer:
        producer.send(topic, ORDER)
    (record,) = read(bootstrap, str(topic))
    assert standard.loads(record.value) == {
        "id": 7,
        "items": [{"name": "tea", "price": 2.5}, {"name": "cup", "price": 4}],
        "state": "paid",
        "total": "6.50",
        "at": "2026-11-16T10:00:00",
        "labels": {"a": "b"},
    }


@pytest.mark.parametrize(
    ("codec", "wrong", "place"),
    [
        (
            json(Order),
            b'{"id":1,"items":[{"name":"a","price":1},{"name":"b","price":"x"}]}',
            "items[1].price",
        ),
        (json(Order), b'{"items":[]}', "id: is missing"),
        (json(Order), b'{"id":true,"items":[]}', "id: expected int, got bool"),
        (json(Order), b'{"id":1,"items":[],"state":"lost"}', "state: 'lost' is no State"),
        (json(Order), b"{", "no JSON"),
        (json(PydanticOrder), b'{"id":1,"items":["a",2]}', "items[1]"),
        (json(MsgspecOrder), b'{"id":1,"items":["a",2]}', "items[1]"),
        (avro(SCHEMA), b"\x02", "no Avro of this schema"),
    ],
)
def test_what_cannot_be_read_is_named_by_topic_partition_offset_and_field(
    bootstrap: str, new_topic: NewTopic, codec: Any, wrong: bytes, place: str
) -> None:
    name = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(name, wrong)
    with pytest.raises(DeserializationFailed) as caught:
        list(read(bootstrap, Topic(name, value=codec)))
    text = str(caught.value)
    assert place in text
    assert f"{name}-0" in text
    assert "offset 0" in text


def test_a_value_of_another_type_is_refused_before_it_is_sent(bootstrap: str, new_topic: NewTopic) -> None:
    topic = Topic(new_topic(), value=json(Order))
    with (
        Producer(bootstrap) as producer,
        pytest.raises(SerializationFailed, match="expected Order"),
    ):
        producer.send(topic, Item("tea", 1.0))


def test_a_type_that_does_not_say_how_it_becomes_bytes_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"json\(Order\)"):
        Topic("orders", value=Order)
    with pytest.raises(InvalidSetting, match="no dataclass"):
        json(int)


def test_avro_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(InvalidSetting, match=r"ottla\[avro\]"):
        avro(SCHEMA)


# -- the framing of a registry -----------------------------------------------------------------------------


class RegistryServer:
    """As much of a schema registry as serializers ask for, over real HTTP."""

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.subjects: set[tuple[str, int]] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                schema = standard.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
                parts = self.path.split("/")
                if parts[-1] != "versions" and schema not in outer.schemas:
                    self.answer(404, {"error_code": 40403, "message": "Schema not found"})
                    return
                if schema not in outer.schemas:
                    outer.schemas.append(schema)
                number = outer.schemas.index(schema) + 1
                outer.subjects.add((parts[2], number))
                self.answer(200, {"id": number})

            def do_GET(self) -> None:
                number = int(self.path.rpartition("/")[2])
                if number > len(outer.schemas):
                    self.answer(404, {"error_code": 40403, "message": "Schema not found"})
                else:
                    self.answer(200, {"schema": outer.schemas[number - 1]})

            def answer(self, code: int, body: object) -> None:
                data = standard.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    server = RegistryServer()
    yield server
    server.close()


def test_framed_avro_is_magic_id_and_avro_under_the_topics_subject(
    bootstrap: str, new_topic: NewTopic, registry: RegistryServer
) -> None:
    topic = Topic(new_topic(), value=avro(SCHEMA, kind=Sale, registry=registry.address))
    _, value = there_and_back(bootstrap, topic, b"k", Sale(7, "Ada"))
    assert value == Sale(7, "Ada")
    (record,) = read(bootstrap, str(topic))
    assert record.value == struct.pack(">bI", 0, 1) + b"\x0e" + b"\x02\x06Ada"
    assert registry.subjects == {(f"{topic}-value", 1)}


def test_framed_avro_is_read_by_its_writers_schema(
    bootstrap: str, new_topic: NewTopic, registry: RegistryServer
) -> None:
    """A writer with an older schema: what it lacks has the default of ours."""
    newer = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "vat", "type": "int", "default": 19}]}
    name = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(Topic(name, value=avro(SCHEMA, registry=registry.address)), {"id": 1, "customer": None})
    (record,) = read(bootstrap, Topic(name, value=avro(newer, registry=registry.address)))
    assert record.value == {"id": 1, "customer": None, "vat": 19}
    (record,) = read(bootstrap, Topic(name, value=avro(registry=registry.address)))
    assert record.value == {"id": 1, "customer": None}


def test_framed_avro_without_a_registry_is_refused_with_what_to_set(
    bootstrap: str, new_topic: NewTopic, registry: RegistryServer
) -> None:
    framed = avro(SCHEMA, registry=registry.address).serialize("t", {"id": 1, "customer": "Ada"})
    with pytest.raises(ValueError, match=r"schema id 1.*registry=\"http"):
        avro(SCHEMA).deserialize("t", framed)


def test_plain_avro_is_refused_where_the_framing_is_expected(registry: RegistryServer) -> None:
    data = avro(SCHEMA).serialize("t", {"id": 1, "customer": None})
    with pytest.raises(ValueError, match="leave registry out"):
        avro(registry=registry.address).deserialize("t", data)


def test_a_registry_that_refuses_or_is_away_is_named(registry: RegistryServer) -> None:
    codec = avro(SCHEMA, registry=registry.address, register=False)
    with pytest.raises(RegistryError, match=r"404.*Schema not found"):
        codec.serialize("t", {"id": 1, "customer": None})
    with pytest.raises(RegistryError, match="cannot be asked"):
        avro(registry="http://127.0.0.1:9").deserialize("t", struct.pack(">bI", 0, 1) + b"x")
    with pytest.raises(InvalidSetting, match="no address"):
        avro(registry="localhost:8081")
    with pytest.raises(InvalidSetting, match="needs a schema"):
        avro()


def test_plain_avro_is_what_the_library_writes() -> None:
    import io

    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, {"id": 3, "customer": "Bo"})
    assert avro(SCHEMA).serialize("t", {"id": 3, "customer": "Bo"}) == out.getvalue()
