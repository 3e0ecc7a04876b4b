"""How a broker's log lines look: for people, or JSON with `--log-format json`. Standard library only.

In JSON, `event` is the text before anything was filled in, so that lines of one kind can be counted.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

from ottla.cli.output import styled

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = ("text", "json")
_FILE_BYTES_MAX = 16 * 1024 * 1024
_TEXT_LINE = r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) +(?P<logger>[\w.]+): (?P<message>.*)"
_FILES_KEPT = 3  # besides the current one
LEVEL_STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red", "DEBUG": "dim"}


def set_up_logging(log_format: str, file: Path | None, *, debug: bool = False) -> None:
    """To `file`, which is kept small, or to the terminal."""
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        from logging.handlers import RotatingFileHandler

        handler = RotatingFileHandler(
            file, maxBytes=_FILE_BYTES_MAX, backupCount=_FILES_KEPT, encoding="utf-8"
        )
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines(colour=file is None))
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)


def rotated(file: Path) -> list[Path]:
    """The older files of a log, oldest first."""
    names = [file.with_name(f"{file.name}.{number}") for number in range(_FILES_KEPT, 0, -1)]
    return [path for path in names if path.exists()]


class TextLines(logging.Formatter):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname:<7}"
        if self._colour and record.levelname in LEVEL_STYLES:
            level = styled(level, LEVEL_STYLES[record.levelname], sys.stderr)
        seconds = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        when = f"{seconds}.{int(record.created * 1000) % 1000:03}"
        text = f"{when} {level} {_room(record.name)}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        import json
        from datetime import UTC, datetime

        fields = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "event": str(record.msg),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _room(logger: str) -> str:
    return logger.removeprefix("ottla.")


def fields_of(line: bytes) -> dict[str, str | None]:
    """Of a line that one of the two forms wrote; one that goes on from the line before is only a message."""
    import json
    import re
    from datetime import UTC, datetime

    text = line.decode(errors="replace").rstrip("\n")
    if text.startswith("{"):
        try:
            written = json.loads(text)
        except ValueError:
            pass
        else:
            return {"logger": _room(written.pop("logger", "")), **written}
    if (found := re.match(_TEXT_LINE, text)) is None:
        return {"time": None, "level": None, "logger": None, "message": text}
    when = datetime.fromisoformat(found["time"]).astimezone(UTC).isoformat(timespec="milliseconds")
    level = found["level"].lower()
    return {
        "time": when.replace("+00:00", "Z"),
        "level": level,
        "logger": found["logger"],
        "message": found["message"],
    }
