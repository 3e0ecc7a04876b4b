"""Every setting of a broker, under Kafka's name: who it is, its log, and the defaults of its topics.

The defaults of topics are derived from the topics' table, so that the two cannot disagree. Listeners and
limits are in `network_settings`, what only a cluster needs in `cluster_settings`, what groups and
transactions need in `coordinator_settings`, and the ZooKeeper port has `zookeeper_settings`.
"""

from __future__ import annotations

from ottla.model.cluster_settings import CLUSTER_SETTINGS
from ottla.model.config_types import (
    BOOLEAN,
    INT,
    LONG,
    LONG_MAX,
    STRING,
    Rule,
    Setting,
    SettingTable,
    at_least,
)
from ottla.model.coordinator_settings import COORDINATOR_SETTINGS
from ottla.model.limits import MIB
from ottla.model.network_settings import NETWORK_SETTINGS
from ottla.model.topic_settings import MINUTE_MS, TOPIC_SETTINGS
from ottla.model.zookeeper_settings import ZOOKEEPER_SETTINGS

_NO_ID_GENERATION = "a broker's id is the one in node.id; ids are not generated"

_IDENTITY = (
    Setting(
        "node.id",
        INT,
        1,
        "This broker's number, different for each broker of a cluster and never changed: its data directory "
        "remembers it.",
        at_least(0),
        "high",
    ),
    Setting("broker.id", INT, 1, "The older name of node.id.", at_least(0), "high"),
    Setting(
        "broker.rack",
        STRING,
        None,
        "Where this broker stands (a rack, a zone). Replicas of a partition are spread over racks.",
    ),
    Setting(
        "broker.id.generation.enable",
        BOOLEAN,
        False,
        "Whether a broker without an id is given one by the cluster.",
        unsupported=_NO_ID_GENERATION,
    ),
    Setting(
        "reserved.broker.max.id",
        INT,
        1000,
        "The largest id that generation leaves to people.",
        at_least(0),
        unsupported=_NO_ID_GENERATION,
    ),
)

_TOPICS = (
    Setting(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether a topic comes into being when a client first asks for it. Convenient at a desk; in "
        "production a typing error makes a topic.",
        importance="high",
    ),
    Setting(
        "delete.topic.enable",
        BOOLEAN,
        True,
        "Whether topics may be deleted; false refuses every such request.",
        importance="high",
    ),
    Setting(
        "num.partitions",
        INT,
        1,
        "Partitions of a topic whose creator does not say. More allow more consumers of a group to work "
        "side by side; records keep their order only within one.",
        at_least(1),
    ),
    Setting(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic whose creator does not say. 1 is right for one broker; 3 is usual for a "
        "cluster.",
        at_least(1),
    ),
)

_LOG = (
    Setting(
        "log.dir",
        STRING,
        "ottla-data/log",
        "The directory for all data, when log.dirs is not set. Relative to where the broker is started.",
        importance="high",
    ),
    Setting(
        "log.dirs",
        STRING,
        None,
        "The directories for all data, comma-separated; new partitions go to the one with the fewest.",
        importance="high",
    ),
    Setting(
        "ottla.coordination.dir",
        STRING,
        None,
        "The directory for the tree of topics and settings that the broker keeps itself. Not set: beside the "
        "first log directory, under its name with `.coordination` added.",
        importance="high",
    ),
    Setting(
        "ottla.log.scrub.bytes.per.second",
        LONG,
        1 * MIB,
        "How fast stored batches are read again in the background, to find damage of the disk before a "
        "consumer does; a damaged partition goes offline. All data is read once a day at most; 0 is never.",
        at_least(0),
    ),
    Setting(
        "log.retention.check.interval.ms",
        LONG,
        5 * MINUTE_MS,
        "How often segments are checked for being too old or too many.",
        at_least(1),
    ),
    Setting(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        "How long after its start the broker begins housekeeping.",
        at_least(0),
        "low",
        internal=True,
    ),
    Setting(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "The longest time that records wait for a sync, when log.flush.interval.ms is not set.",
        importance="high",
    ),
    Setting(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        MINUTE_MS,
        "How often the point is noted from which a restart after a crash must check the log.",
        at_least(0),
        "high",
    ),
    Setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        MINUTE_MS,
        "How often the first offset of each log is noted, for records that DeleteRecords has removed.",
        at_least(0),
        "high",
    ),
    Setting(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        "How long a broker with a failed directory may be unable to report it.",
        at_least(1),
        "low",
        unsupported="a failed directory takes its partitions offline at once; there is no quorum to tell",
    ),
    Setting(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        "How many workers check the logs of one directory after a crash.",
        at_least(1),
        "high",
        update_mode="cluster-wide",
        inert="logs are checked one after the other, only from the last sync on, in the compiled kernel",
    ),
    Setting("log.retention.minutes", INT, None, "As log.retention.ms, in minutes.", importance="high"),
    Setting(
        "log.retention.hours",
        INT,
        168,
        "As log.retention.ms, in hours; used when neither ms nor minutes are set.",
        importance="high",
    ),
    Setting("log.roll.hours", INT, 168, "As log.roll.ms, in hours.", at_least(1), "high"),
    Setting("log.roll.jitter.hours", INT, 0, "As log.roll.jitter.ms, in hours.", at_least(0), "high"),
)

_UNSET_IN_FAVOUR_OF_HOURS = frozenset(
    {"log.retention.ms", "log.roll.ms", "log.roll.jitter.ms", "log.flush.interval.ms"}
)
_RETENTION_RULE = Rule(
    "-1, or 1 or more", lambda value: isinstance(value, int) and (value == -1 or value >= 1)
)


def _topic_default(topic_setting: Setting) -> Setting:
    """The broker setting that topics without a value of their own follow."""
    name = topic_setting.synonyms[0].name
    setting = topic_setting._replace(
        name=name,
        doc=(
            f"{topic_setting.doc} This is the default for topics that do not set {topic_setting.name} "
            "themselves."
        ),
        scope="broker",
        synonyms=topic_setting.synonyms[1:],
    )
    if name in _UNSET_IN_FAVOUR_OF_HOURS:
        setting = setting._replace(default=None)
    if name == "log.retention.ms":
        setting = setting._replace(rule=_RETENTION_RULE)
    return setting


BROKER_SETTINGS: SettingTable = {
    setting.name: setting
    for setting in (
        *_IDENTITY,
        *NETWORK_SETTINGS,
        *_TOPICS,
        *_LOG,
        *(_topic_default(setting) for setting in TOPIC_SETTINGS.values() if setting.synonyms),
        *CLUSTER_SETTINGS,
        *COORDINATOR_SETTINGS,
        *ZOOKEEPER_SETTINGS,
    )
}
