"""Why a job ran out of memory, from the numbers in a report's messages."""

import re
from collections.abc import Mapping
from dataclasses import replace

from gpudoctor.model import Devices, Shortage, Symptom
from gpudoctor.symptoms import Symptoms, first, group, of_kind

# Memory of a CUDA context outside the allocator, with some reserve: below it, other processes cannot be inferred.
CONTEXT_BYTES = 1.5 * 2**30
MOST_PIDS = 5  # of other processes
SHARE = 0.1  # share of the device; a smaller use by others is not the cause
LEAST_RESERVED = 0.03  # share of the device that fragments must have: a few hundred MiB are always left over
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# Symptoms about main memory, and of a process that the system killed.
HOST = ("host-out-of-memory", "tensorflow-host-out-of-memory")
KILLED = ("host-process-killed",)
# Symptoms that also have other causes.
UNSURE = ("cublas-no-handle", "memory-short-in-words")
# Symptoms that are enough to show the cause.
HELD = ("vllm-memory-held",)


def shortage(symptoms: Symptoms, devices: Devices) -> Shortage:
    """Return the shortage in the messages: the one with most numbers, device memory before host memory."""
    found = [_shortage(symptom, devices) for symptom in of_kind(symptoms, "@memory-short")]
    if of_kind(symptoms, "about-jax") and not of_kind(
        symptoms, "about-torch-named"
    ):  # CUDA's own message names no program
        found = [replace(one, library="jax") if one.library == "cuda" else one for one in found]
    return max(found, key=_weight, default=_held(symptoms))


def _held(symptoms: Symptoms) -> Shortage:
    """Return the process that keeps device memory, if the report complains of it and a query lists the process."""
    holder = first(of_kind(symptoms, "memory-holder-listed")) if of_kind(symptoms, "guess-memory-held") else None
    if holder is None:
        return Shortage()
    said = Shortage(cause="others", kind=holder.kind, text=holder.text, fact=holder.fact, certain=False)
    pids = tuple(int(pid) for pid in (holder.names.get("pid"),) if pid)
    return replace(said, library=holder.library, others=_first(holder.names, "size"), others_pids=pids)


def _weight(shortage: Shortage) -> tuple[int, int]:
    known = sum(value is not None for value in vars(shortage).values())
    kind = shortage.kind
    rank = 0 if kind in KILLED else 1 if kind in UNSURE else 2 if kind in HOST else 3
    return rank, known


def _shortage(message: Symptom, devices: Devices) -> Shortage:
    names, kind = message.names, message.kind
    said = Shortage(
        kind=kind, library=message.library, text=message.text, fact=message.fact, certain=kind not in (*KILLED, *UNSURE)
    )
    tried = _first(names, "tried", "asked", "size", "wanted", "buffer")
    if kind in KILLED:
        return replace(said, cause="killed")
    free = _first(names, "free", "left")
    if kind in HELD and "free" in names:
        free = parse_bytes(f"{names['free']} GiB")  # vLLM writes the unit once: "(6.11/23.52 GiB)"
    if kind in HOST:
        return replace(said, cause="host", tried=tried, free=free)
    total = _first(names, "total", "capacity")
    allocated = _first(names, "allocated", "used")
    pool = _first(names, "pool", "pool_allowed")
    reserved = _first(names, "reserved")
    if reserved is None and pool is not None and allocated is not None:
        reserved = max(pool - allocated, 0)
    by_allocator = (allocated or 0) + (reserved or 0) if allocated is not None else None
    mine = _first(names, "mine")
    listed = _listed(names.get("processes", ""), mine, by_allocator)
    others = sum(listed.values()) if listed is not None else _unexplained(total, free, mine, by_allocator)
    sizes = replace(
        said,
        tried=tried,
        total=total,
        free=free,
        mine=mine if mine is not None else by_allocator,
        reserved=reserved,
        others=others,
        others_pids=tuple(listed or ())[:MOST_PIDS],
    )
    return replace(sizes, cause=_cause(sizes, devices))


def _cause(shortage: Shortage, devices: Devices) -> str:
    total, tried, reserved, free = shortage.total, shortage.tried, shortage.reserved or 0, shortage.free
    if shortage.kind in HELD or _matters(shortage.others, total):
        return "others"
    if free is not None and tried is not None and free >= tried:
        return "refused"
    if reserved > LEAST_RESERVED * (total or 0) and tried is not None and (free or 0) + reserved >= tried:
        return "fragmented"
    if shortage.total is None and shortage.mine is None and shortage.kind not in group("memory-job-too-large"):
        return "others" if _mostly_used(devices) else "unknown"
    return "too-large"


def _matters(size: int | None, total: int | None) -> bool:
    return size is not None and size > 0 and total is not None and size >= SHARE * total


def _listed(processes: str, mine: int | None, allocator: int | None) -> dict[int, int] | None:
    """Return the memory of the other processes in a message's list, by their PID, the largest first.

    None if it lists no process.
    """
    found = re.findall(r"Process (\d+) has (\S+ ?\S*?) memory in use", processes)
    sizes = {int(pid): size for pid, size in ((pid, parse_bytes(text)) for pid, text in found) if size}
    # In a container PyTorch does not recognise its own process in the list: it has the allocator's size.
    own = (
        pid for pid, s in sizes.items() if mine is None and allocator and allocator <= s <= allocator + CONTEXT_BYTES
    )
    sizes.pop(next(own, -1), None)
    return dict(sorted(sizes.items(), key=lambda item: -item[1])) if found else None


def _unexplained(total: int | None, free: int | None, mine: int | None, allocator: int | None) -> int | None:
    """Return the memory that neither is free nor belongs to the job."""
    if total is None or free is None:
        return None
    if mine is not None:
        return max(total - free - mine, 0)
    left = total - free - allocator if allocator is not None else 0
    return left if left > CONTEXT_BYTES else None


def _mostly_used(devices: Devices) -> bool:
    """Return whether a device is mostly in use, for a message without numbers."""
    return any(
        device.memory_total_bytes and (device.memory_used_bytes or 0) > 0.5 * device.memory_total_bytes
        for device in devices or ()
    )


def _first(names: Mapping[str, str], *keys: str) -> int | None:
    for key in keys:
        value = names.get(key)
        size = parse_bytes(value) if value else None
        if size is not None:
            return size
    return None


def parse_bytes(text: str) -> int | None:
    """Return the bytes in "2.00 GiB", "512 bytes", "1,024 bytes" or "4187881472"; None for anything else."""
    match = re.fullmatch(r"\s*(\d[\d,]{0,24}(?:\.\d{0,9})?)\s?([KMGT]?)(?:i?B|ytes|bytes|Bytes)?\s*", text)
    if match is None:
        return None
    return int(float(match[1].replace(",", "")) * _UNITS[match[2]])
