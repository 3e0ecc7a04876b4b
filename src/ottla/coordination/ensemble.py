"""Coordination by an Apache ZooKeeper ensemble, behind the same interface as the embedded tree.

kazoo (the extra `ottla[zookeeper]`) keeps the connection in threads of its own. They only put what happened
into a queue and ask the owner's loop to look; everything else here runs on that loop and never waits.

Reads answer from a copy of the nodes that were asked for by `refresh`, kept up with what is submitted here.
Changes are sent one at a time, each together with its number to an ephemeral marker node of ours: when a
connection breaks before the answer, the marker tells whether the change happened, so nothing is done twice;
and a process whose session is over has no marker any more and can change nothing.
"""

from __future__ import annotations

import logging
import queue
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ottla.coordination.client import Callback, Done
from ottla.coordination.kazoo_words import (
    EVENT_TYPES,
    EnsembleUnreachable,
    add_step,
    code_of,
    is_connection_loss,
    is_supported,
    new_client,
    session_is_over,
    steps_of,
)
from ottla.coordination.mirror import Mirror, child_path
from ottla.coordination.operations import Code, Create, Delete, Operation, Result, SetData, StepResult
from ottla.coordination.paths import parent_of
from ottla.coordination.stat import Stat
from ottla.coordination.watches import EventType, WatchEvent
from ottla.model.limits import KIB

logger = logging.getLogger(__name__)

_MARKERS = "/ottla/submitters/"
_MULTI_BYTES_MAX = 900 * KIB
"""A ZooKeeper server refuses requests from 1 MiB on (`jute.maxbuffer`); what a step takes is an estimate."""


