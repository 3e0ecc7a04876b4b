"""A definition is read whole, or refused with every problem named by file, line and cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.pipeline.definition import DatabaseTarget, ExpectStep, SqlStep, TopicTarget, Watermark
from ottla.pipeline.definition_file import load_pipeline
from ottla.pipeline.graph import edges, sources_behind, steps_in_order
from ottla.pipeline.problems import DefinitionError, PipelineError
from ottla.pipeline.sql_inputs import tables_read

WHOLE = """\
[pipeline]
name = "order-totals"
bootstrap = "127.0.0.1:9092"

[pipeline.spark]
"spark.sql.shuffle.partitions" = 2

[source.orders]
topic = "orders"
schema = "id BIGINT, customer STRING, cents BIGINT, at TIMESTAMP"
watermark = { column = "at", delay = "10 minutes" }

[table.customers]
path = "customers.csv"
schema = "name STRING, city STRING"

[step.totals]
sql = '''
SELECT city, sum(cents) AS cents  -- FROM nowhere
FROM valid JOIN customers ON customer = name
GROUP BY city
'''

[step.valid]
input = "orders"
expect = [
  { name = "positive", check = "cents > 0", action = "quarantine" },
  { check = "customer IS NOT NULL", action = "drop" },
]

[sink.totals]
input = "totals"
topic = "order-totals"
key = "city"
mode = "update"

[sink.ledger]
input = "valid"
sqlite = "ledger.db"
table = "payments"
keys = ["id"]
unique = ["id"]
"""

SQL = WHOLE[WHOLE.index("sql = ") : WHOLE.index("[step.valid]")]


def write(folder: Path, text: str) -> Path:
    (folder / "pipeline.toml").write_text(text)
    (folder / "customers.csv").write_text("Ada,London\n")
    return folder


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(DefinitionError) as raised:
        load_pipeline(write(folder, text))
    return [str(problem).removeprefix(f"{folder}/") for problem in raised.value.problems]


def test_a_whole_definition_is_read(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, WHOLE))
    assert pipeline.name == "order-totals"
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "2"}
    assert pipeline.dead_letters == "order-totals.dead-letters"
    assert pipeline.sources["orders"].watermark == Watermark("at", "10 minutes")
    valid = pipeline.steps["valid"]
    assert isinstance(valid, ExpectStep)
    assert [each.action for each in valid.expectations] == ["quarantine", "drop"]
    assert pipeline.sinks["totals"].target == TopicTarget("order-totals", "city", "json", exactly_once=True)
    ledger = str(tmp_path / "ledger.db")
    assert pipeline.sinks["ledger"].target == DatabaseTarget("sqlite", ledger, "payments", ("id",), ("id",))


def test_where_sinks_write_does_not_depend_on_who_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of Spark Connect stands elsewhere than the person who runs the pipeline."""
    write(tmp_path, WHOLE)
    monkeypatch.chdir(tmp_path)
    assert load_pipeline(Path(".")).sinks == load_pipeline(tmp_path).sinks


def test_steps_come_behind_what_they_read_wherever_they_are_written(tmp_path: Path) -> None:
    pipeline = load_pipeline(write(tmp_path, WHOLE))
    assert [step.name for step in steps_in_order(pipeline)] == ["valid", "totals"]
    assert sources_behind(pipeline, "totals") == ["orders"]
    assert ("customers", "totals") in edges(pipeline)
    assert ("totals", "sink:totals") in edges(pipeline)


def test_a_sql_step_knows_where_its_text_stands(tmp_path: Path) -> None:
    totals = load_pipeline(write(tmp_path, WHOLE)).steps["totals"]
    assert isinstance(totals, SqlStep)
    assert totals.file.endswith("pipeline.toml")
    assert WHOLE.splitlines()[totals.line - 1].startswith("sql =")


