"""Frozen, keyword-only dataclasses that cost next to nothing to define.

`dataclasses.dataclass` compiles six methods for each class: for the thirty classes of the model that was 17 ms of every
start (CPython 3.11, 2026), more than the interpreter itself. Here the methods are shared and read the defaults instead,
and the standard library makes its `Field` objects, another 4 ms, when somebody asks for those of a class.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Tell type checkers that a decorator makes dataclasses; at run time there is nothing to do."""
        return lambda decorator: decorator


class _Fields:
    """Stands for the `Field` objects of a class until somebody asks for them."""

    def __get__(self, _: object, owner: type[Any]) -> dict[str, Field[Any]]:
        dataclass(init=False, repr=False, eq=False)(owner)  # puts the fields in this object's place
        fields: dict[str, Field[Any]] = vars(owner)["__dataclass_fields__"]
        return fields


def _made(name: str, default: Any, owner: str) -> Any:
    """Return the value that stands for a default."""
    if default is MISSING:
        raise TypeError(f"{owner}: {name} is missing")
    return default.default if default.default_factory is MISSING else default.default_factory()


class _Shared:
    """The methods of every record.

    _defaults: by field, in their order; MISSING for none, and the `field(...)` that makes a new one each time.
    _made: the fields whose default is one of these two.
    """

    _defaults: ClassVar[dict[str, Any]]
    _made: ClassVar[tuple[str, ...]]

    def __init__(self, **values: Any) -> None:
        complete = {**self._defaults, **values}  # in the order of the fields, which the hash depends on
        if len(complete) > len(self._defaults):
            unknown = values.keys() - self._defaults.keys()
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        for name in self._made:
            if name not in values:
                complete[name] = _made(name, self._defaults[name], type(self).__name__)
        self.__dict__.update(complete)

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in vars(self).items() if value is not self._defaults[name])
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
    shared: dict[str, Any] = {name: vars(_Shared)[name] for name in _METHODS}
    shared["_defaults"] = {name: vars(cls).get(name, MISSING) for name in cls.__annotations__}
    shared["_made"] = tuple(n for n, v in shared["_defaults"].items() if v is MISSING or isinstance(v, Field))
    shared["__dataclass_fields__"] = _Fields()
    for name, value in shared.items():
        setattr(cls, name, value)
    return cls
