"""`NamedTuple` and `dataclass` as the standard library has them, for the many classes that a start defines.

The library compiles source for each, `dataclasses` up to seven pieces of it, and imports the tools that read
source: together a fifth of a start. Here such a class costs little more than any class: what all of them can
share is shared, and an `__init__` is compiled when it is first called. Type checkers are shown the library's
own, so a class means what it says there, as far as this goes:

- dataclasses always have slots; `frozen`, `eq` and `repr` are known, and fields with `default`,
  `default_factory`, `init`, `repr`. None inherits fields. `replace` and `asdict` are the ones below.
- Modules that use it postpone their annotations: these stay the text they are.

Where nobody waits for a start (Spark, pipelines, clients) the library's own are as good.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

# -- named tuples --------------------------------------------------------------------------------------------


class _NamedValues(tuple[Any, ...]):
    """What all named tuples have; their fields and `__new__` are their own."""

    __slots__ = ()
    _fields = tuple[str, ...]()

    @classmethod
    def _make(cls, values: Any) -> Any:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes: Any) -> Any:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({values})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _NamedTupleType(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        names = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace[field] for field in names if field in namespace}
        if tuple(defaults) != names[len(names) - len(defaults) :]:
            raise TypeError(f"{name}: fields with a default come last")
        new = FunctionType(_new_code(names), {"make": tuple.__new__}, "__new__", tuple(defaults.values()))
        new.__qualname__ = f"{name}.__new__"
        namespace.update({field: _tuplegetter(index, "") for index, field in enumerate(names)})
        namespace |= {
            "__slots__": (),
            "__new__": new,
            "__match_args__": names,
            "_fields": names,
            "_field_defaults": defaults,
        }
        return type(name, (_NamedValues,), namespace)


def _new_code(names: tuple[str, ...]) -> CodeType:
    """Compiled once for each number of fields; the names of parameters are data beside the code."""
    return _new_code_of(len(names)).replace(co_varnames=("cls", *names), co_name="__new__")


@cache
def _new_code_of(count: int) -> CodeType:
    names = "".join(f"_{index}, " for index in range(count))
    code: CodeType = eval(f"lambda cls, {names}: make(cls, ({names}))").__code__
    return code


# -- dataclasses ---------------------------------------------------------------------------------------------

_NONE = object()  # no default


class _Field:
    __slots__ = ("default", "factory", "init", "repr")

    def __init__(self, default: Any = _NONE, default_factory: Any = None, **options: bool) -> None:
        self.default = default
        self.factory = default_factory
        self.init = options.pop("init", True)
        self.repr = options.pop("repr", True)
        assert not options, options


def _dataclass(*, slots: bool, frozen: bool = False, eq: bool = True, **options: bool) -> Any:
    assert slots
    has_repr = options.pop("repr", True)
    assert not options, options

    def declared(cls: type) -> Any:
        namespace = dict(cls.__dict__)
        names = tuple(namespace.get("__annotations__", ()))
        fields = {name: _field_of(namespace.pop(name, _NONE)) for name in names}
        for name in ("__dict__", "__weakref__"):
            namespace.pop(name, None)
        namespace |= {
            "__slots__": names,
            "__qualname__": cls.__qualname__,
            "__match_args__": tuple(name for name, each in fields.items() if each.init),
            "__value_fields__": fields,
        }
        own: dict[str, Any] = {"__repr__": _repr} if has_repr else {}
        if eq:
            values_of = attrgetter(*names) if len(names) > 1 else _only(*names)
            own |= {"__values__": staticmethod(values_of), "__eq__": _equals}
            own["__hash__"] = _hash if frozen else None
        if frozen:
            own |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
            own |= {"__getstate__": _state, "__setstate__": _set_state}
        made: Any = type(cls)(cls.__name__, cls.__bases__, own | namespace)
        made.__init__ = _lazy_init(made, fields, frozen, "__post_init__" in namespace)
        return made

    return declared


def _field_of(given: Any) -> _Field:
    return given if isinstance(given, _Field) else _Field(given)


def _only(name: str) -> Any:
    one = attrgetter(name)
    return lambda value: (one(value),)


def _lazy_init(made: Any, fields: dict[str, _Field], frozen: bool, has_more: bool) -> Any:
    """An `__init__` that compiles its better at the first call: of many classes a start makes no values."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        made.__init__ = compiled = _compile_init(fields, frozen, has_more)
        compiled(self, *args, **kwargs)

    return __init__


def _compile_init(fields: dict[str, _Field], frozen: bool, has_more: bool) -> Any:
    parameters, body = ["self"], []
    namespace: dict[str, Any] = {"none": _NONE, "set_value": object.__setattr__}
    for name, each in fields.items():
        default, make = f"default_{name}", f"make_{name}"
        namespace |= {default: each.default, make: each.factory}
        if each.factory is not None:
            value = f"{make}() if {name} is none else {name}" if each.init else f"{make}()"
        elif each.init:
            value = name
        elif each.default is not _NONE:
            value = default
        else:
            continue
        if each.init:
            has_default = each.factory is not None or each.default is not _NONE
            parameters.append(f"{name}={default}" if has_default else name)
        body.append(f"set_value(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if has_more:
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), namespace)
    return namespace["__init__"]


def _repr(self: Any) -> str:
    fields = self.__value_fields__.items()
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name, each in fields if each.repr)
    return f"{type(self).__qualname__}({values})"


def _equals(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return self.__values__(self) == self.__values__(other)


def _hash(self: Any) -> int:
    return hash(self.__values__(self))


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise AttributeError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise AttributeError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__value_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__value_fields__, state, strict=True):
        object.__setattr__(self, name, value)


def _replaced(value: Any, /, **changes: Any) -> Any:
    """Another with these fields changed."""
    for name, each in value.__value_fields__.items():
        if each.init:
            changes.setdefault(name, getattr(value, name))
    return type(value)(**changes)


def _as_dict(value: Any) -> dict[str, Any]:
    """Its fields by name; values within them stay as they are."""
    return {name: getattr(value, name) for name in value.__value_fields__}


if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    NamedTuple = type.__new__(_NamedTupleType, "NamedTuple", (), {})
    asdict, dataclass, field, replace = _as_dict, _dataclass, _Field, _replaced
