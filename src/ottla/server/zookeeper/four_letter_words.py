"""Four-letter words: what people and monitors ask a ZooKeeper server without a client, in ZooKeeper's words.

Only those on the list of `4lw.commands.whitelist` are answered. The answer is text, and the connection ends.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Mapping

from ottla import __version__
from ottla.coordination.service import CoordinationService
from ottla.model.clock import Clock
from ottla.model.zookeeper_config import ZooKeeperConfig
from ottla.server.connection import Connection
from ottla.server.zookeeper.peer import Peer
from ottla.server.zookeeper.traffic import Traffic

SPOKEN_VERSION = "3.9.4"
"""The ZooKeeper release whose protocol and behaviour this is; clients read it to know what they may ask."""

_VERSION = f"{SPOKEN_VERSION}-ottla-{__version__}"


class Words:
    def __init__(
        self,
        service: CoordinationService,
        config: ZooKeeperConfig,
        peers: Mapping[Connection, Peer],
        traffic: Traffic,
        clock: Clock,
    ) -> None:
        self._service = service
        self._config = config
        self._peers = peers
        self._traffic = traffic
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._port = 0  # the one that the word came in on
        self._answers: dict[str, Callable[[], Iterable[str]]] = {
            "conf": self._conf,
            "cons": self._cons,
            "crst": self._crst,
            "dump": self._dump,
            "envi": self._envi,
            "mntr": self._mntr,
            "srst": self._srst,
            "srvr": self._srvr,
            "stat": self._stat,
            "wchc": self._wchc,
            "wchp": self._wchp,
            "wchs": self._wchs,
        }

    def answer(self, word: str, port: int) -> bytes:
        """The answer to a word that came in on `port`."""
        if word not in self._config.words or (word not in self._answers and word not in _SHORT):
            return f"{word} is not executed because it is not in the whitelist.\n".encode()
        if word in _SHORT:
            return _SHORT[word]
        self._port = port
        return "".join(f"{line}\n" for line in self._answers[word]()).encode()

    # -- the server ----------------------------------------------------------------------------------------

    def _srvr(self) -> Iterable[str]:
        yield f"Zookeeper version: {_VERSION}, built on {sys.implementation.name}"
        yield from self._summary()

    def _stat(self) -> Iterable[str]:
        yield f"Zookeeper version: {_VERSION}, built on {sys.implementation.name}"
        yield "Clients:"
        for peer in self._peers.values():
            yield f" /{peer.address}[1]({_brief(peer)})"
        yield ""
        yield from self._summary()

    def _summary(self) -> Iterable[str]:
        traffic, statistics = self._traffic, self._service.statistics()
        shortest_ms, longest_ms = traffic.latency_us_min // 1000, traffic.latency_us_max // 1000
        yield f"Latency min/avg/max: {shortest_ms}/{traffic.latency_ms_mean:.4f}/{longest_ms}"
        yield f"Received: {traffic.received}"
        yield f"Sent: {traffic.sent}"
        yield f"Connections: {len(self._peers)}"
        yield f"Outstanding: {statistics.outstanding}"
        yield f"Zxid: 0x{statistics.zxid:x}"
        yield "Mode: standalone"
        yield f"Node count: {statistics.nodes}"

    def _mntr(self) -> Iterable[str]:
        traffic, statistics = self._traffic, self._service.statistics()
        values: dict[str, object] = {
            "version": _VERSION,
            "server_state": "standalone",
            "peer_state": "standalone",
            "avg_latency": f"{traffic.latency_ms_mean:.4f}",
            "max_latency": traffic.latency_us_max // 1000,
            "min_latency": traffic.latency_us_min // 1000,
            "packets_received": traffic.received,
            "packets_sent": traffic.sent,
            "num_alive_connections": len(self._peers),
            "outstanding_requests": statistics.outstanding,
            "znode_count": statistics.nodes,
            "watch_count": statistics.watches,
            "ephemerals_count": statistics.ephemerals,
            "approximate_data_size": statistics.data_bytes,
            "global_sessions": statistics.sessions,
            "uptime": self._clock.monotonic_ms() - self._started_ms,
        }
        return (f"zk_{name}\t{value}" for name, value in values.items())

    def _conf(self) -> Iterable[str]:
        config = self._config
        values: dict[str, object] = {
            "clientPort": self._port,
            "secureClientPort": -1,
            "dataDir": config.data_dir,
            "dataLogDir": config.data_dir,
            "tickTime": config.tick_ms,
            "maxClientCnxns": config.connections_per_address_max,
            "minSessionTimeout": config.session_timeout_ms_min,
            "maxSessionTimeout": config.session_timeout_ms_max,
            "jute.maxbuffer": config.request_bytes_max,
            "serverId": 0,
        }
        return (f"{name}={value}" for name, value in values.items())

    def _envi(self) -> Iterable[str]:
        system = os.uname()
        yield "Environment:"
        yield f"zookeeper.version={_VERSION}, built on {sys.implementation.name}"
        yield f"host.name={socket.gethostname()}"
        yield f"python.version={sys.version.split()[0]}"
        yield f"os.name={system.sysname}"
        yield f"os.arch={system.machine}"
        yield f"os.version={system.release}"
        yield f"user.dir={os.getcwd()}"

    def _srst(self) -> Iterable[str]:
        self._traffic.reset()
        yield "Server stats reset."

    # -- connections and sessions --------------------------------------------------------------------------

    def _cons(self) -> Iterable[str]:
        for peer in self._peers.values():
            session = peer.client.session if peer.client is not None else None
            details = _brief(peer)
            if session is not None:
                details += f",sid={_name(session.id)},est={peer.established_ms},to={session.timeout_ms}"
            yield f" /{peer.address}[1]({details})"
        yield ""

    def _crst(self) -> Iterable[str]:
        for peer in self._peers.values():
            peer.received = peer.sent = 0
        yield "Connection stats reset."

    def _dump(self) -> Iterable[str]:
        yield "SessionTracker dump:"
        for session in self._service.sessions():
            yield f"\t{_name(session.id)}\t{session.timeout_ms}ms"
        yield "ephemeral nodes dump:"
        ephemerals = self._service.ephemerals()
        yield f"Sessions with Ephemerals ({len(ephemerals)}):"
        for session_id, paths in ephemerals.items():
            yield f"{_name(session_id)}:"
            yield from (f"\t{path}" for path in sorted(paths))

    # -- watches -------------------------------------------------------------------------------------------

    def _wchs(self) -> Iterable[str]:
        statistics = self._service.statistics()
        yield f"{statistics.watching_clients} connections watching {statistics.watched_paths} paths"
        yield f"Total watches:{statistics.watches}"

    def _wchc(self) -> Iterable[str]:
        by_session: dict[int, list[str]] = {}
        for path, session_ids in self._service.watched_paths().items():
            for session_id in session_ids:
                by_session.setdefault(session_id, []).append(path)
        for session_id, paths in by_session.items():
            yield _name(session_id)
            yield from (f"\t{path}" for path in paths)

    def _wchp(self) -> Iterable[str]:
        for path, session_ids in self._service.watched_paths().items():
            yield path
            yield from (f"\t{_name(session_id)}" for session_id in session_ids)


_SHORT = {"ruok": b"imok", "isro": b"rw"}  # without a line's end, as ZooKeeper does


def _brief(peer: Peer) -> str:
    return f"queued={len(peer.connection.pending)},recved={peer.received},sent={peer.sent}"


def _name(session_id: int) -> str:
    return f"0x{session_id & 0xFFFF_FFFF_FFFF_FFFF:x}"
