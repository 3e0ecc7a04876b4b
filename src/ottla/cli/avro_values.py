"""Avro values as `ottla consume` shows them: by a schema from a file, or by those of a registry."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.cli.failures import CommandFailed, ExitCode
from ottla.client.errors import InvalidSetting
from ottla.client.typed.avro import avro


def avro_decoder(schema_file: Path | None, registry: str | None) -> Callable[[bytes], Any]:
    if schema_file is None and registry is None:
        raise CommandFailed(
            "Avro needs the schema that the writer had",
            "give --schema FILE, or --registry http://HOST:PORT for values that carry a schema's id",
            ExitCode.WRONG_USE,
        )
    try:
        schema = None if schema_file is None else json.loads(schema_file.read_text())
        codec = avro(schema, registry=registry)
    except InvalidSetting as error:
        raise CommandFailed(error.text, error.cure, ExitCode.WRONG_USE) from error
    except OSError as error:
        raise CommandFailed(f"{schema_file}: {error.strerror}", "", ExitCode.WRONG_USE) from error
    except Exception as error:  # whatever the library says of a schema that is none
        raise CommandFailed(f"{schema_file} is no Avro schema: {error}", "", ExitCode.WRONG_USE) from error
    return lambda data: json.loads(json.dumps(codec.deserialize("", data), default=_shown))


def _shown(value: Any) -> str:
    """Bytes in base64; times, decimals and the like as texts."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
