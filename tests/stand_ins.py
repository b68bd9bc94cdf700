"""Stand-ins for the driver's libraries and nvidia-smi, so that real programs meet any driver on a machine without one.

    devices = (RTX_4090, A10.but(temperature=95, event_reasons=0x40))
    stand_ins = install(tmp_path, nvml=Nvml(devices=devices), cuda=Cuda(devices=devices, fail={"cuInit": 999}))
    subprocess.run(["gpudoctor", "check"], env={**os.environ, **stand_ins})

The libraries are compiled from tests/probes/stand_ins; the loader finds them by LD_LIBRARY_PATH, which it reads when a
process starts. The fixture `driver_stand_in` of conftest.py is `install` with the compiled files kept for the session.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpudoctor.probes.local_host import MODULE
from gpudoctor.processes import Worker

SOURCES = Path(__file__).parent / "probes" / "stand_ins"
COMPILER = shutil.which("gcc") or shutil.which("cc")
GIB = 2**30

Outcome = int | str  # the code that a function returns, "hang" or "crash"


@dataclass(frozen=True)
class Gpu:
    """A device: its facts by the names of nvml.c; one that is not given is "not supported".

    Values are texts, bytes, whole numbers, tuples (several numbers in one answer) or lists (several lines), powers in
    milliwatts, memory in bytes. `fail` names functions that fail on this device alone.
    """

    facts: Mapping[str, Any]
    fail: Mapping[str, Outcome] = field(default_factory=dict)

    def but(self, *, fail: Mapping[str, Outcome] | None = None, **facts: Any) -> Gpu:
        """Return this device with other facts."""
        return replace(self, facts={**self.facts, **facts}, fail=self.fail if fail is None else fail)


@dataclass(frozen=True, kw_only=True)
class Nvml:
    """libnvidia-ml.so.1.

    fail: function without its version suffix → what comes of it: {"nvmlInit": 18}, {"nvmlDeviceGetName": "crash"}.
    missing: functions that the library does not have, with their suffix.
    device_count: the number that NVML gives, where it is not that of `devices`.
    """

    devices: tuple[Gpu, ...] = ()
    driver_version: str = "550.54.15"
    cuda_version: int = 12040
    fail: Mapping[str, Outcome] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    device_count: int | None = None
    process_names: Mapping[int, str | bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cuda:
    """libcuda.so.1, a link to libcuda.so.DRIVER_VERSION. Fields as those of `Nvml`."""

    devices: tuple[Gpu, ...] = ()
    driver_version: str = "550.54.15"
    version: int = 12040
    fail: Mapping[str, Outcome] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    device_count: int | None = None


@dataclass(frozen=True)
class Broken:
    """A library that the loader refuses: an empty file, as images saved from a container with a GPU have."""


@dataclass(frozen=True, kw_only=True)
class NvidiaSmi:
    """nvidia-smi, whatever its arguments are. With `hangs` it never ends after what it prints."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0
    hangs: bool = False


def install(
    folder: Path,
    *,
    nvml: Nvml | Broken | None = None,
    cuda: Cuda | Broken | None = None,
    nvidia_smi: NvidiaSmi | None = None,
    build_folder: Path | None = None,
) -> dict[str, str]:
    """Put the stand-ins below `folder`; return the environment variables to add, for programs that are to meet them.

    None leaves one out: a program then finds that of the machine, if there is one.
    build_folder: where compiled libraries are kept, to be used again.
    """
    libraries, programs = folder / "lib", folder / "bin"
    for place in (libraries, programs):
        place.mkdir(parents=True, exist_ok=True)
    environ = {
        "LD_LIBRARY_PATH": _path_with(libraries, "LD_LIBRARY_PATH"),
        "PATH": _path_with(programs, "PATH"),
    }
    if isinstance(nvml, Nvml):
        environ["STAND_IN_NVML"] = str(_write_script(folder / "nvml.txt", _nvml_lines(nvml), nvml.devices))
        shutil.copy(_build("nvml", nvml.missing, build_folder or folder), libraries / "libnvidia-ml.so.1")
    elif nvml is not None:
        (libraries / "libnvidia-ml.so.1").touch()
    if isinstance(cuda, Cuda):
        environ["STAND_IN_CUDA"] = str(_write_script(folder / "cuda.txt", _cuda_lines(cuda), cuda.devices))
        file = libraries / f"libcuda.so.{cuda.driver_version}"
        shutil.copy(_build("cuda", cuda.missing, build_folder or folder), file)
        (libraries / "libcuda.so.1").symlink_to(file.name)
    elif cuda is not None:
        (libraries / "libcuda.so.1").touch()
    if nvidia_smi is not None:
        _write_program(programs / "nvidia-smi", nvidia_smi)
    return environ


