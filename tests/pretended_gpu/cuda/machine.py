"""The machine that this process finds, and what its GPUs are to it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["PRETENDED_GPU"])
MACHINE: dict[str, Any] = json.loads((FOLDER / "machine.json").read_text())


def visible() -> list[int]:
    """Return the indices of the GPUs that this process may use, in its order; the first unknown one ends the list."""
    uuids = [str(gpu["uuid"]) for gpu in MACHINE["gpus"]]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return list(range(len(uuids)))
    found: list[int] = []
    for name in wanted.split(","):
        text = name.strip()
        indices = [i for i, uuid in enumerate(uuids) if text in (str(i), uuid)]
        if not indices or indices[0] in found:
            break
        found += indices
    return found


def used_by_others(index: int) -> int:
    """Return the bytes that other processes have of a GPU."""
    files = (FOLDER / "used" / str(index)).glob("*")
    pids = (int(file.name) for file in files)
    return sum(_used(index, pid) for pid in pids if pid != os.getpid() and Path(f"/proc/{pid}").exists())


def _used(index: int, pid: int) -> int:
    try:
        return int((FOLDER / "used" / str(index) / str(pid)).read_text() or 0)
    except FileNotFoundError:
        return 0


def publish(index: int, size: int) -> None:
    """Let the other processes know what this one has."""
    folder = FOLDER / "used" / str(index)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(os.getpid())).write_text(str(size))
