"""Every limit that keeps a peer from costing us more than its share, with the reason for its value."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

FRAME_BYTES_MAX = 100 * MIB
"""One request. Kafka's `socket.request.max.bytes`; above it the length is taken for garbage (often TLS or HTTP)."""

FRAME_BYTES_MAX_UNAUTHENTICATED = 512 * KIB
"""Before a principal is known nobody needs more (CVE-2022-34917)."""

FRAMES_BYTES_TOTAL = 512 * MIB
"""Bytes of unfinished and unanswered requests over all connections (`queued.max.request.bytes`); above it reading stops."""

REQUESTS_IN_FLIGHT_PER_CONNECTION = 100
"""Clients pipeline 5 (Java) to some dozens (librdkafka); above it the socket is left unread, so TCP pushes back."""

RESPONSE_BYTES_QUEUED_PER_CONNECTION = 1 * MIB
"""Answers that wait in memory for a slow reader (file ranges count only their headers); above it reading stops."""

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

RECEIVE_BYTES = 64 * KIB
"""One recv. Larger ones bring nothing for small requests; a large frame is received straight into its own buffer."""

ARRAY_ELEMENTS_MAX = 1_000_000
"""Elements of all arrays of one message; they must also fit the bytes that remain (CVE-2026-111108)."""

TAGGED_FIELDS_MAX = 10_000
"""Unknown tagged fields of one struct; they are skipped, not kept (CVE-2026-111115)."""

STRING_BYTES_MAX = 32_767
"""Kafka's own limit of a wire string."""

DECOMPRESSED_BYTES_MAX = 256 * MIB
"""One batch, decompressed, where the broker must look inside (CVE-2023-34455); 100 MiB frames of text stay below it."""

PARTITIONS_PER_REQUEST_MAX = 100_000
"""Partitions named by one request; ten times what one broker is built for."""

PARTITIONS_PER_TOPIC_CREATE_MAX = 20_000
"""New partitions in one CreateTopics or CreatePartitions call; each is a directory and two files."""

FETCH_SESSIONS_MAX = 1_000
"""`max.incremental.fetch.session.cache.slots`, Kafka's default."""

FETCH_BYTES_MAX = 55 * MIB
"""`fetch.max.bytes`, Kafka's default: one answer, whatever the client asks for."""
