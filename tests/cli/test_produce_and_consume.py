"""ottla produce and ottla consume: every way in, every way out, and back again without losing a byte."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.program import Program
from compat.broker import unique_name
from ottla.testing import BrokerProcess


@pytest.fixture
def topic() -> str:
    return unique_name("records")


def consumed(client: Program, topic: str, *arguments: str) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = client.ok("consume", topic, "-o", "jsonl", *arguments).json_lines
    return lines


def test_lines_become_values(client: Program, topic: str) -> None:
    done = client.ok("produce", topic, stdin="one\n\nthree")
    assert done.err == f"3 records to {topic}\n"
    assert client.ok("consume", topic).out == "one\n\nthree\n"


def test_keys_headers_and_partitions_are_as_said(client: Program, topic: str) -> None:
    client.ok("topic", "create", topic, "-p", "3")
    client.ok("produce", topic, "-k", "all", "-H", "a=1", "-H", "empty", "-p", "2", stdin="v\n")
    (record,) = consumed(client, topic)
    assert (record["partition"], record["key"], record["value"]) == (2, "all", "v")
    assert record["headers"] == [{"name": "a", "value": "1"}, {"name": "empty", "value": None}]
    client.ok("produce", topic, "-K", ":", stdin="k1:v1\nk2:v:2\n")
    by_key = {record["key"]: record["value"] for record in consumed(client, topic)}
    assert by_key == {"all": "v", "k1": "v1", "k2": "v:2"}


def test_each_file_is_a_record(client: Program, topic: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 3
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(b"")
    client.ok("produce", topic, "--file", str(tmp_path / "a"), str(tmp_path / "b"))
    first, second = consumed(client, topic)
    assert base64.b64decode(str(first["value_base64"])) == content
    assert second["value"] == ""


def test_random_records_are_as_many_and_as_long_as_said(client: Program, topic: str) -> None:
    client.ok("produce", topic, "--random", "1KB", "-n", "20", "--random-keys", "3", "--seed", "1")
    records = consumed(client, topic)
    assert len(records) == 20
    assert {len(str(record["value"])) for record in records} == {1024}
    assert {record["key"] for record in records} == {"0", "1", "2"}


def test_the_places_of_records_are_told_on_request(client: Program, topic: str) -> None:
    places = client.ok("produce", topic, "-o", "json", stdin="a\nb\n").json_lines
    assert [(place["topic"], place["partition"], place["offset"]) for place in places] == [
        (topic, 0, 0),
        (topic, 0, 1),
    ]
    assert client.ok("produce", topic, "-o", "csv", stdin="c\n").out.splitlines()[0] == (
        "topic,partition,offset,timestamp_ms"
    )


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_arrive(client: Program, topic: str, codec: str) -> None:
    client.ok("produce", topic, "-z", codec, "--random", "100", "-n", "50")
    assert len(consumed(client, topic)) == 50


def test_consume_into_produce_copies_every_byte(client: Program, topic: str) -> None:
    client.ok("topic", "create", topic, "-p", "2")
    awkward = [
        {"topic": topic, "partition": 0, "timestamp_ms": 1_700_000_000_000, "key": None, "value": None},
        {"topic": topic, "partition": 1, "key": "", "value": 'quote " and \n line\u2028 and 𝄞'},
        {"topic": topic, "partition": 1, "key_base64": "/wD+", "value_base64": "gIGC"},
        {
            "topic": topic,
            "partition": 0,
            "key": "k",
            "value": "v",
            "headers": [
                {"name": "h", "value": "1"},
                {"name": "h", "value_base64": "/w=="},
                {"name": "n", "value": None},
            ],
        },
    ]
    client.ok("produce", stdin="".join(json.dumps(record) + "\n" for record in awkward))
    original = client.ok("consume", topic, "-o", "json").out

    def content(lines: str) -> list[dict[str, object]]:
        records = [json.loads(line) for line in lines.split("\n") if line]
        for record in records:
            del record["offset"], record["topic"]
        return sorted(records, key=json.dumps)

    copy = topic + "-copy"
    client.ok("topic", "create", copy, "-p", "2")
    client.ok("produce", stdin=original.replace(f'"topic": "{topic}"', f'"topic": "{copy}"'))
    copied = client.ok("consume", copy, "-o", "json").out
    assert content(copied) == content(original)
    assert len(content(original)) == 4
    client.ok("produce", stdin=original)  # the very same pipe, into the same topic
    assert len(consumed(client, topic)) == 8
    client.ok("produce", "-i", "json", topic + "-other", stdin=original)
    assert len(consumed(client, topic + "-other")) == 4


def test_places_choose_what_is_read(client: Program, topic: str) -> None:
    client.ok("produce", topic, stdin="".join(f"{number}\n" for number in range(10)))

    def values(*arguments: str) -> str:
        return "".join(client.ok("consume", topic, *arguments).out.split())

    assert values("--from", "7") == "789"
    assert values("--from=-2") == "89"
    assert values("--from", "2", "--to", "5") == "234"
    assert values("--to=-8") == "01"
    assert values("-n", "3") == "012"
    assert values("--from", "end") == ""
    assert values("--from", "@-1h") == "0123456789"
    assert values("--from", "@2100-01-01T00:00") == ""
    assert values("--to", "@2020-01-01") == ""
    assert values("-p", "0", "--from", "9") == "9"


def test_formats_show_what_is_asked_for(client: Program, topic: str) -> None:
    client.ok("produce", topic, "-k", "key", "-H", "a=b", stdin="value\n")
    out = client.ok("consume", topic, "-f", r"%t|%p|%o|%k|%v|%s|%h|%K|%S|%%|\t|\\|\x\n").out
    assert out == f"{topic}|0|0|key|value|value|a=b|3|5|%|\t|\\|\\x\n"
    assert client.ok("consume", topic, "-o", "csv", "-f", "%o").out == "0"
    header, row = client.ok("consume", topic, "-o", "csv").out.splitlines()
    assert header == "topic,partition,offset,timestamp_ms,key,value"
    assert row.startswith(f"{topic},0,0,")


def test_filters_choose_by_key_value_header_and_json_field(client: Program, topic: str) -> None:
    lines = [
        {"topic": topic, "key": "a", "value": {"customer": {"name": "Ada"}, "total": 5}},
        {
            "topic": topic,
            "key": "b",
            "value": {"customer": {"name": "Bob"}},
            "headers": [{"name": "x", "value": "1"}],
        },
        {"topic": topic, "key": "c", "value": "no json"},
    ]
    client.ok("produce", stdin="".join(json.dumps(line) + "\n" for line in lines))

    def keys(*tests: str) -> str:
        arguments = [argument for test in tests for argument in ("--filter", test)]
        return client.ok("consume", topic, "-f", "%k", *arguments).out

    assert keys("key=b") == "b"
    assert keys("key!=b") == "ac"
    assert keys("value~^no") == "c"
    assert keys("header.x=1") == "b"
    assert keys("value.customer.name=Ada") == "a"
    assert keys("value.total=5") == "a"
    assert keys("value.customer.name~.", "key!=a") == "b"


def test_values_are_decoded_where_they_can_be(client: Program, topic: str, tmp_path: Path) -> None:
    packed = b"\x82\xa1a\x01\xa1b\x93\xc3\xc0\xcb?\xf8\x00\x00\x00\x00\x00\x00"
    (tmp_path / "packed").write_bytes(packed)
    client.ok("produce", topic, "--file", str(tmp_path / "packed"))
    client.ok("produce", topic, stdin='{"a": [1, 2]}\nplain\n')
    assert (
        client.ok("consume", topic, "-n", "1", "--decode", "msgpack").out
        == '{"a": 1, "b": [true, null, 1.5]}\n'
    )
    shown = consumed(client, topic, "--from", "1", "--decode", "json")
    assert [record["value"] for record in shown] == [{"a": [1, 2]}, "plain"]


def test_avro_is_decoded_by_a_schema_from_a_file(client: Program, topic: str, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "Sale", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "sale.avsc").write_text(json.dumps(schema))
    (tmp_path / "value").write_bytes(b"\x0e")
    client.ok("produce", topic, "--file", str(tmp_path / "value"))
    avro = ("consume", topic, "--decode", "avro")
    assert client.ok(*avro, "--schema", str(tmp_path / "sale.avsc")).out == '{"id": 7}\n'
    assert "needs the schema" in client.fails(2, *avro)
    assert "No such file" in client.fails(2, *avro, "--schema", str(tmp_path / "none"))
    assert "no Avro schema" in client.fails(2, *avro, "--schema", str(tmp_path / "value"))
    assert "no address" in client.fails(2, *avro, "--registry", "localhost:8081")
    assert "are for Avro" in client.fails(2, "consume", topic, "--registry", "http://localhost:8081")


def test_avro_is_decoded_by_the_schemas_of_a_registry(client: Program, topic: str, tmp_path: Path) -> None:
    answer = json.dumps({"schema": '"long"'}).encode()

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/schemas/ids/9" else 404)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "value").write_bytes(b"\x00\x00\x00\x00\x09\x0e")
        client.ok("produce", topic, "--file", str(tmp_path / "value"))
        address = f"http://127.0.0.1:{server.server_port}"
        shown = client.ok("consume", topic, "--decode", "avro", "--registry", address)
        server.shutdown()
    assert shown.out == "7\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "cause"),
    [
        (("-i", "lines"), "", 2, "no topic is named"),
        (("--random", "10", "-n", "1"), "", 2, "no topic is named"),
        ((), "{}\n", 2, "names no topic"),
        ((), "[1]\n", 2, "line 1 of the input is no record: expected an object"),
        ((), '{"topic": "t", "valu": 1}\n', 2, "'valu' is no field of a record"),
        ((), '{"topic": 5}\n', 2, "topic is 5, expected a text"),
        ((), '{"topic": "t", "value_base64": "?"}\n', 2, "line 1 of the input is no record"),
        (("t", "-K", ":"), "no key\n", 2, "line 1 of the input has no ':'"),
        (("t", "-i", "json", "--file", "x"), "", 2, "not allowed with argument"),
        (("t", "--file", "/nowhere"), "", 4, "/nowhere: No such file"),
        (("t", "-H", "=v"), "", 2, "is no header"),
        (("t", "--random", "many"), "", 2, "is no size"),
        (("t", "-X", "linger.mss=1"), "x\n", 2, "did you mean linger.ms?"),
        (("wrong name",), "x\n", 2, "may only use ASCII"),
        (("t", "-p", "99"), "x\n", 4, "has no partition 99"),
        (("t", "-b", "127.0.0.1:1"), "x\n", 3, "no broker at"),
    ],
)
def test_wrong_use_of_produce_names_the_cause(
    client: Program, arguments: tuple[str, ...], stdin: str, code: int, cause: str
) -> None:
    assert cause in client.fails(code, "produce", *arguments, stdin=stdin)


def test_records_that_the_disk_does_not_take_are_a_failure_of_the_broker(
    client: Program, broker: BrokerProcess, topic: str
) -> None:
    patience = ("-X", "delivery.timeout.ms=600", "-X", "request.timeout.ms=500")
    with broker.fail("Produce", "KAFKA_STORAGE_ERROR", times=None):
        said = client.fails(1, "produce", topic, *patience, stdin="x\n")
    assert "1 of 1 record not delivered" in said
    assert "KAFKA_STORAGE_ERROR" in said


def test_a_record_that_is_too_large_names_the_settings(client: Program, topic: str) -> None:
    said = client.fails(1, "produce", topic, "--random", "2MB", "-n", "1")
    assert "max.request.size" in said
    said = client.fails(1, "produce", topic, "--random", "2MB", "-n", "1", "-X", "max.request.size=10000000")
    assert "max.message.bytes" in said


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("nowhere",), 4, "there is no topic 'nowhere'"),
        ((), 2, "required: TOPIC"),
        (("t", "--from", "yesterday"), 2, "is no place in a partition"),
        (("t", "--follow", "--to", "5"), 2, "--follow never stops"),
        (("t", "-f", "%q"), 2, "%q is not known in a format"),
        (("t", "--filter", "size=3"), 2, "is no filter"),
        (("t", "--filter", "key~("), 2, "is no regular expression"),
        (("t", "-p", "99"), 4, "has no partition 99"),
        (("t", "-X", "fetch.max.byte=1"), 2, "did you mean fetch.max.bytes?"),
        (("t", "-b", "127.0.0.1:1"), 3, "no broker at"),
    ],
)
def test_wrong_use_of_consume_names_the_cause(
    client: Program, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    client.ok("topic", "create", "t", "--if-not-exists")
    assert cause in client.fails(code, "consume", *arguments)


def test_the_tail_of_a_topic_is_shown(client: Program, topic: str) -> None:
    client.ok("produce", topic, stdin="a\nb\nc\n")
    assert client.ok("topic", "tail", topic, "-n", "2", "--no-follow").out == "b\nc\n"
    assert client.ok("topic", "tail", topic, "-n", "0", "--no-follow").out == ""
    assert "expected 0 or more" in client.fails(2, "topic", "tail", topic, "-n=-1")