@pytest.mark.parametrize(
    ("wrong", "right", "expected"),
    [
        (
            'topic = "orders"',
            'topik = "orders"',
            "topik means nothing in [source.orders]; did you mean topic?",
        ),
        (
            '"cents > 0", action = "quarantine"',
            '"cents > 0", action = "quarantin"',
            "did you mean 'quarantine'?",
        ),
        (
            'input = "valid"',
            'input = "valit"',
            "sink ledger reads valit, which is not there; did you mean valid?",
        ),
        ('mode = "update"', "mode = 3", "mode must be a text, not 3"),
        ('path = "customers.csv"', 'path = "gone.csv"', "gone.csv is not there"),
        ('topic = "order-totals"', 'topic = "order totals"', "'order totals' is no name of a topic"),
        ('topic = "order-totals"', 'topic = "x"\nparquet = "y"', "sink totals says topic and parquet"),
        ("FROM valid JOIN", "FROM totals JOIN valid JOIN", ""),
        (
            "FROM valid JOIN customers",
            "FROM nothing JOIN nobody",
            "step totals reads no source, table or step",
        ),
        (
            'schema = "id BIGINT, customer STRING, cents BIGINT, at TIMESTAMP"\n',
            "",
            "source orders has no schema",
        ),
        (
            'bootstrap = "127.0.0.1:9092"',
            'bootstrap = "${OTTLA_NOT_SET}"',
            "the variable OTTLA_NOT_SET is not set",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_cure(
    tmp_path: Path, wrong: str, right: str, expected: str
) -> None:
    assert wrong in WHOLE
    text = WHOLE.replace(wrong, right, 1)
    if not expected:
        load_pipeline(write(tmp_path, text))
        return
    found = problems_of(tmp_path, text)
    assert any(expected in each for each in found), found
    assert all(each.split(":")[0] in ("pipeline.toml", str(tmp_path)) for each in found)
    assert int(found[0].split(":")[1]) > 0


def test_the_line_is_that_of_the_key(tmp_path: Path) -> None:
    text = WHOLE.replace('key = "city"', 'kez = "city"')
    (found,) = problems_of(tmp_path, text)
    line = text.splitlines().index('kez = "city"') + 1
    assert found.startswith(f"pipeline.toml:{line}: ")


def test_an_expectation_has_its_own_line(tmp_path: Path) -> None:
    text = WHOLE.replace('action = "drop"', 'action = "stop"')
    (found,) = problems_of(tmp_path, text)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if '"stop"' in each)
    assert found.startswith(f"pipeline.toml:{line}: action = 'stop' is not known")


def test_rows_that_come_anew_need_keys(tmp_path: Path) -> None:
    text = WHOLE.replace('topic = "order-totals"\nkey = "city"', 'parquet = "totals"')
    (found,) = problems_of(tmp_path, text)
    assert "parquet without keys would keep the old ones" in found


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = WHOLE.replace('input = "valid"', 'input = "x"').replace('mode = "update"', 'mode = "x"')
    assert len(problems_of(tmp_path, text)) == 2


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ('topic = "orders"', "topic = 3", "topic must be a text or a list of texts, not 3; as topic = "),
        (
            '{ column = "at", delay = "10 minutes" }',
            '"at"',
            "watermark must be a table, not 'at'; write watermark = { column = ",
        ),
        ('key = "city"', 'key = ["city"]', "key must be a text, not ['city']"),
        ('path = "customers.csv"', 'path = "customer.csv"', "did you mean customers.csv?"),
        (SQL, 'file = "total.sql"\n', "total.sql: No such file or directory"),
        ("[step.totals]", "[step.Totals]", "'Totals' is no name; use a-z, 0-9 and _, a letter first"),
        ("[source.orders]", "[[source.orders]]", "source.orders must be a table"),
        (
            "[sink.totals]",
            '[step.orders]\nsql = "SELECT 1 FROM valid"\n[sink.totals]',
            "orders is the name of two parts; rename one of them",
        ),
        ("[sink.ledger]", "[sinc.ledger]", "sinc means nothing in the file; did you mean sink?"),
        ('name = "order-totals"', 'name = "Totals"', "name = 'Totals' is no name"),
    ],
)
def test_one_mistake_is_one_problem(tmp_path: Path, right: str, wrong: str, expected: str) -> None:
    """Whatever hangs on the part that cannot be read is not told as well."""
    assert right in WHOLE
    text = WHOLE.replace(right, wrong, 1)
    (found,) = problems_of(tmp_path, text)
    assert expected in found
    pairs = zip(WHOLE.splitlines(), text.splitlines(), strict=False)
    line = next(number for number, (one, other) in enumerate(pairs, 1) if one != other)
    assert abs(int(found.split(":")[1]) - line) <= 1  # of the key, or of its table


def test_steps_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, WHOLE.replace('input = "orders"', 'input = "totals"'))
    assert "steps wait for each other: totals → valid → totals; one of them must" in found


def test_the_definition_itself_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, WHOLE)
    assert main(["pipeline", "graph", str(tmp_path / "pipeline.toml")]) == 0
    assert "valid --> totals" in capsys.readouterr().out


def test_broken_toml_is_named_with_its_line(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, "[pipeline]\nname = \n")
    assert found.startswith("pipeline.toml:2: no TOML")


def test_a_folder_without_a_definition_says_how_to_begin_one(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="ottla pipeline new"):
        load_pipeline(tmp_path)


def test_an_environment_variable_stands_for_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "a:1,b:2")
    text = WHOLE.replace("127.0.0.1:9092", "${BROKERS}")
    assert load_pipeline(write(tmp_path, text)).bootstrap == "a:1,b:2"


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select * from A", ("a",)),
        ("SELECT 1 FROM a x, b AS y JOIN `c` ON 1=1", ("a", "b", "c")),
        ("SELECT 'from nowhere' FROM a -- from there\n/* join that */", ("a",)),
        ("WITH w AS (SELECT * FROM a) SELECT * FROM w", ("a", "w")),
    ],
)
def test_the_tables_that_a_text_reads(sql: str, names: tuple[str, ...]) -> None:
    assert tables_read(sql) == names
