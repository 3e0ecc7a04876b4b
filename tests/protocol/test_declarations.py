"""The declarations agree with the definitions of Apache Kafka in order, types, versions and defaults."""

from __future__ import annotations

import pytest

from ottla.protocol.apis import (
    API_VERSIONS,
    APIS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    Api,
)
from ottla.protocol.fields import Message, fields_of
from protocol.kafka_definitions import (
    FieldFacts,
    Versions,
    declared_facts,
    defined_facts,
    definition,
    parse_versions,
)

UNDEFINED = {CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE}  # kafka-python has no definitions of these
MESSAGES = [(api, message) for api in APIS.values() for message in (api.request, api.response)]


DEFINED = [(api, message) for api, message in MESSAGES if api not in UNDEFINED]


@pytest.mark.parametrize(("api", "message"), DEFINED, ids=[message.__name__ for _, message in DEFINED])
def test_declaration_is_kafkas_definition(api: Api, message: type[Message]) -> None:
    defined = definition(message.__name__)
    versions = parse_versions(defined["validVersions"])
    assert api.key == defined["apiKey"]
    assert api.versions == versions
    flexible = "none" if api.flexible_since is None else f"{api.flexible_since}+"
    assert flexible == defined["flexibleVersions"]
    declared = declared_facts(message, versions)
    expected = defined_facts(defined["fields"], versions)
    assert declared == expected
    assert _order(declared) == _order(expected)


def _order(facts: dict[str, FieldFacts]) -> list[object]:
    return [(name, _order(fact.fields or {})) for name, fact in facts.items()]


def test_slugs_are_the_names_of_the_files() -> None:
    for api in APIS.values():
        assert api.request.__module__ == f"ottla.protocol.messages.{api.slug}"
        assert api.name.lower() == api.slug.replace("_", "")


def test_header_versions_follow_flexibility_except_for_api_versions() -> None:
    for api in APIS.values():
        for version in range(api.versions[0], api.versions[1] + 1):
            flexible = api.flexible_since is not None and version >= api.flexible_since
            assert api.request_header_version(version) == (2 if flexible else 1)
            expected = 1 if flexible and api is not API_VERSIONS else 0
            assert api.response_header_version(version) == expected


def test_fields_of_a_struct_are_within_the_versions_of_its_message() -> None:
    for _, message in MESSAGES:
        assert message.__versions__ is not None
        outer = Versions(*message.__versions__)
        for field in fields_of(message):
            assert not Versions(field.since, field.until).within(outer).is_empty, field.name
