"""The controller: every change of the cluster's metadata goes through here, one way.

Decide from the image, submit one multi, wait until it is durable, apply to the image, announce, answer (new
partitions: when they can be used). A
plan that another change overtook (a version or a name no longer fits) is decided anew, from the image as it
is then. Runs on the thread that owns the broker's state; never waits.

`done` callbacks may be called before the method returns, when a request is refused outright.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from ottla.controller.changes import BrokerConfigChanged, Change, PartitionsAdded, Plan, TopicCreated
from ottla.controller.cluster import ClusterImage, TopicImage, unify
from ottla.controller.configs import (
    BrokerConfigPlan,
    ConfigAlteration,
    ConfigResult,
    TopicConfigPlan,
    decide_alter,
)
from ottla.controller.each import Pace, at_once, duplicates_of, for_each
from ottla.controller.elections import LeaderEpochPlan, decide_register, decide_take_office
from ottla.controller.producer_ids import decide_producer_id_block
from ottla.controller.topics import (
    AddPartitionsPlan,
    CreateTopicPlan,
    PartitionsSpec,
    TopicResult,
    TopicSpec,
    decide_create,
    decide_delete,
    decide_grow,
    find_topic,
)
from ottla.controller.znode_formats import (
    CONFIG_CHANGES,
    CONTROLLER_EPOCH,
    TREES,
    EndPoint,
    ProducerIdBlock,
    topic_config_path,
)
from ottla.coordination.client import Coordination
from ottla.coordination.operations import Check, Code, Delete, Multi, Result, Step, StepResult, multi_bytes
from ottla.model.clock import Clock
from ottla.model.configs import BrokerConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import NO_TOPIC_ID, TopicId, new_topic_id, topic_id_text

logger = logging.getLogger(__name__)

_DECISIONS_MAX = 10
"""How often a plan is decided anew. Each time another change got through first, so it ends."""

_EPOCHS_PER_MULTI = 1_000
"""Partitions whose epoch is raised together: about 10 ms of the owner's time, and below ZooKeeper's 1 MiB."""

_NOTICE_LIFE_MS = 15 * 60 * 1000
"""How long Kafka keeps a notice of changed settings for brokers that were away."""

_NOTICES_REMOVED_AT_ONCE = 100

_NO_ROOM = "the disk of ottla.coordination.dir is full; make room there, then try again"

P = TypeVar("P", bound=Plan)


class Controller:
    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        config: BrokerConfig,
        broker_id: int,
        random: Random | None = None,
    ) -> None:
        """`config` is what the broker was started with; dynamic settings are added to it by `start`."""
        self.image = ClusterImage()
        self.config = config  # what holds now, with the dynamic settings in the image
        self.broker_id = broker_id
        self.on_change: list[Callable[[Change], None]] = []
        # Calls back when the partitions of what was announced can be used; new ones are answered then.
        self.when_hosted: Callable[[Callable[[], None]], None] = lambda done: done()
        self.pace: Pace = at_once  # of requests that name many things
        self._coordination = coordination
        self._clock = clock
        self._random = random or Random()
        self._creating: dict[str, str] = {}  # topics on their way, by their name with '.' as '_'
        self._notices: deque[tuple[str, int]] = deque()  # nodes below /config/changes: (path, written at)

    # Starting

    def start(self, done: Callable[[Refused | None], None], cluster_id: str | None = None) -> None:
        """Take office and load the image. A new cluster gets `cluster_id`, or one of its own."""
        new_cluster_id = cluster_id or topic_id_text(new_topic_id())

        def take_office() -> None:
            self._change(
                lambda: decide_take_office(
                    self._coordination, self.broker_id, new_cluster_id, self._clock.wall_ms()
                ),
                in_office,
                fenced=False,
            )

        def in_office(outcome: Plan | Refused) -> None:
            if isinstance(outcome, Refused):
                done(outcome)
            else:
                # Only now is nobody else able to change what is loaded.
                self._coordination.refresh(TREES, load, below=True)

        def load() -> None:
            self.image = ClusterImage.load(self._coordination)
            self._load_notices()
            self._take_dynamic_config()
            done(None)

        self._coordination.refresh(TREES, take_office, below=True)

    def register_broker(
        self, endpoints: Sequence[EndPoint], rack: str | None, done: Callable[[Refused | None], None]
    ) -> None:
        """Let the cluster know that this broker can be reached at `endpoints`."""
        self._change(
            lambda: decide_register(self.image, self.broker_id, endpoints, rack, self._clock.wall_ms()),
            lambda outcome: done(outcome if isinstance(outcome, Refused) else None),
        )

    def raise_leader_epochs(self, done: Callable[[Refused | None], None]) -> None:
        """After an unclean start: every partition this broker leads goes on under the next leader epoch."""
        led = list(self.image.partitions_led_by(self.broker_id))
        chunks = [led[first : first + _EPOCHS_PER_MULTI] for first in range(0, len(led), _EPOCHS_PER_MULTI)]

        def raise_chunk(
            chunk: Sequence[tuple[TopicImage, int]], finish: Callable[[Refused | None], None]
        ) -> None:
            self._change(
                lambda: LeaderEpochPlan(self.image, chunk),
                lambda outcome: finish(outcome if isinstance(outcome, Refused) else None),
            )

        for_each(chunks, raise_chunk, lambda results: done(next(filter(None, results), None)))

    # Topics

    def create_topics(
        self,
        specs: Sequence[TopicSpec],
        validate_only: bool,
        done: Callable[[Sequence[TopicResult]], None],
    ) -> None:
        """One result for each spec, in their order. A topic is created whole or not at all."""
        duplicates = duplicates_of(spec.name for spec in specs)

        def create(spec: TopicSpec, finish: Callable[[TopicResult], None]) -> None:
            if spec.name in duplicates:
                finish(TopicResult.refused(spec.name, _named_twice("topic")))
                return
            self._create_topic(spec, validate_only, finish)

        for_each(specs, create, done, self.pace)

    def _create_topic(
        self, spec: TopicSpec, validate_only: bool, finish: Callable[[TopicResult], None]
    ) -> None:
        unified = unify(spec.name)

        def decide() -> CreateTopicPlan:
            creating = self._creating.get(unified)
            plan = decide_create(
                self.image,
                spec,
                self.config,
                self._random,
                creating=None if creating == spec.name else creating,
                has_configs=self._coordination.exists(topic_config_path(spec.name)) is not None,
            )
            if not validate_only:
                self._creating[unified] = spec.name
            return plan

        def finished(outcome: CreateTopicPlan | Refused) -> None:
            if self._creating.get(unified) == spec.name:
                del self._creating[unified]
            if isinstance(outcome, Refused):
                finish(TopicResult.refused(spec.name, outcome))
                return
            result = TopicResult.of(outcome.topic)
            finish(result.without_id() if validate_only else result)

        self._change(decide, finished, validate_only=validate_only)

    def create_partitions(
        self,
        specs: Sequence[PartitionsSpec],
        validate_only: bool,
        done: Callable[[Sequence[TopicResult]], None],
    ) -> None:
        duplicates = duplicates_of(spec.name for spec in specs)

        def grow(spec: PartitionsSpec, finish: Callable[[TopicResult], None]) -> None:
            if spec.name in duplicates:
                finish(TopicResult.refused(spec.name, _named_twice("topic")))
                return

            def decide() -> AddPartitionsPlan:
                plan = decide_grow(self.image, spec, self._random)
                # It must be possible to delete the topic again.
                if (too_large := self._too_large(plan.steps_of_deletion)) is not None:
                    raise too_large
                return plan

            self._change(
                decide,
                lambda outcome: finish(
                    TopicResult.refused(spec.name, outcome)
                    if isinstance(outcome, Refused)
                    else TopicResult.of(outcome.topic)
                ),
                validate_only=validate_only,
            )

        for_each(specs, grow, done, self.pace)

    def delete_topics(
        self, targets: Sequence[str | TopicId], done: Callable[[Sequence[TopicResult]], None]
    ) -> None:
        """Topics by name (text) or by id (bytes)."""
        found = [find_topic(self.image, target) for target in targets]
        duplicates = duplicates_of(topic.name for topic in found if topic is not None)

        def delete(target: str | TopicId, finish: Callable[[TopicResult], None]) -> None:
            topic = find_topic(self.image, target)
            name = topic.name if topic is not None else target if isinstance(target, str) else None
            topic_id = topic.id if topic is not None else target if isinstance(target, bytes) else NO_TOPIC_ID
            if name in duplicates:
                finish(TopicResult.refused(name, _named_twice("topic"), topic_id))
                return
            self._change(
                lambda: decide_delete(self.image, target, self.config),
                lambda outcome: finish(
                    TopicResult.refused(name, outcome, topic_id)
                    if isinstance(outcome, Refused)
                    else TopicResult.of(outcome.topic)
                ),
            )

        for_each(targets, delete, done, self.pace)

    # Settings

    def alter_configs(
        self,
        alterations: Sequence[ConfigAlteration],
        incremental: bool,
        validate_only: bool,
        done: Callable[[Sequence[ConfigResult]], None],
    ) -> None:
        """AlterConfigs replaces what is set; IncrementalAlterConfigs changes single settings."""
        duplicates = duplicates_of((alteration.type, alteration.name) for alteration in alterations)

        def alter(alteration: ConfigAlteration, finish: Callable[[ConfigResult], None]) -> None:
            resource = (alteration.type, alteration.name)

            def finished(outcome: TopicConfigPlan | BrokerConfigPlan | Refused) -> None:
                if isinstance(outcome, Refused):
                    finish(ConfigResult(*resource, outcome.code, outcome.text))
                else:
                    finish(ConfigResult(*resource))

            if resource in duplicates:
                finished(_named_twice("resource"))
                return
            self._change(
                lambda: decide_alter(self.image, alteration, self.config, incremental=incremental),
                finished,
                validate_only=validate_only,
            )

        for_each(alterations, alter, done, self.pace)

    # Producer ids

    def next_producer_id_block(self, done: Callable[[ProducerIdBlock | Refused], None]) -> None:
        self._change(
            lambda: decide_producer_id_block(self._coordination, self.broker_id),
            lambda outcome: done(outcome if isinstance(outcome, Refused) else outcome.block),
        )

    # The one way of a change

    def _change(
        self,
        decide: Callable[[], P],
        done: Callable[[P | Refused], None],
        *,
        validate_only: bool = False,
        fenced: bool = True,
        decisions: int = 1,
    ) -> None:
        try:
            plan = decide()
        except Refused as refusal:
            done(refusal)
            return
        if (too_large := self._too_large(lambda: plan.steps)) is not None:
            done(too_large)
            return
        if validate_only:
            done(plan)
            return
        # A controller that was replaced while it did not notice changes nothing any more.
        fence: list[Step] = [Check(CONTROLLER_EPOCH, self.image.controller_epoch_version)] if fenced else []

        def answered(result: Result) -> None:
            if result.ok:
                change = self._apply(plan, result.steps[len(fence) :])
                if isinstance(change, TopicCreated | PartitionsAdded):
                    self.when_hosted(lambda: done(plan))
                else:
                    done(plan)
            elif result.code is Code.SYSTEM_ERROR:
                done(Refused(ErrorCode.KAFKA_STORAGE_ERROR, _NO_ROOM))
            elif fence and result.failed_step == 0:
                done(Refused(ErrorCode.NOT_CONTROLLER, "another controller has taken over; ask it"))
            elif decisions < _DECISIONS_MAX:
                self._change(decide, done, fenced=fenced, decisions=decisions + 1)
            else:
                step = plan.steps[result.failed_step - len(fence)]
                logger.error("%s cannot be written: %s", step.path, result.code.name)
                done(Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"{step.path}: {result.code.name}"))

        self._coordination.submit(Multi([*fence, *plan.steps]), answered)

    def _too_large(self, steps: Callable[[], Sequence[Step]]) -> Refused | None:
        limit = self._coordination.multi_bytes_max
        if limit is None or (size := multi_bytes(steps())) <= limit:
            return None
        return Refused(
            ErrorCode.INVALID_REQUEST,
            f"this change takes {size:,} bytes and a ZooKeeper ensemble takes {limit:,} at once: use fewer "
            "partitions for a topic",
        )

    def _apply(self, plan: Plan, answers: Sequence[StepResult]) -> Change | None:
        change = plan.apply(self.image, answers)
        if isinstance(plan, TopicConfigPlan | BrokerConfigPlan):
            self._keep_notice(answers)
        if isinstance(change, BrokerConfigChanged):
            self._take_dynamic_config()
        if change is not None:
            for listener in self.on_change:
                listener(change)
        return change

    def _take_dynamic_config(self) -> None:
        default, own = self.image.broker_configs(None), self.image.broker_configs(self.broker_id)
        self.config, problems = self.config.with_stored_dynamic(default, own)
        for problem in problems:
            # Written by another version or by hand. The broker runs on without it rather than not at all.
            logger.error("a dynamic setting of broker %d is not in effect: %s", self.broker_id, problem)

    # Notices of changed settings

    def _load_notices(self) -> None:
        self._notices.clear()
        for name in self._coordination.children(CONFIG_CHANGES) or ():
            path = f"{CONFIG_CHANGES}/{name}"
            if (stat := self._coordination.exists(path)) is not None:
                self._notices.append((path, stat.ctime_ms))

    def _keep_notice(self, answers: Sequence[StepResult]) -> None:
        now_ms = self._clock.wall_ms()
        path = answers[-1].path
        assert path is not None
        self._notices.append((path, now_ms))
        for _ in range(_NOTICES_REMOVED_AT_ONCE):
            path, written_ms = self._notices[0]
            if now_ms - written_ms < _NOTICE_LIFE_MS:
                return
            self._notices.popleft()
            self._coordination.submit(Delete(path), lambda _: None)


def _named_twice(what: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, f"the request names this {what} more than once")
