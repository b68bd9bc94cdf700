"""Device memory that other programs hold."""

from collections.abc import Iterator

from gpudoctor.model import Device, DeviceProcess, Finding, Fix, Origin, Severity, known_facts
from gpudoctor.registry import check, reachable, settled

HELD_SHARE = 0.5  # a desktop uses some hundred MiB; a job that uses half leaves the next one short
SHOWN = 3


@check(family="memory")
def gpu_memory_held_by_others(origin: Origin, devices: tuple[Device, ...]) -> Iterator[Finding]:
    """Other programs use more than half of a device's memory.

    Why: your program cannot use that memory: "CUDA out of memory" on a device that should have enough. Often a
    forgotten notebook or a process left behind by a crash uses it.
    Exception: a desktop and small jobs pass, and so does gpudoctor's own memory. In a pasted report this is advice,
    because the programs may be the job that the report is about.
    Reference: https://docs.pytorch.org/docs/stable/notes/faq.html#my-gpu-memory-isn-t-freed-properly
    """
    answering = reachable(devices)
    held = [(path, device) for path, device in answering if _held_share(device) > HELD_SHARE]
    free = [device for _, device in answering if device.memory_used_bytes is not None and _held_share(device) < 0.1]
    severity = Severity.WARNING if not origin.is_report else Severity.INFO
    findings = (_finding(path, device, free, severity) for path, device in held)
    yield from settled(findings, answering, "memory_total_bytes", "memory_used_bytes")


def _held_share(device: Device) -> float:
    if not device.memory_total_bytes:
        return 0.0
    by_processes = sum(map(_size, device.processes or ()))
    return max(filter(None, (device.memory_used_bytes, by_processes)), default=0.0) / device.memory_total_bytes


def _size(process: DeviceProcess) -> int:
    return process.used_bytes or 0


def _finding(path: str, device: Device, free: list[Device], severity: Severity) -> Finding:
    processes = sorted(device.processes or (), key=_size, reverse=True)
    total = device.memory_total_bytes or 0
    used = round(_held_share(device) * total)
    shown = ", ".join(_describe(process) for process in processes[:SHOWN])
    more = f" and {len(processes) - SHOWN} more" if len(processes) > SHOWN else ""
    who = f": {shown}{more}" if processes else ", by programs that are not visible from here"
    summary = f"{_gib(used)} of {_gib(total)} of {device.label} are in use{who}"
    facts = known_facts(path, device, "memory_used_bytes", "memory_total_bytes", "processes")
    return Finding.of(severity, device.label, summary, facts, *_fixes(device, processes, free))


def _describe(process: DeviceProcess) -> str:
    size = "" if process.used_bytes is None else f" {_gib(process.used_bytes)}"
    name = process.name.replace("\\", "/").rpartition("/")[2]
    return f"{name or 'process'} (pid {process.pid}){size}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _fixes(device: Device, processes: list[DeviceProcess], free: list[Device]) -> Iterator[Fix]:
    pids = tuple(process.pid for process in processes[:SHOWN])
    yield Fix("end-programs-on-gpu", nvml_index=device.nvml_index, pids=pids)
    for other in free[:1]:
        summary = f"Use {other.label}, whose memory is free"
        yield Fix("show-devices", nvml_indices=(other.nvml_index,), summary=summary)
