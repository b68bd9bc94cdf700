"""What readers return: for each section of the snapshot, a record with the facts that the text contains."""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudoctor.model import Device, Environment, Symptom

# Section → record (devices, messages: tuple of records; "taken_at": text). Sections that the text lacks are missing.
Facts = dict[str, Any]

# Fields that collect the values of all texts; for the others the first text wins.
_GATHERED = {"warnings", "kernel_messages", "xids", "packages", "distributions"}


def sections(**values: Any) -> Facts:
    """Return the sections that are known: neither None nor an empty list."""
    return {section: value for section, value in values.items() if value not in (None, ())}


def joined(*parts: Mapping[str, Any]) -> Facts:
    """Merge the facts of all parts; the first value of a fact wins."""
    result: Facts = {}
    for part in parts:
        for section, value in part.items():
            result[section] = value if section not in result else _join(result[section], value)
    return result


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, Environment):
        return Environment(variables={**second.variables, **first.variables})
    if dataclasses.is_dataclass(first):
        return join_records(first, second)
    if not isinstance(first, tuple):
        return first
    if all(isinstance(item, Symptom) for item in (*first, *second)):
        return (*first, *(message for message in second if message not in first))
    devices = all(isinstance(item, Device) for item in (*first, *second))
    return join_devices(first, second) if devices else first or second


def join_records(first: Any, second: Any) -> Any:
    """Return `first`, completed with facts that only `second` has."""
    known = {}
    for field in dataclasses.fields(first):
        mine, other = getattr(first, field.name), getattr(second, field.name)
        if field.name in _GATHERED and mine is not None and other is not None:
            known[field.name] = _gather(mine, other)
        elif mine in (None, "") and other not in (None, ""):
            known[field.name] = other
    return replace(first, **known) if known else first


def _gather(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return both without duplicates; the first of several packages with one name wins."""
    seen = {getattr(item, "name", item) for item in first}
    return (*first, *(item for item in second if getattr(item, "name", item) not in seen))


def join_devices(first: tuple[Device, ...], second: tuple[Device, ...]) -> tuple[Device, ...]:
    """Merge the devices of both texts by number; a device that only one text lists is unchanged.

    Different names for one number mean two machines: the devices of `second` are left out. If one text names a single
    device, which may lack its number, it is matched by name.
    """
    if len(second) == 1 and len(first) > 1:
        second = _numbered(second[0], first)
    elif len(first) == 1 and len(second) > 1:
        first = _numbered(first[0], second)
    mine = {device.nvml_index: device for device in first}
    others = {device.nvml_index: device for device in second}
    if any(not same_product(mine[index].name, others[index].name) for index in mine.keys() & others.keys()):
        return first
    return tuple(_join_device(mine.get(index), others.get(index)) for index in sorted(mine.keys() | others.keys()))


def _numbered(device: Device, listed: tuple[Device, ...]) -> tuple[Device, ...]:
    named = next((other for other in listed if device.name and same_product(other.name, device.name)), device)
    return (replace(device, nvml_index=named.nvml_index),)


def _join_device(first: Device | None, second: Device | None) -> Device:
    if first is None or second is None:
        return first or second or Device(nvml_index=0)
    name: str | None = max((first.name or "").rstrip("."), (second.name or "").rstrip("."), key=len) or None
    both: Device = join_records(first, second)
    return replace(both, name=name)


def same_product(first: str | None, second: str | None) -> bool:
    """Return whether two names may be of one product: one may be shorter, and nvidia-smi cuts off long ones."""
    if not first or not second:
        return True
    return _says_less(first, second) or _says_less(second, first)


def _says_less(name: str, whole: str) -> bool:
    words, others = _words(name), _words(whole)
    cut = words.pop() if name.endswith("...") and words else ""
    return set(words) <= set(others) and (not cut or any(other.startswith(cut) for other in others))


def _words(name: str) -> list[str]:
    words = name.lower().rstrip(".").replace("-", " ").split()
    return [word for word in words if word not in ("nvidia", "geforce", "tesla", "quadro")]
