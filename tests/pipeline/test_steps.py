"""What steps do to a stream: joins, a user's function, remembered ids, expectations; and their mistakes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pytest

from ottla.client import read
from ottla.testing import BrokerProcess
from pipeline.commands import QUICK, Ottla, produce

pytestmark = pytest.mark.timeout(300)

ORDERS = f"""\
[pipeline]
name = "{{name}}"
{QUICK}
[source.orders]
topic = "{{name}}.orders"
schema = "id BIGINT, cents BIGINT, at TIMESTAMP"
watermark = {{{{ column = "at", delay = "10 minutes" }}}}
"""
JOINED = """
[source.payments]
topic = "joined.payments"
schema = "paid_id BIGINT, paid TIMESTAMP"
watermark = { column = "paid", delay = "10 minutes" }

[step.once]
input = "orders"
deduplicate = ["id"]

[step.paid]
sql = '''
SELECT id, cents, at
FROM once JOIN payments ON id = paid_id AND paid BETWEEN at AND at + INTERVAL 1 HOUR
'''

[step.named]
input = "paid"
python = "steps.py:named"

[sink.paid]
input = "named"
sqlite = "paid.db"
table = "paid"
"""
FUNCTION = """\
from pyspark.sql import functions as sql


def named(paid):
    return paid.select("id", sql.concat(sql.lit("order "), "id").alias("text"))
"""
EXPECTING = """
[step.valid]
input = "orders"
expect = [
  { name = "dear", check = "cents > 50", action = "warn" },
  { name = "known", check = "id IS NOT NULL", action = "drop" },
  { name = "priced", check = "cents > 0", action = "quarantine" },
]

[step.texts]
sql = "SELECT concat('order ', id) AS value, date(at) AS day FROM valid"

[sink.texts]
input = "texts"
topic = "expecting.texts"
format = "text"
guarantee = "at least once"

[sink.days]
input = "texts"
parquet = "days"
partition_by = ["day"]
"""
FAILING = """
[step.valid]
input = "orders"
expect = [{ name = "priced", check = "cents > 0", action = "fail" }]

