"""Moving a group's offsets, and deleting groups. A reset shows OLD → NEW first, and leaves a way back."""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.clusters import connected
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import confirm
from ottla.cli.output import Row, print_done, print_plan
from ottla.cli.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client import Admin
    from ottla.client.admin_values import GroupDescription
    from ottla.model.topics import TopicPartition

_WITHOUT_MEMBERS = ("Empty", "Dead")


def reset(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        old = _committed(admin, options)
        new = _wanted(admin, options, old)
        rows: list[Row] = [
            {
                "topic": place.topic,
                "partition": place.partition,
                "old": old.get(place),
                "new": offset,
                "change": None if offset is None or place not in old else offset - old[place],
            }
            for place, offset in sorted(new.items())
        ]
        print_plan(rows, options.output)
        if options.yes and new:
            _refuse_if_active(admin, options.group)
            undo = _write_undo(options, {place: old.get(place) for place in new})
            _move(admin, options.group, new)
        if not new and not _is_there(admin, options.group):
            raise CommandFailed(
                f"group {options.group} has committed nothing",
                "`ottla group ls` lists the groups; -t TOPIC begins one there",
                ExitCode.NOT_FOUND,
            )
    sentence = f"{counted(len(rows), 'offset')} of {options.group} moved"
    if options.yes and new:
        sentence += f"; `ottla group reset {options.group} --file {undo} --yes` undoes it"
    elif options.output == "table" and new:
        sentence += ": --yes does it"
    print_done(rows, options.output, sentence, done=options.yes or not new)
    return ExitCode.DONE


def _is_there(admin: Admin, group_id: str) -> bool:
    return any(group.id == group_id for group in admin.groups())


def _move(admin: Admin, group_id: str, new: Mapping[TopicPartition, int | None]) -> None:
    moved = {place: offset for place, offset in new.items() if offset is not None}
    if moved:
        admin.alter_group_offsets(group_id, moved)
    forgotten = [place for place, offset in new.items() if offset is None]
    if forgotten:
        admin.delete_group_offsets(group_id, forgotten)


def _committed(admin: Admin, options: argparse.Namespace) -> dict[TopicPartition, int]:
    return {
        place: each.offset
        for place, each in admin.group_offsets(options.group).items()
        if options.topic is None or place.topic in options.topic
    }


def _wanted(
    admin: Admin, options: argparse.Namespace, old: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """Within what the partitions hold: an offset outside of that would only be reset once more.

    None: there is to be no commit.
    """
    wanted: dict[TopicPartition, int | None]
    if options.file is not None:
        wanted = {
            place: offset
            for place, offset in _read_offsets(Path(options.file)).items()
            if (options.topic is None or place.topic in options.topic)
            and (offset is not None or place in old)
        }
    elif options.shift is not None:
        wanted = {place: offset + options.shift for place, offset in old.items()}
    else:
        places = list(old)
        for topic in options.topic or ():
            places += [place for place in admin.partitions_of(topic) if place not in old]
        return dict(admin.resolve_offsets(places, options.to)) if places else {}
    kept = [place for place, offset in wanted.items() if offset is not None]
    first, end = admin.earliest_offsets(kept), admin.latest_offsets(kept)
    return {
        place: None if offset is None else min(max(offset, first[place]), end[place])
        for place, offset in wanted.items()
    }


def _refuse_if_active(admin: Admin, group_id: str) -> None:
    from ottla.client.errors import BrokerError
    from ottla.model.errors import ErrorCode

    try:
        group: GroupDescription = admin.group(group_id)
    except BrokerError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return  # it is made by the commit
        raise
    if group.state not in _WITHOUT_MEMBERS:
        members = ", ".join(
            sorted({f"{each.client_id} at {each.host.removeprefix('/')}" for each in group.members})
        )
        raise CommandFailed(
            f"group {group_id} is {group.state} with {counted(len(group.members), 'member')}: {members}",
            "they would go on where they are and commit over it; stop them first",
        )


def _write_undo(options: argparse.Namespace, old: Mapping[TopicPartition, int | None]) -> Path:
    """With null for what had no commit."""
    name = re.sub(r"[^\w.-]", "_", options.group)
    path = Path(options.undo_file or f"{name}-offsets-{time.strftime('%Y%m%d-%H%M%S')}.json")
    content = [
        {"topic": place.topic, "partition": place.partition, "offset": offset}
        for place, offset in old.items()
    ]
    with path.open("x") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    return path


def _read_offsets(path: Path) -> dict[TopicPartition, int | None]:
    from ottla.model.topics import TopicPartition

    try:
        entries = json.loads(path.read_text())
        return {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): (
                None if entry["offset"] is None else int(entry["offset"])
            )
            for entry in entries
        }
    except (ValueError, TypeError, KeyError) as error:
        raise CommandFailed(
            f"{path} does not hold offsets ({error})",
            'expected a list of {"topic": …, "partition": …, "offset": …}',
            ExitCode.WRONG_USE,
        ) from None


def rm(options: argparse.Namespace) -> int:
    with connected(options) as admin:
        rows: list[Row] = [_doomed(admin, group_id) for group_id in options.groups]
        print_plan(rows, options.output)
        if not options.dry_run:
            confirm(f"Delete {counted(len(rows), 'group')} and how far they have read?", yes=options.yes)
            for group_id in options.groups:
                _refuse_if_active(admin, group_id)
            for problem in admin.delete_groups(options.groups).values():
                if problem is not None:
                    raise problem
    print_done(rows, options.output, f"{counted(len(rows), 'group')} deleted", done=not options.dry_run)
    return ExitCode.DONE


def _doomed(admin: Admin, group_id: str) -> Row:
    group = admin.group(group_id)
    return {"group": group.id, "state": group.state, "offsets": len(admin.group_offsets(group_id))}
