"""Topics of a cluster that is encrypted and asks who comes: options with the prefix `kafka.` reach driver and
workers, of source and sink, and no password shows.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from client.certificates import Authority
from client.tls_front import TlsFront, encrypted_broker
from ottla.client import Admin, read

PASSWORD = "open-sesame"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def front(authority: Authority) -> Iterator[TlsFront]:
    with encrypted_broker(authority, asks_who=True) as front:
        yield front


@pytest.fixture(scope="module")
def settings(authority: Authority) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.keystore.location": str(authority.locked(authority.sign("client"), PASSWORD)),
        "ssl.key.password": PASSWORD,
    }


@pytest.fixture
def options(front: TlsFront, settings: dict[str, str]) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": front.bootstrap,
        **{f"kafka.{name}": text for name, text in settings.items()},
    }


def told(frame: Any) -> str:
    with redirect_stdout(io.StringIO()) as output:
        frame.explain(extended=True)
    return output.getvalue() + repr(frame)


def test_batches_and_streams_go_through_tls_and_tell_no_password(
    spark: Any, front: TlsFront, settings: dict[str, str], options: dict[str, str], tmp_path: Path
) -> None:
    with Admin(front.bootstrap, **settings) as admin:
        admin.create_topic("first", partitions=2)
        admin.create_topic("second", partitions=1)
    rows = spark.range(100).selectExpr("cast(id as string) key", "cast(id as string) value")
    rows.write.format("ottla").options(**options, topic="first").mode("append").save()
    batch = spark.read.format("ottla").options(**options, subscribe="first").load()
    assert sorted(int(row.value) for row in batch.collect()) == list(range(100))
    assert PASSWORD not in told(batch)

    stream = spark.readStream.format("ottla").options(**options, subscribe="first")
    writer = (
        stream.option("startingOffsets", "earliest").load().select("value").writeStream.format("ottla")
    ).options(**options, topic="second", checkpointLocation=str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    with redirect_stdout(io.StringIO()) as plan:
        query.explain(extended=True)
    assert "ottla" in plan.getvalue()
    assert PASSWORD not in plan.getvalue() + "".join(progress.json for progress in query.recentProgress)
    with read(front.bootstrap, "second", isolation_level="read_committed", **settings) as written:
        assert sorted(int(record.value) for record in written) == list(range(100))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file())
    assert PASSWORD.encode() not in kept


def test_a_key_that_plans_would_show_is_refused_before_there_is_one(
    spark: Any, front: TlsFront, options: dict[str, str]
) -> None:
    given = {**options, "kafka.ssl.keystore.key": PASSWORD}
    for reader in (spark.read, spark.readStream):
        with pytest.raises(Exception, match=r"write kafka\.ssl\.keystore\.location"):
            reader.format("ottla").options(**given, subscribe="first").load()
    rows = spark.sql("select 'v' value")
    with pytest.raises(Exception, match=r"write kafka\.ssl\.keystore\.location"):
        rows.write.format("ottla").options(**given, topic="first").mode("append").save()


def test_a_cluster_that_does_not_know_the_client_is_told_by_the_driver(
    spark: Any, front: TlsFront, options: dict[str, str]
) -> None:
    anonymous = {name: text for name, text in options.items() if ".ssl.key" not in name}
    with pytest.raises(Exception, match=r"ssl\.keystore\.location") as failed:
        spark.read.format("ottla").options(**anonymous, subscribe="first").load().collect()
    assert PASSWORD not in str(failed.value)