class KazooCoordination:
    multi_bytes_max: int | None = _MULTI_BYTES_MAX

    def __init__(
        self,
        hosts: str,
        post: Callable[[Callable[[], None]], None],
        session_over: Callable[[], None],
        *,
        session_timeout_ms: int,
        connection_timeout_ms: int,
    ) -> None:
        """`post` takes a call to the owner's loop from any thread; `session_over` is called there, once, when
        the ensemble has taken this process for dead.
        """
        self._hosts = hosts
        self._post = post
        self._session_over = session_over
        self._connection_timeout_ms = connection_timeout_ms
        self._client = new_client(hosts, session_timeout_ms)
        self._happened: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._under_way = 0  # calls of kazoo that have not come back
        self._waiting: deque[tuple[Operation, Done]] = deque()  # the first is with the ensemble
        self._number = 0  # of that one
        self._marker = ""
        self._is_closing = False
        self._mirror = Mirror()  # as of the last refresh, with what was changed from here since

    def start(self) -> None:
        """Blocks until the ensemble answers."""
        self._client.start_async().wait(self._connection_timeout_ms / 1000)
        if not self._client.connected:
            self.close()
            raise EnsembleUnreachable(
                f"no ZooKeeper server answers at {self._hosts} within {self._connection_timeout_ms} ms: "
                "start the ensemble, or correct zookeeper.connect; a broker without it keeps its state itself"
            )
        self._client.ensure_path("/")
        self._marker = self._client.create(_MARKERS, b"0", ephemeral=True, sequence=True, makepath=True)
        self._client.add_listener(self._state_changed)

    # For everybody (see Coordination)

    def submit(self, operation: Operation, done: Done) -> None:
        self._waiting.append((operation, done))
        if len(self._waiting) == 1:
            self._send()

    def read(self, path: str) -> tuple[bytes | None, Stat] | None:
        return self._mirror.read(path)

    def exists(self, path: str) -> Stat | None:
        return self._mirror.exists(path)

    def children(self, path: str) -> list[str] | None:
        return self._mirror.children(path)

    def watch_data(self, path: str, watcher: Callback) -> None:
        heard = self._watcher(path, watcher, EventType.NODE_DATA_CHANGED)
        self._call(lambda: self._client.exists_async(path, watch=heard), lambda _: None)

    def watch_children(self, path: str, watcher: Callback) -> None:
        heard = self._watcher(path, watcher, EventType.NODE_CHILDREN_CHANGED)
        self._call(lambda: self._client.get_children_async(path, watch=heard), lambda _: None)

    def refresh(self, paths: Sequence[str], done: Callable[[], None], *, below: bool = False) -> None:
        look = _Look(self._client, self._call, self._mirror, below, done)
        self._caught_up(lambda: look.begin(paths))

    def _caught_up(self, then: Callable[[], None]) -> None:
        """A server of an ensemble may be behind the others, unless it was told to catch up."""

        def synced(answer: Any) -> None:
            if is_connection_loss(answer.exception):
                self._caught_up(then)
            else:
                then()

        self._call(lambda: self._client.sync_async("/"), synced)

    # For the owner of the loop

    def sync(self) -> None:
        """Everything submitted is answered. Blocks: for starting, stopping and tests."""
        while self._under_way or not self._happened.empty():
            try:
                happened = self._happened.get(timeout=self._connection_timeout_ms / 1000)
            except queue.Empty:
                raise EnsembleUnreachable(
                    f"the ZooKeeper servers at {self._hosts} have stopped answering: start the ensemble again"
                ) from None
            happened()

    def close(self) -> None:
        """The session ends, and with it what lives with it. Once is enough."""
        if not self._is_closing:
            self._is_closing = True
            self._client.stop()
            self._client.close()

    # Between the threads

    def _call(self, start: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Ask kazoo; `then` gets its answer (kazoo's IAsyncResult) on the owner's loop."""
        self._under_way += 1

        def came_back(answer: Any) -> None:
            self._under_way -= 1
            then(answer)

        start().rawlink(lambda answer: self._hand_over(lambda: came_back(answer)))

    def _hand_over(self, call: Callable[[], None]) -> None:
        """In kazoo's threads: the owner's loop is to make the call."""
        self._happened.put(call)
        self._post(self._look)

    def _look(self) -> None:
        while not self._happened.empty():
            self._happened.get()()

    def _state_changed(self, state: str) -> None:
        """In kazoo's threads. A lost connection comes back by itself, a lost session does not."""
        if state == "LOST" and not self._is_closing:
            self._hand_over(self._session_over)

    def _watcher(self, path: str, watcher: Callback, missed: EventType) -> Callable[[Any], None]:
        def heard(event: Any) -> None:
            # A connection that breaks may hide a change, so it counts as one.
            told = WatchEvent(EVENT_TYPES.get(event.type, missed), path)
            self._hand_over(lambda: self.refresh([path], lambda: watcher(told)))

        return heard

    # A change on its way

    def _send(self) -> None:
        operation = self._waiting[0][0]
        steps = steps_of(operation)
        if any(not is_supported(step) for step in steps):
            refusal = Result(Code.UNIMPLEMENTED, 0, [StepResult(Code.UNIMPLEMENTED)])
            self._hand_over(lambda: self._answer(refusal))
            return
        self._number += 1
        transaction = self._client.transaction()
        for step in steps:
            add_step(transaction, step)
        transaction.set_data(self._marker, b"%d" % self._number)
        self._call(transaction.commit_async, self._committed)

    def _committed(self, answer: Any) -> None:
        if is_connection_loss(answer.exception):
            self._caught_up(self._find_out)
        elif answer.exception is not None:
            self._answer(session_is_over())
        elif isinstance(answer.value[-1], Exception):
            self._refused([code_of(one) for one in answer.value])
        else:
            *results, marker = answer.value
            self._carried_out(Stat(*marker), list(results))

    def _find_out(self) -> None:
        """The answer is lost: the marker tells whether the change is."""

        def found(answer: Any) -> None:
            if is_connection_loss(answer.exception):
                self._caught_up(self._find_out)
            elif answer.exception is not None:
                self._answer(session_is_over())
            elif answer.value[0] != b"%d" % self._number:
                self._send()
            else:
                self._reconstruct(Stat(*answer.value[1]))

        self._call(lambda: self._client.get_async(self._marker), found)

    def _reconstruct(self, marker: Stat) -> None:
        """It was carried out; what the answer would have been is in the nodes."""
        steps = steps_of(self._waiting[0][0])
        numbered = {parent_of(step.path) for step in steps if isinstance(step, Create) and step.sequential}
        changed = [step.path for step in steps if isinstance(step, SetData)]

        def looked() -> None:
            results: list[Any] = []
            for step in steps:
                if isinstance(step, Create):
                    results.append(self._created_path(step, marker.mzxid))
                else:
                    results.append(self.exists(step.path) or marker)  # the marker: deleted again since
            self._carried_out(marker, results)

        self.refresh(changed, lambda: self.refresh(sorted(numbered), looked, below=True))

    def _created_path(self, step: Create, zxid: int) -> str:
        if not step.sequential:
            return step.path
        parent = parent_of(step.path)
        for path in (child_path(parent, name) for name in self._mirror.children(parent) or ()):
            stat = self._mirror.exists(path)
            if path.startswith(step.path) and stat is not None and stat.czxid == zxid:
                return path
        return step.path  # deleted again by somebody else

    def _carried_out(self, marker: Stat, results: Sequence[Any]) -> None:
        operation = self._waiting[0][0]
        zxid, time_ms = marker.mzxid, marker.mtime_ms
        answers: list[StepResult] = []
        for step, result in zip(steps_of(operation), results, strict=True):
            if isinstance(step, Create):
                owner = self._client.client_id[0] if step.ephemeral else 0
                size = len(step.data or b"")
                stat = Stat(zxid, zxid, time_ms, time_ms, 0, 0, 0, owner, size, 0, zxid)
                self._mirror.keep(result, step.data, stat)
                answers.append(StepResult(Code.OK, result, stat))
            elif isinstance(step, SetData):
                stat = Stat(*result)
                self._mirror.keep(step.path, step.data, stat)
                answers.append(StepResult(Code.OK, None, stat))
            else:
                if isinstance(step, Delete):
                    self._mirror.forget(step.path)
                answers.append(StepResult(Code.OK))
        self._answer(Result(Code.OK, zxid, answers))

    def _refused(self, codes: Sequence[Code]) -> None:
        *step_codes, marker = codes
        steps = steps_of(self._waiting[0][0])
        failed = next((index for index, code in enumerate(step_codes) if code is not Code.OK), None)
        if failed is None:
            logger.error(
                "the marker of this process in ZooKeeper is gone (%s): its session is over", marker.name
            )
            self._answer(session_is_over())
            return
        result = Result(step_codes[failed], 0, [StepResult(code) for code in step_codes])
        # Whoever decides again must see why it failed.
        path = steps[failed].path
        self.refresh([parent_of(path), path], lambda: self._answer(result))

    def _answer(self, result: Result) -> None:
        _, done = self._waiting.popleft()
        if self._waiting:
            self._send()
        done(result)


class _Look:
    """At some nodes, and at what is below them if asked for; `done` when all of it is in the mirror."""

    def __init__(
        self,
        client: Any,
        call: Callable[[Callable[[], Any], Callable[[Any], None]], None],
        mirror: Mirror,
        below: bool,
        done: Callable[[], None],
    ) -> None:
        self._client = client
        self._call = call
        self._mirror = mirror
        self._below = below
        self._done = done
        self._under_way = 0

    def begin(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._ask_data(path)
            self._ask_names(path)
        if not paths:
            self._done()

    def _ask_data(self, path: str) -> None:
        self._under_way += 1
        self._call(lambda: self._client.get_async(path), lambda answer: self._data(path, answer))

    def _ask_names(self, path: str) -> None:
        self._under_way += 1
        self._call(lambda: self._client.get_children_async(path), lambda answer: self._names(path, answer))

    def _data(self, path: str, answer: Any) -> None:
        if is_connection_loss(answer.exception):
            self._ask_data(path)
        elif answer.exception is None:
            data, stat = answer.value
            self._mirror.keep(path, data, Stat(*stat))
        elif code_of(answer.exception) is Code.NO_NODE:
            self._mirror.forget(path)
        self._answered()

    def _names(self, path: str, answer: Any) -> None:
        if is_connection_loss(answer.exception):
            self._ask_names(path)
        elif answer.exception is None:
            self._mirror.keep_names(path, answer.value)
            if self._below:
                for name in answer.value:
                    self._ask_data(child_path(path, name))
                    self._ask_names(child_path(path, name))
        self._answered()

    def _answered(self) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._done()
