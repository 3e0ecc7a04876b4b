"""Named tuples and dataclasses that are cheap to define: they do what the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from typing import Any, get_type_hints

import pytest

from ottla.model import values


class Point(values.NamedTuple):
    """A place."""

    x: int
    y: int = 2
    label: str = ""

    def moved(self, by: int) -> Point:
        return self._replace(x=self.x + by)


class LibraryPoint(typing.NamedTuple):
    x: int
    y: int = 2
    label: str = ""


@values.dataclass(frozen=True, slots=True)
class Terms:
    name: str
    secret: str = values.field(default="s", repr=False)
    parts: tuple[int, ...] = ()


@values.dataclass(slots=True)
class State:
    size: int
    names: list[str] = values.field(default_factory=list)
    later: int = values.field(init=False)

    def __post_init__(self) -> None:
        self.later = self.size + 1


@values.dataclass(slots=True, eq=False)
class Thing:
    size: int = 0


class Place:
    @values.dataclass(frozen=True, slots=True)
    class Part:
        name: str


@dataclasses.dataclass(frozen=True, slots=True)
class LibraryTerms:
    name: str
    secret: str = dataclasses.field(default="s", repr=False)
    parts: tuple[int, ...] = ()


def test_a_named_tuple_is_the_library_s() -> None:
    for kind in (Point, LibraryPoint):
        made: Any = kind(1, label="a")
        assert made == (1, 2, "a")
        assert (made.x, made.y, made.label) == (1, 2, "a")
        assert kind._fields == kind.__match_args__ == ("x", "y", "label")  # type: ignore[attr-defined]
        assert kind._field_defaults == {"y": 2, "label": ""}
        assert made._asdict() == {"x": 1, "y": 2, "label": "a"}
        assert made._replace(y=3) == kind._make([1, 3, "a"])
        assert repr(made).endswith("Point(x=1, y=2, label='a')")
        assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made
        assert type(made._replace(x=4)) is type(pickle.loads(pickle.dumps(made))) is kind
        assert get_type_hints(kind) == {"x": int, "y": int, "label": str}
        assert not hasattr(made, "__dict__")
    assert Point(1).moved(by=2) == (3, 2, "")
    assert Point.__doc__ == "A place."


@pytest.mark.parametrize("kind", [Point, LibraryPoint])
def test_wrong_arguments_are_refused_by_name(kind: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        kind()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        kind(1, z=2)
    with pytest.raises((ValueError, TypeError), match="unexpected field names: \\['z'\\]"):
        kind(1)._replace(z=2)
    with pytest.raises(TypeError, match="Expected 3 arguments, got 2"):
        kind._make([1, 2])
    with pytest.raises(AttributeError):
        kind(1).x = 2


def test_a_default_before_a_field_without_one_is_refused() -> None:
    with pytest.raises(TypeError, match="come last"):

        class Wrong(values.NamedTuple):
            x: int = 1
            y: int  # type: ignore[misc]


def test_a_frozen_dataclass_is_the_library_s() -> None:
    for kind in (Terms, LibraryTerms):
        made: Any = kind("n", parts=(1,))
        assert made == kind("n", "s", (1,))
        assert made != kind("n")
        assert made != ("n", "s", (1,))
        assert hash(made) == hash(kind("n", "s", (1,)))
        assert repr(made).endswith("Terms(name='n', parts=(1,))")
        assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made
        assert kind.__match_args__ == ("name", "secret", "parts")  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="cannot assign to field 'name'"):
            made.name = "m"
        with pytest.raises(AttributeError, match="cannot delete field 'name'"):
            del made.name
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
            kind()
    assert values.replace(Terms("n"), name="m") == Terms("m")
    assert values.asdict(Terms("n")) == {"name": "n", "secret": "s", "parts": ()}


def test_a_dataclass_that_changes() -> None:
    first, second = State(1), State(1)
    first.names.append("a")
    assert second.names == []
    assert first != second
    assert first.later == 2
    assert values.replace(first, size=4).later == 5
    with pytest.raises(TypeError):
        hash(first)
    with pytest.raises(AttributeError):
        first.other = 1  # type: ignore[attr-defined]


def test_a_dataclass_without_equality_is_equal_to_itself_only() -> None:
    thing = Thing()
    assert thing != Thing()
    assert {thing: 1}[thing] == 1


def test_a_dataclass_within_another_class_is_found_by_its_whole_name() -> None:
    part = Place.Part("a")
    assert repr(part) == "Place.Part(name='a')"
    assert pickle.loads(pickle.dumps(part)) == part


def test_a_subclass_keeps_an_init_of_its_own() -> None:
    class Loud(Terms):
        def __init__(self, name: str) -> None:
            super().__init__(name + "!")

    assert [Loud("a").name, Loud("a").name] == ["a!", "a!"]
