"""The class for records of facts, and the description of a fact."""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Describe a decorator to type checkers; does nothing at run time."""
        return lambda decorator: decorator


class _Methods:
    """The methods of every record.

    `dataclass` would compile them for each of the 110 records, which took as long as five starts of a bare Python
    (CPython 3.11, November 2026).
    """

    def __init__(self: Any, **values: Any) -> None:
        defaults, made = _defaults(self.__class__)
        unknown = values.keys() - defaults.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {min(unknown)!r}")
        for item in made:
            if item.name not in values:
                if item.default_factory is MISSING:
                    raise TypeError(f"{type(self).__name__} needs a value for {item.name!r}")
                values[item.name] = item.default_factory()
        vars(self).update(defaults, **values)

    def __repr__(self: Any) -> str:
        shown = (f"{name}={vars(self)[name]!r}" for name in _defaults(self.__class__)[0])
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign {value!r} to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")


@cache
def _defaults(cls: Any) -> tuple[dict[str, Any], tuple[Field[Any], ...]]:
    """Return the default of each field, and the fields without a default or with a default factory."""
    return {item.name: item.default for item in fields(cls)}, tuple(f for f in fields(cls) if f.default is MISSING)


@cache
def _compared(cls: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(cls) if item.compare)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(vars(self)[name] for name in _compared(self.__class__))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass. Its own methods are kept."""
    for name in _SHARED:
        if name not in vars(cls):
            setattr(cls, name, vars(_Methods)[name])
    annotations = cls.__annotations__
    cls.__annotations__ = dict.fromkeys(annotations, Any)  # searching each text for ClassVar would take half the time
    made = dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
    cls.__annotations__ = annotations
    return made


class Fact(NamedTuple):
    """Meaning and unit of a section's field, and where it is read on a live machine."""

    meaning: str
    unit: str = ""
    source: str = ""


def fact_of(record: type[Any], field: str) -> Fact | None:
    """Return the description of a record's field; None without one."""
    annotation = getattr(record, "__annotations__", {}).get(field)
    if annotation is None:
        return None
    alone = SimpleNamespace(__annotations__={field: annotation})  # reading all fields takes 1 ms
    hint = get_type_hints(alone, vars(sys.modules[record.__module__]), include_extras=True)[field]
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Fact)), None)
