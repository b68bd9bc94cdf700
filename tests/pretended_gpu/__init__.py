"""A machine with GPUs that are not there, for tests: a real CPU torch answers as a CUDA build, in a child process.

From a shell, any Python command, under the interpreter that is to be asked (it has the CPU build of torch 2.13.0):

    python -m tests.pretended_gpu --gpu "NVIDIA A100|8.0|40960" -- .venv/bin/python train.py

In a test, with `driver_stand_in` of conftest.py in the place of `stand_ins.install`:

    environ = pretend(tmp_path, Machine(gpus=(A100, A100)))
    subprocess.run([python, "train.py"], env={**os.environ, **environ})

Everything above `torch._C` is PyTorch's own: `torch.cuda`, autograd, which runs in a thread for each GPU, autocast for
CUDA, GradScaler. Below it, `cuda/` has the functions of CUDA in Python; the values are computed on the CPU.

- Tensors say that they are on "cuda:0", and refuse to meet one on another device.
- Memory: an allocator with PyTorch's segments, so that it fragments, retries and runs out of memory with PyTorch's
  message; limits, peaks, `mem_get_info()`. The processes of a machine share the memory: see `take_memory`.
- Matrix products and convolutions round to TF32 if it is allowed. Each GPU has its own random generator.
- Streams and events have a clock. Kernels take as long as they take on the CPU, and `Machine.kernel_seconds` more on
  the device's own clock, which the host waits for when it synchronises; copies take as long as their rates say.
- An index beyond the end is a device-side assert: it poisons the context, and shows at the next synchronisation.
- `torch.cuda.set_sync_debug_mode` reports what synchronises. `CUDA_VISIBLE_DEVICES` and `CUDA_LAUNCH_BLOCKING` count.
- NVML is tests/stand_ins.py's, if there is a C compiler.

Not included: CUDA graphs, GRUs, sharing tensors between processes, and Triton, so that torch.compile fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests import stand_ins

MIB = 2**20
TORCH_VERSION = "2.13.0+cu130"
_RUNTIME = Path(__file__).parent / "cuda"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU, or a part of one as MIG makes them: `name` and `uuid` then say so ("... MIG 1g.5gb", "MIG-...").

    facts: for NVML, by the names of tests/probes/stand_ins/nvml.c, besides those that follow from the others.
    """

    name: str = "NVIDIA A100-SXM4-40GB"
    capability: tuple[int, int] = (8, 0)
    memory_bytes: int = 40960 * MIB
    uuid: str = ""
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong in an operator.

    operator: "aten::addmm". dtype: of one of its inputs, "float16"; any if empty. call: the first that fails.
    message: of the error. sticky: the error comes later, at a synchronisation, and poisons the context.
    """

    operator: str
    message: str
    dtype: str = ""
    call: int = 1
    sticky: bool = False


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the processes find.

    architectures: that torch was built for. context_bytes: what each process takes of a GPU before its first tensor.
    init_error: with which CUDA fails to start, so that no device is counted. busy: the devices are counted, but the
    first call that uses one fails, as if another process had one for itself.
    kernel_seconds: of the device's own time that each kernel takes. pageable_gb_s, pinned_gb_s: rates of copies.
    """

    gpus: tuple[Gpu, ...] = (Gpu(),)
    architectures: tuple[str, ...] = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
    context_bytes: int = 0
    init_error: str = ""
    busy: bool = False
    kernel_seconds: float = 0.0
    pageable_gb_s: float | None = None
    pinned_gb_s: float | None = None
    faults: tuple[Fault, ...] = ()


def pretend(
    folder: Path, machine: Machine | None = None, install: Callable[..., dict[str, str]] = stand_ins.install
) -> dict[str, str]:
    """Put the machine below `folder`; return the environment variables of the processes that are to find it."""
    machine = machine or Machine()
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    metadata = site / f"torch-{TORCH_VERSION}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {TORCH_VERSION}\n")
    (metadata / "RECORD").write_text("")
    (metadata / "INSTALLER").write_text("pip\n")
    (site / "pretended_cuda").symlink_to(_RUNTIME, target_is_directory=True)
    (site / "sitecustomize.py").write_text("import pretended_cuda.hook\n")
    gpus = [{**asdict(gpu), "uuid": _uuid(gpu, index), "facts": None} for index, gpu in enumerate(machine.gpus)]
    (folder / "machine.json").write_text(json.dumps({**asdict(machine), "gpus": gpus}))
    environ = {
        "PRETENDED_GPU": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH")))),
    }
    if stand_ins.COMPILER is None:
        return environ
    devices = tuple(_nvml_device(gpu, index) for index, gpu in enumerate(machine.gpus))
    nvml = stand_ins.Nvml(devices=devices, driver_version="580.95.05", cuda_version=13000)
    return {**environ, **install(folder, nvml=nvml)}


def take_memory(folder: Path, index: int, size: int, pid: int = 1) -> None:
    """Let another process have `size` bytes of a GPU from now on, by its index; 0 gives them back.

    pid: of a process that runs: what the others have had is free.
    """
    used = folder / "used" / str(index)
    used.mkdir(parents=True, exist_ok=True)
    (used / str(pid)).write_text(str(size))


def run(folder: Path, machine: Machine, command: list[str]) -> int:
    """Run a command on the machine; return its exit status."""
    return subprocess.run(command, env={**os.environ, **pretend(folder, machine)}, check=False).returncode


def _uuid(gpu: Gpu, index: int) -> str:
    return gpu.uuid or f"GPU-00000000-0000-0000-0000-{index:012d}"


def _nvml_device(gpu: Gpu, index: int) -> stand_ins.Gpu:
    return stand_ins.A10.but(
        name=gpu.name.partition(" MIG ")[0],
        uuid=_uuid(gpu, index),
        compute_capability=gpu.capability,
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        memory_total=gpu.memory_bytes,
        **(gpu.facts or {}),
    )
