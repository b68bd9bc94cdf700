"""Records of any kind with a hostile text wherever they hold one."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion, PackageVersion

T = TypeVar("T")
VERSIONS: dict[Any, Any] = {
    CudaVersion: CudaVersion(12, 8),
    DriverVersion: DriverVersion((550, 54, 14)),
    ComputeCapability: ComputeCapability(8, 9),
}
OF_ITS_OWN: dict[Any, Any] = {bool: True, int: 3, float: 2.5}


def filled(kind: type[T], text: str, **given: Any) -> T:
    """Return a record of the kind: every text is `text`, every sequence has one member, nothing is unknown."""
    hints = typing.get_type_hints(kind)
    names = [item.name for item in dataclasses.fields(typing.cast("Any", kind)) if item.name not in given]
    return kind(**given, **{name: _value(hints[name], text) for name in names})


def _value(kind: Any, text: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in VERSIONS or kind in OF_ITS_OWN:
        return VERSIONS.get(kind, OF_ITS_OWN.get(kind))
    if kind is PackageVersion:
        return PackageVersion(text)
    if origin in (types.UnionType, typing.Union):
        return _value(next(choice for choice in arguments if choice is not type(None)), text)
    if origin is tuple:
        return (_value(arguments[0], text),)
    if origin is not None and issubclass(origin, Mapping):
        return {text: _value(arguments[1], text)}
    if dataclasses.is_dataclass(kind):
        return filled(typing.cast("type", kind), text)
    return next(iter(kind)) if isinstance(kind, type) and issubclass(kind, Enum) else text
