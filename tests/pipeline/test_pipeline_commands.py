"""`ottla pipeline` with real Spark and a real broker: every verb, and wrong uses of them.

All runs are in this process, so that they share one JVM; `test_exactly_once` has the program by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from ottla.client import Admin, read
from ottla.pipeline.definition_file import load_pipeline
from ottla.pipeline.run_lock import alone
from ottla.testing import BrokerProcess
from pipeline.commands import QUICK, Ottla, produce

pytestmark = pytest.mark.timeout(300)


def project(ottla: Ottla, template: str, name: str) -> Path:
    """A pipeline of the template under a name of its own, with topics of its own."""
    ottla("new", name, "-t", template, broker=False)
    path = Path(name) / "pipeline.toml"
    text = path.read_text()
    for word in ("orders", "order-totals", "clicks", "customer-changes", "payments", "receipts"):
        text = text.replace(f'topic = "{word}"', f'topic = "{name}.{word}"')
    lines = [f'name = "{name}"' if line.startswith("name = ") else line for line in text.splitlines()]
    lines.insert(lines.index(f'name = "{name}"') + 1, QUICK)
    path.write_text("\n".join(lines))
    return Path(name)


def order(number: int, cents: int = 100, second: int = 0) -> str:
    at = f"2026-11-01T10:{second // 60:02}:{second % 60:02}Z"
    return json.dumps({"id": number, "customer": "Ada", "cents": cents, "at": at})


@pytest.mark.parametrize("template", ["orders", "clicks", "cdc", "payments"])
def test_a_template_passes_its_own_example(ottla: Ottla, template: str) -> None:
    folder = project(ottla, template, f"own-{template}")
    assert ottla("test", str(folder)).startswith("pass")


@pytest.mark.parametrize("name", ["clickstream", "table_changes", "payments", "replay"])
def test_a_pipeline_among_the_examples_passes_its_own(ottla: Ottla, name: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / name
    shutil.copytree(folder, name)
    assert ottla("test", name).startswith("pass")


def test_a_failing_example_shows_what_differs(ottla: Ottla) -> None:
    folder = project(ottla, "clicks", "failing")
    expected = folder / "tests" / "two_pages" / "expected" / "visits.jsonl"
    expected.write_text(expected.read_text().replace('"visits": 2', '"visits": 3'))
    out = ottla("test", str(folder), code=1)
    assert '- {"at": "2026-11-01T10:00:00.000Z", "page": "/", "visits": 3}' in out
    assert '+ {"at": "2026-11-01T10:00:00.000Z", "page": "/", "visits": 2}' in out
    assert "1 of 1 examples failed" in ottla.err


def test_check_names_columns_and_topics_that_are_not_there(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "orders", "checked")
    ottla("check", str(folder), code=4)
    assert "topics that are not there: checked.orders" in ottla.err
    produce(broker, "checked.orders", [order(1)])
    assert "totals     minute, city, orders, cents" in ottla("check", str(folder))


@pytest.mark.parametrize(
    ("file", "wrong", "right", "expected"),
    [
        ("sql/totals.sql", "city,", "town,", "sql/totals.sql:2: A column, variable, or function parameter"),
        ("sql/totals.sql", "GROUP BY", "GROUPED BY", "sql/totals.sql:7: Syntax error"),
        ("pipeline.toml", 'key = "city"', 'key = "town"', "sink totals needs the column town"),
        ("pipeline.toml", "cents > 0", "sense > 0", "`sense` cannot be resolved"),
        ("pipeline.toml", "cents BIGINT", "cents INTO", "pipeline.toml:9: "),
    ],
)
def test_a_mistake_that_only_spark_finds_has_its_file_and_line(
    ottla: Ottla, file: str, wrong: str, right: str, expected: str
) -> None:
    folder = project(ottla, "orders", "mistaken")
    path = folder / file
    assert wrong in path.read_text()
    path.write_text(path.read_text().replace(wrong, right))
    ottla("check", "--offline", str(folder), code=2)
    assert expected in ottla.err


def test_a_run_fills_topic_table_and_dead_letters_once(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "orders", "run")
    produce(broker, "run.orders", [order(number, second=number) for number in range(200)] + ["nonsense"])
    produce(broker, "run.orders", [order(500, cents=-1), order(501, second=3000)])
    ottla("run", "--once", str(folder))
    ottla("run", "--once", str(folder))
    rows = [
        json.loads(record.value or b"")
        for record in read(broker.bootstrap, "run.order-totals", isolation_level="read_committed")
    ]
    assert sorted((row["minute"], row["orders"]) for row in rows) == [
        (f"2026-11-01T10:0{minute}:00.000Z", 20 if minute == 3 else 60) for minute in range(4)
    ]
    archive = pyarrow.parquet.read_table(folder / "archive")
    assert sorted(archive["id"].to_pylist()) == [*range(200), 501]
    assert archive.schema.field("at").type == pyarrow.timestamp("us", tz="UTC")
    letters = ottla.rows("dlq", "show", str(folder))
    assert {(letter["part"], letter["topic"]) for letter in letters} == {
        ("orders", "run.orders"),
        ("valid", "run.orders"),
    }
    status = ottla("status", str(folder), broker=False)
    assert "stopped" in status
    assert "totals" in status


@pytest.mark.slow
def test_the_lag_of_a_sink_is_that_of_a_group(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "payments", "lagging")
    payments = [json.dumps({"payment": f"p{n}", "account": "Ada", "cents": 1}) for n in range(10)]
    produce(broker, "lagging.payments", payments)
    ottla("run", "--once", str(folder))
    produce(broker, "lagging.payments", payments)
    with Admin(broker.bootstrap) as admin:
        commits = admin.group_offsets("lagging.ledger")
    assert sum(each.offset for each in commits.values()) == 10


@pytest.mark.slow
def test_a_payment_that_is_sent_twice_counts_once(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "payments", "twice")
    payments = [json.dumps({"payment": f"p{n}", "account": "Ada", "cents": 1}) for n in range(10)]
    produce(broker, "twice.payments", payments * 2)
    ottla("run", "--once", str(folder))
    produce(broker, "twice.payments", payments)
    ottla("run", "--once", str(folder))
    with sqlite3.connect(folder / "ledger.db") as ledger:
        assert ledger.execute("SELECT count(*), sum(cents) FROM payments").fetchone() == (10, 10)


@pytest.mark.slow
def test_changes_that_arrive_out_of_order_end_in_order(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "cdc", "changes")
    topic = "changes.customer-changes"
    late = {"op": "update", "version": 2, "id": 1, "name": "Ada", "city": "Paris"}
    produce(
        broker,
        topic,
        [
            json.dumps({"op": "insert", "version": 1, "id": 1, "name": "Ada", "city": "London"}),
            json.dumps({"op": "delete", "version": 3, "id": 1}),
            json.dumps({"op": "insert", "version": 1, "id": 2, "name": "Grace", "city": "Boston"}),
        ],
    )
    ottla("run", "--once", str(folder))
    produce(broker, topic, [json.dumps(late)])
    ottla("run", "--once", str(folder))
    with sqlite3.connect(folder / "customers.db") as table:
        assert table.execute("SELECT id, name, city FROM customers").fetchall() == [(2, "Grace", "Boston")]


@pytest.mark.slow
def test_a_mended_letter_goes_back_once(ottla: Ottla, broker: BrokerProcess, tmp_path: Path) -> None:
    folder = project(ottla, "payments", "mended")
    produce(broker, "mended.payments", ['{"account": "Grace", "cents": 7}'])
    ottla("run", "--once", str(folder))
    (letter,) = ottla.rows("dlq", "show", str(folder))
    letter["value"] = '{"payment": "p9", "account": "Grace", "cents": 7}'
    mended = tmp_path / "mended.jsonl"
    mended.write_text(json.dumps({**letter, "offset": 99}))
    ottla("dlq", "replay", str(folder), "--mended", str(mended), code=2)
    assert "there is no letter at partition" in ottla.err
    mended.write_text(json.dumps(letter))
    (planned,) = ottla.rows("dlq", "replay", str(folder), "--mended", str(mended), "--dry-run")
    assert (planned["letters"], planned["mended"]) == (1, 1)
    assert "1 letters sent back" in ottla("dlq", "replay", str(folder), "--mended", str(mended), "--yes")
    assert "0 letters sent back" in ottla("dlq", "replay", str(folder), "--yes")
    ottla("run", "--once", str(folder))
    with sqlite3.connect(folder / "ledger.db") as ledger:
        assert ledger.execute("SELECT payment, cents FROM payments").fetchall() == [("p9", 7)]
    assert ottla.rows("dlq", "ls", str(folder))[0]["not_replayed"] == 0


def test_a_backfill_is_a_plan_first_and_enters_once(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "orders", "again")
    produce(broker, "again.orders", [order(number) for number in range(10)])
    arguments = ("backfill", str(folder), "--sink", "archive", "--into", "mended", "--from", "1")
    plan = ottla(*arguments, "--dry-run")
    assert "8 records into parquet mended (not done)" in plan
    ottla(*arguments, code=5)  # nobody is there to confirm it
    ottla(*arguments, "--yes")
    assert "it was there already" in ottla(*arguments, "--yes")
    ids = pyarrow.parquet.read_table(folder / "mended")["id"].to_pylist()
    assert sorted(ids) == list(range(2, 10))
    ottla("backfill", str(folder), "--sink", "nobody", "--yes", code=1)
    assert "there are totals, archive" in ottla.err


@pytest.mark.slow
def test_preview_shows_each_step(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "orders", "seen")
    produce(broker, "seen.orders", [order(number) for number in range(50)] + ["nonsense"])
    out = ottla("preview", str(folder), "-n", "2")
    assert "totals\nMINUTE                    CITY    ORDERS  CENTS" in out
    assert "dead letters" in out


@pytest.mark.slow
def test_a_schema_is_found_out_and_written(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "payments", "found")
    path = folder / "pipeline.toml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "schema" not in line))
    ottla("check", "--offline", str(folder), code=2)
    assert "source payments has no schema" in ottla.err
    produce(
        broker,
        "found.payments",
        ['{"payment": "p", "cents": 5, "by": [{"cardNo": "1"}], "account": "", "at": null}'],
    )
    ottla("infer", str(folder), "payments")
    assert "cents BIGINT" in path.read_text()
    assert "ARRAY<STRUCT<cardNo: STRING>>" in path.read_text()
    ottla("check", str(folder))


def test_the_graph_is_drawn(ottla: Ottla) -> None:
    folder = project(ottla, "orders", "drawn")
    assert "valid --> totals" in ottla("graph", str(folder), broker=False)
    assert {"from": "valid", "to": "totals"} in json.loads(
        ottla("graph", str(folder), "-o", "json", broker=False)
    )
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        picture = folder / f"graph{suffix}"
        ottla("graph", str(folder), str(picture), broker=False)
        assert picture.read_bytes().startswith(magic)
    ottla("graph", str(folder), "graph.gif", broker=False, code=2)


def test_a_second_run_is_refused_while_the_first_one_lasts(ottla: Ottla, broker: BrokerProcess) -> None:
    folder = project(ottla, "orders", "alone")
    produce(broker, "alone.orders", [order(1)])
    with alone(load_pipeline(folder)):
        assert ottla("status", str(folder), broker=False).startswith("alone: starting")
        ottla("run", str(folder), code=1)
    assert f"alone runs already, as process {os.getpid()}" in ottla.err
    assert "stop it first" in ottla.err


@pytest.mark.slow
def test_a_backfill_by_the_same_steps_enters_once_and_one_by_mended_steps_anew(
    ottla: Ottla, broker: BrokerProcess
) -> None:
    folder = project(ottla, "payments", "redone")
    payments = [json.dumps({"payment": f"p{n}", "account": "Ada", "cents": n}) for n in range(10)]
    produce(broker, "redone.payments", payments)
    arguments = ("backfill", str(folder), "--sink", "receipts", "--into", "redone.again", "--yes")
    ottla(*arguments)
    ottla(*arguments)
    topic = "redone.again"
    assert len(list(read(broker.bootstrap, topic, isolation_level="read_committed"))) == 10
    path = folder / "pipeline.toml"
    path.write_text("# a comment moves every line\n" + path.read_text())
    ottla(*arguments)
    assert len(list(read(broker.bootstrap, topic, isolation_level="read_committed"))) == 10
    path.write_text(path.read_text().replace("'received '", "'thanks for '"))
    ottla(*arguments)
    assert len(list(read(broker.bootstrap, topic, isolation_level="read_committed"))) == 20


def test_wrong_uses_say_what_to_do(ottla: Ottla, tmp_path: Path) -> None:
    ottla("run", str(tmp_path / "nowhere"), code=1)
    assert "ottla pipeline new" in ottla.err
    folder = project(ottla, "orders", "wrong")
    for verb in ("run", "preview"):
        ottla(verb, str(folder), code=4)
        assert "topics that are not there: wrong.orders" in ottla.err
        assert "ottla topic create wrong.orders" in ottla.err
    ottla("run", str(folder), "-b", "127.0.0.1:1", broker=False, code=3)
    assert "127.0.0.1:1" in ottla.err
    (tmp_path / "file").touch()
    ottla("new", "file", broker=False, code=2)
    ottla("new", str(folder), broker=False, code=2)
    assert "not empty" in ottla.err
    ottla("status", str(folder), broker=False, code=4)
    assert "never ran" in ottla.err
    ottla("infer", str(folder), "nobody", code=4)
    assert "there are orders" in ottla.err