def ask_worker(
    worker: str,
    environ: Mapping[str, str] | None = None,
    arguments: Mapping[str, Any] | None = None,
    timeout: float = 60,
    interpreter: str | Path = sys.executable,
) -> dict[str, Any]:
    """Return the answer of a worker in a process of its own, with `environ` added to the environment.

    Raises:
        WorkerEnded, WorkerSilent: there was none.
    """
    process = Worker(MODULE, os.fspath(interpreter), {**os.environ, **(environ or {})})
    try:
        return process.ask({"worker": worker, "arguments": dict(arguments or {})}, timeout)
    finally:
        process.end()


def facts_of(
    worker: str, environ: Mapping[str, str] | None = None, *, interpreter: str | Path = sys.executable, **arguments: Any
) -> dict[str, Any]:
    """Return the facts that the worker gives to `arguments`."""
    answer = ask_worker(worker, environ, arguments, interpreter=interpreter)
    assert "facts" in answer, answer
    facts: dict[str, Any] = answer["facts"]
    return facts


def _path_with(folder: Path, variable: str) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get(variable))))


def _nvml_lines(nvml: Nvml) -> dict[str, Any]:
    names = {f"process_name_{pid}": name for pid, name in nvml.process_names.items()}
    return {
        "driver_version": nvml.driver_version,
        "cuda_version": nvml.cuda_version,
        "device_count": nvml.device_count,
        "fail": _failures(nvml.fail),
        **names,
    }


def _cuda_lines(cuda: Cuda) -> dict[str, Any]:
    return {"version": cuda.version, "device_count": cuda.device_count, "fail": _failures(cuda.fail)}


def _failures(fail: Mapping[str, Outcome]) -> list[str]:
    return [f"{function} {outcome}" for function, outcome in fail.items()]


def _write_script(path: Path, facts: Mapping[str, Any], devices: tuple[Gpu, ...]) -> Path:
    """Write the file that script.h describes."""
    lines = list(_lines(facts))
    for device in devices:
        lines += [b"device", *_lines({**device.facts, "fail": _failures(device.fail)})]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _lines(facts: Mapping[str, Any]) -> list[bytes]:
    values = (
        (key, value)
        for key, several in facts.items()
        for value in (several if isinstance(several, list) else [several])
    )
    return [key.encode() + b" " + _value(value) for key, value in values if value is not None]


