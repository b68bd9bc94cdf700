"""What can be required of a machine: the one table of the names, what each means, and which facts it reads."""

from gpudoctor.model.record import record


@record
class Name:
    """One thing that can be required.

    value: what it is compared with: "count", "size" (bytes with a unit), "version", or "" for nothing.
    bare: it may stand alone, and is then required to be there.
    facts: dotted paths of the facts that it reads, of which the first part is a section of the snapshot.
    advice: further sections, on which the command depends that mends it.
    """

    meaning: str
    facts: tuple[str, ...]
    value: str = ""
    bare: bool = True
    advice: tuple[str, ...] = ()

    @property
    def sections(self) -> frozenset[str]:
        """The sections of the snapshot that must be asked for."""
        return frozenset((*(fact.partition(".")[0] for fact in self.facts), *self.advice))


# Which GPUs count: those that CUDA gives this process, under its CUDA_VISIBLE_DEVICES, else those that PyTorch sees
# (ROCm), else, in a pasted report, those that nvidia-smi lists. See gpus.py.
_GPUS = (
    "driver.cuda_devices",
    "driver.cuda_device_count",
    "driver.cuda_init_code",
    "devices",
    "torch_runtime.device_count",
    "torch.build",
)
_INSTALLING = ("python", "system", "driver", "devices")
_OF_EACH = "every GPU that this process can use, or N of them with gpu>=N"

NAMES = {
    "gpu": Name(meaning="number of GPUs that this process can use, by CUDA or ROCm", facts=_GPUS, value="count"),
    "vram": Name(
        meaning=f"memory of {_OF_EACH}; within 1 % counts as equal",
        facts=_GPUS,
        value="size",
        bare=False,
    ),
    "compute_capability": Name(meaning=f"compute capability of {_OF_EACH}", facts=_GPUS, value="version", bare=False),
    "bf16": Name(meaning=f"native bf16, not emulated, on {_OF_EACH}", facts=_GPUS),
    "fp16": Name(meaning=f"native fp16 on {_OF_EACH}", facts=_GPUS),
    "tf32": Name(meaning=f"TF32 tensor cores on {_OF_EACH}", facts=_GPUS),
    "fp8": Name(meaning=f"fp8 tensor cores on {_OF_EACH}", facts=_GPUS),
    "driver": Name(
        meaning="version of the NVIDIA driver in use",
        facts=("driver.version", "driver.installed"),
        value="version",
        advice=_INSTALLING,
    ),
    "cuda": Name(
        meaning="highest CUDA version that the driver supports",
        facts=("driver.cuda_version", "driver.installed"),
        value="version",
        advice=_INSTALLING,
    ),
    "python": Name(meaning="version of the diagnosed Python", facts=("python.version",), value="version", bare=False),
    "torch": Name(
        meaning="version of the installed PyTorch; fails if it cannot be imported",
        facts=("torch.version", "torch.installed", "torch_runtime.version", "torch_runtime.import_error"),
        value="version",
        advice=_INSTALLING,
    ),
    "torch.cuda": Name(
        meaning="PyTorch computed correctly on a GPU; in a pasted report, torch.cuda.is_available() is True",
        facts=("torch_runtime.available", "torch_runtime.precision_results", "torch.installed"),
        advice=_INSTALLING,
    ),
    "cupy": Name(
        meaning="version of the installed CuPy; fails if it cannot be imported",
        facts=("cupy.version", "cupy.distributions", "cupy_runtime.version", "cupy_runtime.import_error"),
        value="version",
        advice=_INSTALLING,
    ),
    "shm": Name(meaning="size of /dev/shm", facts=("system.shm_total_bytes",), value="size", bare=False),
    "profile": Name(
        meaning="an env profile exists and fits this machine",
        facts=("profile.fingerprint", "profile.problem", "devices", "driver.version", "torch.version", "cupy.version"),
    ),
}
