"""The settings of the ZooKeeper port, under the names they have in ZooKeeper's own `zoo.cfg`."""

from __future__ import annotations

from ottla.model.config_types import INT, INT_MAX, LIST, STRING, ConfigType, Setting, at_least, between
from ottla.model.limits import ZNODE_REQUEST_BYTES_MAX

NO_PORT = -1
WORDS = frozenset(
    {
        "conf", "cons", "crst", "dump", "envi", "isro", "mntr", "ruok", "srst", "srvr", "stat",
        "wchc", "wchp", "wchs",
    }
)  # fmt: skip
"""Four-letter words that we know."""

DEFAULT_WORDS = ("conf", "envi", "isro", "mntr", "ruok", "srvr", "stat", "wchs")

ZOOKEEPER_SETTINGS = (
    Setting(
        "clientPort",
        INT,
        2181,
        "Where ZooKeeper clients connect to the embedded coordination service. 0 takes a free port, -1 "
        "switches the port off. When the default is taken the broker says so and goes on without.",
        between(NO_PORT, 65_535),
        "high",
    ),
    Setting(
        "clientPortAddress",
        STRING,
        "127.0.0.1",
        "The address of that port. The default is this machine only: whoever reaches it may change what it "
        "holds, topics and settings of the broker among it.",
        importance="high",
    ),
    Setting(
        "tickTime",
        INT,
        2_000,
        "ZooKeeper's unit of time, in ms; session timeouts are between 2 and 20 of them unless set.",
        at_least(10),
    ),
    Setting(
        "minSessionTimeout",
        INT,
        None,
        "The shortest session timeout a client gets, in ms. Not set: two ticks.",
        at_least(1),
    ),
    Setting(
        "maxSessionTimeout",
        INT,
        None,
        "The longest session timeout a client gets, in ms. Not set: twenty ticks.",
        at_least(1),
    ),
    Setting(
        "maxClientCnxns",
        INT,
        60,
        "Connections to the ZooKeeper port from one address; 0 is no limit.",
        between(0, INT_MAX),
    ),
    Setting(
        "maxCnxns",
        INT,
        0,
        "Connections to the ZooKeeper port in all; 0 leaves it to what one process can have.",
        between(0, INT_MAX),
    ),
    Setting(
        "jute.maxbuffer",
        INT,
        ZNODE_REQUEST_BYTES_MAX,
        "The largest request of a ZooKeeper client in bytes, and with it the largest znode.",
        between(1_000, INT_MAX),
    ),
    Setting(
        "ottla.zookeeper.sasl.users",
        ConfigType.PASSWORD,
        None,
        "Who may prove a SASL identity (DIGEST-MD5) on the ZooKeeper port: user:password, comma-separated. "
        "Not set: nobody.",
    ),
    Setting(
        "4lw.commands.whitelist",
        LIST,
        DEFAULT_WORDS,
        "Four-letter words that are answered on the ZooKeeper port, or * for all.",
    ),
)