def _value(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return " ".join(str(item) for item in value).encode() if isinstance(value, tuple) else str(value).encode()


def _build(kind: str, missing: tuple[str, ...], folder: Path) -> Path:
    """Return the compiled library, without the functions that are to be missing."""
    tag = hashlib.sha256(" ".join(sorted(missing)).encode()).hexdigest()[:12]
    library = folder / f"{kind}-{tag}.so"
    if not library.exists():
        assert COMPILER is not None, "no C compiler: ask for the fixture driver_stand_in, which skips without one"
        flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
        without = [f"-DWITHOUT_{function}" for function in missing]
        subprocess.run([COMPILER, *flags, *without, "-o", str(library), str(SOURCES / f"{kind}.c")], check=True)
    return library


def _write_program(path: Path, smi: NvidiaSmi) -> None:
    texts = path.with_suffix(".out"), path.with_suffix(".err")
    for text, content in zip(texts, (smi.stdout, smi.stderr), strict=True):
        text.write_text(content, encoding="utf-8")
    output, errors = (shlex.quote(str(text)) for text in texts)
    end = "while :; do sleep 1; done" if smi.hangs else f"exit {smi.status}"
    path.write_text(f"#!/bin/sh\ncat {output}\ncat {errors} >&2\n{end}\n", encoding="utf-8")
    path.chmod(0o755)


# Functions of nvml.c that came after R450. Source: the change logs of nvml.h.
MISSING_IN_R450 = (
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetGpuFabricInfo",
    "nvmlDeviceGetGpuFabricInfoV",
)

_IDLE = {
    "memory_used": 0,
    "clock_sm": 210,
    "event_reasons": 1,
    "performance_state": 8,
    "utilization": 0,
    "temperature": 34,
    "persistence_mode": 1,
    "compute_mode": 0,
    "pcie_generation": 1,
    "pcie_generation_max": 4,
    "pcie_width": 16,
    "pcie_width_max": 16,
}
RTX_4090 = Gpu(
    {
        **_IDLE,
        "name": "NVIDIA GeForce RTX 4090",
        "uuid": "GPU-0a4090aa-1111-2222-3333-444444444444",
        "compute_capability": (8, 9),
        "pci_bus_id": "00000000:01:00.0",
        "pci_device_id": 0x268410DE,
        "memory_total": 24564 * 2**20,
        "memory_reserved": 346 * 2**20,
        "power_draw": 21_340,
        "power_limit": 450_000,
        "power_limit_default": 450_000,
        "clock_sm_max": 3120,
        "temperature_slowdown": 92,
        "remapped_rows": (0, 0, 0, 0),
    }
)
RTX_5090 = RTX_4090.but(
    name="NVIDIA GeForce RTX 5090",
    uuid="GPU-0b5090bb-1111-2222-3333-444444444444",
    compute_capability=(12, 0),
    pci_device_id=0x2B8510DE,
    memory_total=32607 * 2**20,
    power_limit=575_000,
    power_limit_default=575_000,
    pcie_generation_max=5,
    temperature_slowdown=None,
)
A10 = Gpu(
    {
        **_IDLE,
        "name": "NVIDIA A10",
        "uuid": "GPU-0ca10ccc-1111-2222-3333-444444444444",
        "compute_capability": (8, 6),
        "pci_bus_id": "00000000:00:1E.0",
        "pci_device_id": 0x223610DE,
        "memory_total": 23028 * 2**20,
        "memory_reserved": 435 * 2**20,
        "power_draw": 16_120,
        "power_limit": 150_000,
        "power_limit_default": 150_000,
        "clock_sm_max": 1695,
        "temperature_slowdown": 95,
        "ecc_uncorrected_volatile": 0,
        "remapped_rows": (0, 0, 0, 0),
    }
)
GTX_1080 = Gpu(
    {
        **_IDLE,
        "name": "NVIDIA GeForce GTX 1080",
        "uuid": "GPU-0d1080dd-1111-2222-3333-444444444444",
        "compute_capability": (6, 1),
        "pci_bus_id": "00000000:02:00.0",
        "pci_device_id": 0x1B8010DE,
        "memory_total": 8192 * 2**20,
        "power_draw": 9_870,
        "power_limit": 180_000,
        "power_limit_default": 180_000,
        "clock_sm_max": 1911,
        "temperature_slowdown": 96,
        "pcie_generation_max": 3,
    }
)
H100 = Gpu(
    {
        **_IDLE,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-0e100eee-1111-2222-3333-444444444444",
        "compute_capability": (9, 0),
        "pci_bus_id": "00000000:18:00.0",
        "pci_device_id": 0x233010DE,
        "memory_total": 81559 * 2**20,
        "memory_reserved": 551 * 2**20,
        "power_draw": 70_210,
        "power_limit": 700_000,
        "power_limit_default": 700_000,
        "clock_sm_max": 1980,
        "temperature_slowdown": 85,
        "ecc_uncorrected_volatile": 0,
        "remapped_rows": (0, 0, 0, 0),
        "mig_mode": (0, 0),
        "mig_count": 7,
        "pcie_generation": 5,
        "pcie_generation_max": 5,
        "nvlinks": (1,) * 18,
        "fabric": (3, 0),
    }
)
H100_MIG = H100.but(
    mig_mode=(1, 1),
    utilization=None,
    mig_uuid=["MIG-1b1b1b1b-5555-6666-7777-888888888888", "MIG-2c2c2c2c-5555-6666-7777-888888888888"],
)