[sink.rows]
input = "valid"
sqlite = "rows.db"
table = "rows"
"""


def order(number: int | None, cents: int = 100, day: int = 1) -> str:
    return json.dumps({"id": number, "cents": cents, "at": f"2026-11-{day:02}T10:00:00Z"})


def write(folder: Path, text: str, *, steps: str = FUNCTION) -> str:
    (folder / "pipeline.toml").write_text(text)
    (folder / "steps.py").write_text(steps)
    return str(folder)


def stored(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return sorted(database.execute(sql).fetchall())


@pytest.mark.slow
def test_streams_are_joined_ids_remembered_and_functions_called(
    ottla: Ottla, broker: BrokerProcess, tmp_path: Path
) -> None:
    folder = write(tmp_path, ORDERS.format(name="joined") + JOINED)
    payment = [json.dumps({"paid_id": number, "paid": "2026-11-01T10:30:00Z"}) for number in (1, 2, 3)]
    too_late = json.dumps({"paid_id": 4, "paid": "2026-11-01T12:00:00Z"})
    produce(broker, "joined.orders", [order(number) for number in (1, 2, 2, 4)])
    produce(broker, "joined.payments", [payment[0]])
    ottla("run", "--once", folder)
    produce(broker, "joined.payments", [*payment[1:], too_late])  # the other side waits for them
    produce(broker, "joined.orders", [order(1), order(3)])
    ottla("run", "--once", folder)
    assert stored(tmp_path / "paid.db", "SELECT id, text FROM paid") == [
        (1, "order 1"),
        (2, "order 2"),
        (3, "order 3"),
    ]


def test_rows_that_are_not_as_expected_are_counted_dropped_or_quarantined(
    ottla: Ottla, broker: BrokerProcess, tmp_path: Path
) -> None:
    folder = write(tmp_path, ORDERS.format(name="expecting") + EXPECTING)
    produce(broker, "expecting.orders", [order(1), order(2, 7, day=2), order(None), order(4, 0)])
    ottla("run", "--once", folder)
    texts = [record.value for record in read(broker.bootstrap, "expecting.texts")]
    assert sorted(texts) == [b"order 1", b"order 2"]
    days = pyarrow.parquet.read_table(tmp_path / "days")
    assert sorted(days["value"].to_pylist()) == ["order 1", "order 2"]
    assert sorted(path.name for path in (tmp_path / "days").glob("day=*")) == [
        "day=2026-11-01",
        "day=2026-11-02",
    ]
    (letter,) = ottla.rows("dlq", "show", folder)
    assert letter["reason"] == "expectation 'priced' does not hold: cents > 0"
    assert letter["value"] == order(4, 0)
    told = [json.loads(line) for line in ottla("status", folder, "-o", "jsonl", broker=False).splitlines()]
    (texts_status,) = [row for row in told if row["sink"] == "texts"]
    assert texts_status["failed"] == {"valid": 4}  # two are not dear, one is unknown, one has no price


def test_a_failed_expectation_stops_the_run_and_nothing_is_lost(
    ottla: Ottla, broker: BrokerProcess, tmp_path: Path
) -> None:
    text = ORDERS.format(name="failing") + FAILING
    folder = write(tmp_path, text)
    produce(broker, "failing.orders", [order(1), order(2, 0), order(3)])
    ottla("run", "--once", folder, code=1)
    assert "rows failed: " in ottla.err
    assert "expectation 'priced' of step valid does not hold: cents > 0" in ottla.err
    ottla("status", folder, broker=False, code=1)
    assert "failing: failed" in ottla.out
    write(tmp_path, text.replace('action = "fail"', 'action = "drop"'))
    ottla("run", "--once", folder)
    assert stored(tmp_path / "rows.db", "SELECT id FROM rows") == [(1,), (3,)]


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ('paid.select("id"', 'paid.select("it"', "steps.py:5: A column, variable, or function parameter"),
        ("return paid", "raise ValueError('no') #", "steps.py:5: ValueError: no"),
        ("def named(paid):", "def named(paid)", "steps.py:4: SyntaxError: expected ':'"),
        ("def named", "def names", "steps.py: there is no function named; there are names"),
        ("named(paid)", "named(paid, more)", "steps.py: TypeError: named() missing 1 required positional"),
        ("return paid", "return 3 #", "the function gave int; return a DataFrame"),
    ],
)
def test_a_mistake_in_a_function_has_its_file_and_line(
    ottla: Ottla, tmp_path: Path, right: str, wrong: str, expected: str
) -> None:
    assert right in FUNCTION
    folder = write(tmp_path, ORDERS.format(name="f") + JOINED, steps=FUNCTION.replace(right, wrong))
    ottla("check", "--offline", folder, code=2)
    assert expected in ottla.err


@pytest.mark.parametrize(
    ("right", "wrong", "line", "expected"),
    [
        ('deduplicate = ["id"]', 'deduplicate = ["idd"]', "[step.once]", "idd"),
        (
            'column = "paid"',
            'column = "pait"',
            "[source.payments]",
            "watermark: pait is no column; there are paid_id, paid",
        ),
        ('column = "paid"', 'column = "paid_id"', "[source.payments]", "paid_id is BIGINT; it must"),
        ('"paid", delay = "10 minutes"', '"paid", delay = "10 minuts"', "[source.payments]", "10 minuts"),
    ],
)
def test_a_step_that_names_what_is_not_there_is_refused_with_its_line(
    ottla: Ottla, tmp_path: Path, right: str, wrong: str, line: str, expected: str
) -> None:
    text = ORDERS.format(name="f") + JOINED
    assert right in text
    folder = write(tmp_path, text.replace(right, wrong))
    ottla("check", "--offline", folder, code=2)
    number = text.splitlines().index(line) + 1
    assert f"pipeline.toml:{number}: " in ottla.err
    assert expected in ottla.err


@pytest.mark.slow
def test_letters_whose_origin_a_step_left_behind_are_shown_and_not_sent_to_nowhere(
    ottla: Ottla, broker: BrokerProcess, tmp_path: Path
) -> None:
    text = FAILING.replace('"orders"', '"plain"').replace('"fail"', '"quarantine"')
    plain = '[step.plain]\nsql = "SELECT id, cents FROM orders"\n'
    folder = write(tmp_path, ORDERS.format(name="behind") + plain + text)
    case = tmp_path / "tests" / "free"
    (case / "expected").mkdir(parents=True)
    (case / "orders.jsonl").write_text(order(1, 0))
    letter = {
        "part": "valid",
        "reason": "expectation 'priced' does not hold: cents > 0",
        "value": '{"id":1,"cents":0}',
    }
    (case / "expected" / "dead_letters.jsonl").write_text(json.dumps(letter))
    assert ottla("test", folder).startswith("pass")
    produce(broker, "behind.orders", [order(1, 0)])
    assert '{"id":1,"cents":0}' in ottla("preview", folder)
    ottla("run", "--once", folder)
    (found,) = ottla.rows("dlq", "show", folder)
    assert (found["topic"], found["value"]) == (None, '{"id":1,"cents":0}')
    ottla("dlq", "replay", folder, "--yes", code=1)
    assert "select it there too" in ottla.err
