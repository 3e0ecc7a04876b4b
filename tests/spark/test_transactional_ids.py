"""Transactional ids of tasks: never two open under one, and few of them."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.spark.errors import Superseded
from ottla.spark.transactional_ids import IdHolder, decision_id, hold_ids, is_of_a_task

Hold = Callable[[], IdHolder]


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """Takes ids as another process would."""
    holders = []

    def take() -> IdHolder:
        holders.append(hold_ids(tmp_path))
        return holders[-1]

    yield take
    for each in holders:
        each.close()


def test_who_holds_ids_shares_them_with_nobody(hold: Hold) -> None:
    holders = [hold() for _ in range(3)]
    ids = {holder.take("query", "run", 0) for holder in holders for _ in range(2)}
    assert len(ids) == 6
    assert all(is_of_a_task(each, "query") for each in ids)


def test_the_next_process_goes_on_where_the_last_one_was(hold: Hold, tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_take_one, args=(tmp_path,))
    process.start()
    process.join()
    (first,) = (tmp_path / "taken").read_text().splitlines()
    heir = hold()
    assert f"-{heir.name}-0-" in first
    second = heir.take("query", "run", 0)
    assert f"-{heir.name}-1-" in second  # in the same batch the first may still be open
    assert heir.take("query", "run", 1) == first
    assert heir.take("query", "other run", 0) == first


def _take_one(place: Path) -> None:
    (place / "taken").write_text(hold_ids(place).take("query", "run", 0))


def test_a_task_of_a_batch_that_is_over_gets_none(hold: Hold) -> None:
    holder = hold()
    holder.take("query", "run", 4)
    with pytest.raises(Superseded, match="a task of batch 3"):
        holder.take("query", "run", 3)
    holder.take("another", "run", 3)


def test_a_forked_process_takes_a_name_of_its_own(hold: Hold) -> None:
    holder = hold()
    assert holder.is_ours
    holder._pid += 1
    assert not holder.is_ours


@pytest.mark.parametrize(
    "content", ["", '{"boot": "', '{"boot": "of another day", "name": "%s", "used": {}}']
)
def test_what_cannot_be_trusted_gives_a_new_name(hold: Hold, tmp_path: Path, content: str) -> None:
    name = _name_of_a_dead_process(hold, tmp_path)
    (tmp_path / "0.json").write_text(content.replace("%s", name))
    assert hold().name != name


def _name_of_a_dead_process(hold: Hold, place: Path) -> str:
    first = hold()
    first.take("query", "run", 0)
    first.close()
    second = hold()
    second.close()
    assert first.name == second.name == json.loads((place / "0.json").read_text())["name"]
    return first.name


def test_names_are_given_up_before_their_list_grows_long(hold: Hold, tmp_path: Path) -> None:
    holder = hold()
    first = holder.name
    ids = {holder.take(f"query {number}", "run", 0) for number in range(600)}
    assert len(ids) == 600
    assert holder.name != first
    assert len(json.loads((tmp_path / "0.json").read_text())["used"]) < 300


def test_queries_with_similar_names_are_told_apart(hold: Hold) -> None:
    id_ = hold().take("load-2", "run", 0)
    assert is_of_a_task(id_, "load-2")
    assert not is_of_a_task(id_, "2")
    assert not is_of_a_task(id_, "load")
    assert not is_of_a_task(decision_id("load-2"), "load-2")


def test_a_place_of_somebody_else_is_refused(hold: Hold, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.spark import transactional_ids
    from ottla.spark.errors import JobError

    monkeypatch.setattr(transactional_ids.os, "getuid", lambda: 12345)
    with pytest.raises(JobError, match="TMPDIR"):
        hold()
