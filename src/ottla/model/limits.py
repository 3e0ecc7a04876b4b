"""Every limit that keeps a peer from costing us more than its share, with the reason for its value."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

FRAME_BYTES_MAX = 100 * MIB
"""One request, `socket.request.max.bytes`; a larger length is garbage (often TLS or HTTP)."""

FRAMES_BYTES_TOTAL = 512 * MIB
"""Unfinished requests and unread answers in all, `queued.max.request.bytes`; then the slowest peer goes."""

REQUESTS_IN_FLIGHT_PER_CONNECTION = 100
"""Clients pipeline 5 (Java) to some dozens (librdkafka); above it the socket is left unread."""

FRAMES_PER_CONNECTION_AND_TURN = 32
"""Requests of one connection handled in one turn; while an answer waits for a slow reader none are."""

ANSWER_BYTES_AHEAD = 1 * MIB
"""Answers to one connection that are made ahead in a turn (file ranges stay in their files)."""

EVENT_BYTES_AHEAD = 256 * KIB
"""Watch events that a ZooKeeper client has not read yet, some 5,000; then it goes, and sets its watches again
when it is back.
"""

ZNODE_REQUEST_BYTES_MAX = 1 * MIB - 1
"""A ZooKeeper request, and so a znode's data: `jute.maxbuffer`, ZooKeeper's default."""

CONNECTIONS_MAX = 10_000
"""`max.connections`; leaves half of the usual 20,000 open files for segments."""

CONNECTIONS_PER_ADDRESS_MAX = 5_000
"""`max.connections.per.ip`; one broken client host must not lock out the rest."""

CONNECTION_IDLE_MS_MAX = 10 * 60 * 1000
"""`connections.max.idle.ms`, Kafka's default."""

FRAME_ARRIVAL_MS_MAX = 2 * 60 * 1000
"""A frame that was begun must be complete by then: a byte a second is no client."""

TURN_BYTES_MAX = 8 * MIB
"""Bytes read in one turn from all data connections, so that a control request waits a few ms at the most."""

REQUESTS_PER_TURN_MAX = 512
"""The same in requests: the smallest have 14 bytes, and each takes some ten microseconds."""

TURN_HANDLING_US_MAX = 2_000
"""After that no further request is begun in a turn, except for produces, which the two limits above bound:
some requests take milliseconds, and whoever sends many of them waits, not the others.
"""

ZNODE_TURN_HANDLING_US_MAX = 10_000
"""The same for ZooKeeper's requests: nearly all take some ten microseconds, and giving back what a busy
machine delays costs more than it saves.
"""

RECEIVE_BYTES = 64 * KIB
"""One recv. More brings nothing for small requests; a large frame is received into its own buffer."""

RECEIVE_BYTES_LARGE = 1 * MIB
"""Of a large frame in one turn: then the others have theirs."""

ARRAY_ELEMENTS_MAX = 1_000_000
"""Elements of all arrays of one message; they must also fit the bytes that remain (CVE-2026-111108)."""

REQUEST_ELEMENTS_MAX = 30_000
"""The same for requests, which one thread decodes: for each partition of the largest broker we build for its
topic, itself and one thing about it. Most are answered in slices of turns; decoding and encoding are not.
"""

TOPICS_PER_CHANGE_MAX = 2_000
"""New topics in one CreateTopics call. Each is a transaction, and a kilobyte of settings in the answer."""

TAGGED_FIELDS_MAX = 10_000
"""Unknown tagged fields of one struct; they are skipped, not kept (CVE-2026-111115)."""

STRING_BYTES_MAX = 32_767
"""Kafka's own limit of a wire string."""

DECOMPRESSED_BYTES_MAX = 256 * MIB
"""One batch, decompressed, where the broker must look inside (CVE-2023-34455)."""

TOPICS_AUTO_CREATED_PER_REQUEST = 100
"""By a Metadata request that names missing ones; for others the client asks again, as it does anyway."""

PARTITIONS_PER_TOPIC_CREATE_MAX = 20_000
"""New partitions in one CreateTopics or CreatePartitions call; each is a directory and two files."""

FETCH_SESSIONS_MAX = 1_000
"""`max.incremental.fetch.session.cache.slots`, Kafka's default."""

FETCH_SESSION_PARTITIONS_MAX = 300_000
"""Partitions that all fetch sessions follow together, some 300 bytes each: thirty fetchers of everything on
the largest broker we build for.
"""

FETCH_BYTES_MAX = 55 * MIB
"""`fetch.max.bytes`, Kafka's default: one answer, whatever the client asks for."""

HTTP_CONNECTIONS_MAX = 16
"""Watchers at once; each has one request. A scraper uses one."""

HTTP_REQUEST_BYTES_MAX = 8 * KIB
"""The head of an HTTP request, as most servers have it; no body is taken."""

HTTP_IDLE_MS_MAX = 30 * 1000
"""A watcher that asks nothing makes room."""

HTTP_TURN_US_MAX = 1_000
"""Of a turn for all pages together: a scrape may take longer, produces and fetches may not."""

DISK_USABLE_BYTES_LOW = 512 * MIB
"""Below that a disk counts as full in the broker's health: half of a default segment, minutes at most."""

ZNODE_ACL_BYTES_MAX = 64 * KIB
"""The access list of one znode, some thousand lines; it is kept in memory as often as it is changed."""

ZNODE_WATCHES_PER_CLIENT_MAX = 100_000
"""Watches of one ZooKeeper connection, some 200 bytes each; one that wants more is told to slow down."""

PATTERN_LENGTH_MAX = 4 * KIB
"""Characters of a subscription by regular expression: a dozen of the longest topic names."""

PATTERN_MEMORY_BYTES_MAX = 1 * MIB
"""What RE2 may take for one of them, compiled; its own default is eight times that."""
