"""A broker under attack, watched from outside: is it alive, what did it log, how much memory did it need."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from hostile.peer import Peer, batch_of
from ottla.protocol import apis
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.records.formats import scan, verify_crc
from ottla.testing import BrokerProcess

MIB = 1024 * 1024

_LOG_PATIENCE_SECONDS = 10
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (INFO|WARNING|ERROR) +[\w.]+: ")
_CLOSED = re.compile(r"server\.reactor: closed 127\.0\.0\.1:(\d+) on PLAINTEXT: (.+)")
_STARTUP = re.compile(r"Ottla broker|  (listens on|keeps data|zookeeper|metrics|try it|stop it) |note: ")


class Ground:
    """One broker process and what tests promise each other about it."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str], kernel: str | None = None) -> None:
        env = {"OTTLA_KERNEL": kernel} if kernel is not None else {}
        self.process = BrokerProcess(data_dir, settings, env=env).start()
        self._log_read = 0
        self._left: Counter[int] = Counter()  # ports of peers that may still be told of

    @property
    def address(self) -> str:
        return self.process.bootstrap

    def peer(self, *, timeout_seconds: float = 20, receive_buffer: int | None = None) -> Peer:
        return Peer(self.address, timeout_seconds=timeout_seconds, receive_buffer=receive_buffer)

    def stop(self) -> None:
        assert self.process.stop() == 0

    # -- memory --------------------------------------------------------------------------------------------

    def memory_peak_mib(self) -> float:
        return self._status("VmHWM") / 1024

    def memory_mib(self) -> float:
        return self._status("VmRSS") / 1024

    def forget_memory_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def _status(self, field: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1])

    # -- its log -------------------------------------------------------------------------------------------

    def new_log_lines(self) -> list[str]:
        """What was logged since the last call; every line is a line of its own, and none tells of a bug."""
        text = self.process.output()
        end = text.rfind("\n") + 1  # one may be being written
        fresh, self._log_read = text[self._log_read : end], end
        lines = [line for line in fresh.splitlines() if not _STARTUP.match(line)]
        for at, line in enumerate(lines):
            assert _LOG_LINE.match(line), "no line of ours:\n" + "\n".join(lines[max(0, at - 1) : at + 40])
            assert "see above" not in line, "\n".join(lines[max(0, at - 1) : at + 40])
            assert " failed" not in line, "\n".join(lines[at : at + 40])
        return lines

    def check_closed(self, ports: Collection[int], maybe: Collection[int] = ()) -> list[str]:
        """Each of these peers, and nobody else, was closed with one line that says why. Returns the reasons.

        `maybe` are peers that left before their fate was known: a busy broker may find out only later.
        """
        self._left.update(maybe)
        told: list[tuple[int, str]] = []
        deadline = time.monotonic() + _LOG_PATIENCE_SECONDS
        while True:
            found = [_CLOSED.search(line) for line in self.new_log_lines()]
            told += [(int(line[1]), line[2]) for line in found if line is not None]
            counts = Counter(port for port, _ in told)
            counts.subtract(ports)
            if not any(count < 0 for count in counts.values()) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        for port in [port for port, count in counts.items() if count > 0 and self._left[port]]:
            counts[port] -= 1
            self._left[port] -= 1
        wrong = {port: count for port, count in counts.items() if count}
        assert not wrong, [line for line in told if line[0] in wrong] or wrong
        return [reason for _, reason in told]

    # -- its health ----------------------------------------------------------------------------------------

    def check_serves(self, topic: str) -> None:
        """A decent client connects, writes and reads what it wrote."""
        with self.peer() as peer:
            assert peer.ask(apis.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
            error, offset = peer.produce(topic, batch_of([b"still here"]), acks=-1)
            assert error == 0
            assert b"still here" in peer.fetch(topic, offset)

    def check_log(self, topic: str) -> int:
        """The whole partition is sound batches without a gap. Returns its end."""
        with self.peer() as peer:
            end = peer.end_offset(topic)
            offset = 0
            while offset < end:
                data = peer.fetch(topic, offset)
                assert data, f"nothing at offset {offset} of {end}"
                for position, header in scan(data):
                    assert header.base_offset == offset
                    assert verify_crc(data, header, position)
                    offset = header.next_offset
        return end
