"""What a program uses of the machine, with all processes that it started. Source: proc_pid_stat(5), cgroups(7)."""

import os
import time
from collections.abc import Iterator
from typing import Any

from gpudoctor.watching.disk_use import DiskUse

STAT_BYTES = 4096
CGROUPS = "/sys/fs/cgroup"
SHARED_MEMORY = "/dev/shm"  # noqa: S108
_STATE, _PARENT, _TIMES, _THREADS, _RESIDENT = 0, 1, slice(11, 15), 17, 21


class CpuUse:
    """How busy the program keeps the CPU.

    cores: since the look before; None at the first one, and if there is no /proc.
    """

    def __init__(self, pid: int | None) -> None:
        self.cores: float | None = None
        self._pid = pid
        self._before: tuple[float, float] | None = None
        self._family: list[tuple[str, int, float, int, int]] = []
        self._pids: list[int] = []
        self._disk = DiskUse()
        self._cgroup = _limited_folder(pid)

    def look(self) -> bool:
        """Update `cores`. Return whether the program runs and is not stopped by Ctrl-Z."""
        processes = _processes()
        if self._pid is None or self._pid not in processes:
            self.cores = self._before = None
            self._family, self._pids = [], []
            return True
        if processes[self._pid][0] in "Tt":
            self._before = None
            return False
        self._pids = _family(self._pid, processes)
        self._family = [processes[pid] for pid in self._pids]
        now, used = time.monotonic(), sum(process[2] for process in self._family)
        before, self._before = self._before, (now, used)
        self.cores = None if before is None else max(used - before[1], 0.0) / (now - before[0])
        return True

    def pids(self) -> set[int]:
        """Return the process ids of the program that the last look saw."""
        return set(self._pids)

    def more(self) -> dict[str, Any]:
        """Return what else the last look saw, as fields of `Sample`."""
        found: dict[str, Any] = {"cgroup_periods": _periods(self._cgroup)}
        if self._family:
            found["memory_bytes"] = sum(process[4] for process in self._family)
            found["processes"] = len(self._family)
            found["threads"] = sum(process[3] for process in self._family)
            disk = self._disk.look(self._pids)
            found["disk_read_bytes"], found["disk_written_bytes"] = disk or (None, None)
        try:
            shm = os.statvfs(SHARED_MEMORY)
            found["shm_free_bytes"] = shm.f_bavail * shm.f_frsize
        except (OSError, AttributeError):
            pass
        return found


def _processes() -> dict[int, tuple[str, int, float, int, int]]:
    """Return each process: state, parent, CPU seconds with those of children that it waited for, threads, memory."""
    try:
        ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except (OSError, AttributeError, ValueError):
        return {}
    return {pid: process for pid in pids if (process := _process(pid, ticks, page)) is not None}


def _process(pid: int, ticks: int, page: int) -> tuple[str, int, float, int, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(STAT_BYTES).rpartition(b")")[2].split()
        seconds = sum(map(int, fields[_TIMES])) / ticks
        return (
            fields[_STATE].decode(),
            int(fields[_PARENT]),
            seconds,
            int(fields[_THREADS]),
            int(fields[_RESIDENT]) * page,
        )
    except (OSError, ValueError, IndexError):  # it has ended meanwhile
        return None


def _family(root: int, processes: dict[int, tuple[str, int, float, int, int]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process[1], []).append(pid)
    todo, found = [root], []
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, ())
    return found


def cgroup_folder(pid: int | None) -> str:
    """Return the folder that limits the process's CPU: of version 1 if it has the controller, else of 2; or empty."""
    try:
        with open(f"/proc/{pid or 'self'}/cgroup", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(":", 2)[1:] for line in file]
    except OSError:
        return ""
    found = {name: path for names, path in lines for name in names.split(",")}
    if "cpu" in found:
        return f"{CGROUPS}/cpu{found['cpu'].rstrip('/')}"
    return CGROUPS + found[""].rstrip("/") if "" in found else ""


def _limited_folder(pid: int | None) -> str:
    """Return the folder of the cgroup, the process's or one above, that has the tightest CPU limit; or empty."""
    limits = {folder: limit for folder in _folders(pid) if (limit := _limit(folder)) is not None}
    return min(limits, key=lambda folder: limits[folder], default="")


def _folders(pid: int | None) -> Iterator[str]:
    folder = cgroup_folder(pid)
    while folder.startswith(CGROUPS):
        yield folder
        folder = folder.rpartition("/")[0]


def _limit(folder: str) -> float | None:
    """Return how many CPUs a cgroup may use; None without a limit."""
    try:
        quota, period = _text(f"{folder}/cpu.max").split()
    except (OSError, ValueError):
        try:
            quota, period = _text(f"{folder}/cpu.cfs_quota_us"), _text(f"{folder}/cpu.cfs_period_us")
        except OSError:
            return None
    try:
        return int(quota) / int(period) if int(quota) > 0 else None  # version 1 says -1, version 2 "max"
    except (ValueError, ZeroDivisionError):
        return None


def _text(file: str) -> str:
    with open(file, encoding="utf-8") as opened:
        return opened.read().strip()


def _periods(folder: str) -> tuple[int, int] | None:
    """Return the periods of the CPU limit so far, and those that it cut short; None without a limit."""
    try:
        found = dict(line.split() for line in _text(f"{folder}/cpu.stat").splitlines())
        return int(found["nr_periods"]), int(found["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def allowed_cpus(pid: int | None) -> float | None:
    """Return how many CPUs the program may use, by its affinity and the limits of its cgroups."""
    try:
        allowed = float(len(os.sched_getaffinity(pid or 0)))
    except (OSError, AttributeError):
        return None
    return min([allowed, *(limit for folder in _folders(pid) if (limit := _limit(folder)) is not None)])


def is_used(used: dict[int, int | None], own: set[int]) -> bool | None:
    """Return whether the program is on the device; None if NVML gives no ids, or those of another namespace.

    In a container they are the host's, or the list is empty (https://github.com/NVIDIA/nvidia-docker/issues/1483).
    """
    if own:
        return True
    return False if used and all(os.path.exists(f"/proc/{pid}") for pid in used) else None
