"""A schema registry by its HTTP address: schemas by id, and ids by schema. What was asked once is remembered.

Speaks the part of Confluent's REST interface that serializers need; a user and password in the address are
sent as basic authentication.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from ottla.client.errors import ClientError, InvalidSetting

_TIMEOUT_SECONDS = 10
_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryError(ClientError):
    """The registry refused, or could not be asked."""


class Registry:
    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSetting(f"{address!r} is no address of a registry", "give http://HOST:PORT")
        host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        self._address = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        self._headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE}
        if parts.username is not None:
            pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self._schemas: dict[int, Any] = {}
        self._ids: dict[tuple[str, str], int] = {}

    def schema(self, schema_id: int) -> Any:
        """The parsed JSON of a schema."""
        if schema_id not in self._schemas:
            answer = self._ask("GET", f"/schemas/ids/{schema_id}")
            if answer.get("schemaType", "AVRO") != "AVRO" or answer.get("references"):
                raise RegistryError(
                    f"schema {schema_id} is {answer.get('schemaType', 'AVRO')} or refers to other schemas",
                    "only Avro schemas that stand alone are read here",
                )
            self._schemas[schema_id] = json.loads(answer["schema"])
        return self._schemas[schema_id]

    def id_of(self, subject: str, schema: Any, *, register: bool) -> int:
        """Of a schema under a subject; registered there when it is new and `register` says so."""
        text = json.dumps(schema)
        if (subject, text) not in self._ids:
            path = f"/subjects/{urllib.parse.quote(subject, safe='')}"
            answer = self._ask("POST", path + "/versions" if register else path, {"schema": text})
            self._ids[subject, text] = int(answer["id"])
        return self._ids[subject, text]

    def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(1_000).decode(errors="replace")
            raise RegistryError(
                f"the registry at {self._address} answered {method} {path} with {error.code}: {said}"
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise RegistryError(
                f"the registry at {self._address} cannot be asked: {reason}", "check its address"
            ) from error
