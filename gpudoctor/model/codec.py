"""Model values to JSON and back, driven by the types of their fields."""

import dataclasses
import json
import math
import os.path
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion

T = TypeVar("T")
NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no such numbers
_VERSIONS = (CudaVersion, DriverVersion, ComputeCapability, PackageVersion)


@cache
def json_next_to(module_file: str, name: str) -> Any:
    """Return the content of `name`.json next to the module whose `__file__` is given; read once, on first use."""
    with open(os.path.join(os.path.dirname(module_file), f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def to_json(value: Any) -> Any:
    """Return `value` as lists, dicts and scalars. Unknown fields (None) are left out, versions become text."""
    if isinstance(value, _VERSIONS):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: to_json(item) for name, item in pairs if item is not None}
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_json(kind: type[T], data: Any, where: str = "") -> T:
    """Return the `kind` that `to_json` wrote as `data`. Unknown names are ignored.

    Raises:
        ValueError: the data does not fit; the message names the place.
    """
    return typing.cast("T", _reader(typing.cast("type", kind))(data, where or kind.__name__))


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """Return the function that reads a value of this kind, given the value and its place. Types are analysed once."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda data, _: data
    if origin in (types.UnionType, typing.Union):
        known = _reader(next(choice for choice in arguments if choice is not type(None)))
        return lambda data, where: None if data is None else known(data, where)
    if origin is tuple:
        item = _reader(arguments[0])
        return lambda data, where: tuple(
            item(entry, f"{where}[{n}]") for n, entry in enumerate(_expect(data, list, where))
        )
    if origin is not None and issubclass(origin, Mapping):
        item = _reader(arguments[1])
        return lambda data, where: {
            str(key): item(entry, f"{where}.{key}") for key, entry in _expect(data, dict, where).items()
        }
    if kind is PackageVersion:
        return lambda data, where: PackageVersion(_expect(data, str, where))
    if kind in _VERSIONS:
        return lambda data, where: _parse(kind, _expect(data, str, where), where)
    if dataclasses.is_dataclass(kind):
        return lambda data, where: _read_dataclass(typing.cast("type", kind), _expect(data, dict, where), where)
    if kind is float:
        return _read_float
    return lambda data, where: _expect(data, kind, where)


def _read_float(data: Any, where: str) -> float:
    number = data in NOT_FINITE or (isinstance(data, int) and not isinstance(data, bool))
    return float(data) if number else _expect(data, float, where)


@cache
def _field_readers(kind: type) -> dict[str, Callable[[Any, str], Any]]:
    return {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}


def _read_dataclass(kind: type, data: dict[str, Any], where: str) -> Any:
    readers = _field_readers(kind)
    known = {name: readers[name](item, f"{where}.{name}") for name, item in data.items() if name in readers}
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None


def _parse(kind: Any, text: str, where: str) -> Any:
    try:
        return kind.parse(text)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _expect(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ValueError(f"{where}: expected {kind.__name__}, found {type(data).__name__}")
    return data
