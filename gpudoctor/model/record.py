"""Frozen, keyword-only dataclasses that cost next to nothing to define.

`dataclasses.dataclass` compiles six methods for each class: for the thirty classes of the model that was 17 ms of every
start (CPython 3.11, 2026), more than the interpreter itself. Here the methods are shared and read the fields instead.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Tell type checkers that a decorator makes dataclasses; at run time there is nothing to do."""
        return lambda decorator: decorator


def _default(item: Field[Any], owner: str) -> Any:
    if item.default is not MISSING:
        return item.default
    if item.default_factory is not MISSING:
        return item.default_factory()
    raise TypeError(f"{owner}: {item.name} is missing")


class _Shared:
    """The methods of every record."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, **values: Any) -> None:
        for name, item in self.__dataclass_fields__.items():
            if name not in values:
                values[name] = _default(item, type(self).__name__)
        if len(values) > len(self.__dataclass_fields__):
            unknown = values.keys() - self.__dataclass_fields__.keys()
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        self.__dict__.update((name, values[name]) for name in self.__dataclass_fields__)

    def __repr__(self) -> str:
        items = ((item, getattr(self, item.name)) for item in fields(self))
        shown = (f"{item.name}={value!r}" for item, value in items if value is not item.default)
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign {value!r} to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass: `fields`, `replace` and comparison work as with any other."""
    for name in _METHODS:
        setattr(cls, name, vars(_Shared)[name])
    return dataclass(init=False, repr=False, eq=False)(cls)
