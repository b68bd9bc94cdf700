"""GPU requirements: how many GPUs a program on this machine can use, and their properties."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.conclusions.pytorch import merge_torch
from gpudoctor.conclusions.requirements.judgement import NO_GPU, size_agrees, version_agrees, why_unknown
from gpudoctor.data.capabilities import features, has_tensor_cores
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import ComputeCapability, CudaDevice, Device, Driver, Snapshot, Torch, described, known_facts
from gpudoctor.model.record import record
from gpudoctor.model.requirement import OPERATORS, Judgement, MachineRequirement

MEMORY_TOLERANCE = 0.01
"""nvidia-smi shows 23.99 GiB for a 24 GB RTX 4090, 31.84 for a 32 GB RTX 5090 and 79.65 for an 80 GB H100: the driver
reserves up to 0.5 %. ECC takes a sixteenth, which a program cannot use either."""

_GIB = 2**30
_Answer = tuple[bool | None, str]  # has the property (None: unknown); text to follow the GPU's name


@record
class Gpu:
    """One GPU. `None` means unknown.

    device: decides the features. facts: dotted paths of the evidence.
    """

    name: str
    device: Device
    capability: ComputeCapability | None
    memory_bytes: int | None
    facts: tuple[str, ...]


@record
class Gpus:
    """The GPUs that a program can use.

    count: None if unknown. why: why it is unknown, or why there are no GPUs. facts: evidence for the count.
    listed: GPUs with known facts. hidden: how many of these a program cannot use; which ones is unknown.
    """

    count: int | None
    why: str = ""
    facts: tuple[str, ...] = ()
    listed: tuple[Gpu, ...] = ()
    hidden: int = 0


def usable_gpus(snapshot: Snapshot) -> Gpus:
    """Return the GPUs that a program can use, from CUDA, else PyTorch, else a pasted report."""
    for source in (_by_rocm, _by_cuda, _by_torch, _by_report):
        found = source(snapshot)
        if found is not None:
            return found
    return Gpus(count=None, why=why_unknown(snapshot, "driver", "cuda-driver"))


def _by_rocm(snapshot: Snapshot) -> Gpus | None:
    runtime = snapshot.torch_runtime
    if runtime is None or not runtime.hip_version or not runtime.available or runtime.device_count is None:
        return None
    return Gpus(count=runtime.device_count, facts=("torch_runtime.device_count",))


def _by_cuda(snapshot: Snapshot) -> Gpus | None:
    driver = snapshot.driver or Driver()
    if driver.cuda_device_count is not None:
        return _counted(driver.cuda_device_count, "driver.cuda_device_count", snapshot)
    if driver.cuda_init_code:
        named = driver.cuda_init_error or str(driver.cuda_init_code)
        return Gpus(count=0, why=f"CUDA does not start: {named}", facts=("driver.cuda_init_code",))
    if driver.installed is False:
        return Gpus(count=0, why="no NVIDIA driver is installed", facts=("driver.installed",))
    if driver.libcuda_path == "":
        return Gpus(count=0, why="libcuda cannot be loaded", facts=("driver.libcuda_error",))
    return None


def _by_torch(snapshot: Snapshot) -> Gpus | None:
    """A CUDA build asks CUDA itself; the answer of another build does not count."""
    runtime = snapshot.torch_runtime
    if runtime is None or runtime.available is None or merge_torch(snapshot.torch or Torch(), runtime).build != "cuda":
        return None
    if not runtime.available:
        return Gpus(count=0, why="torch.cuda.is_available() is False", facts=("torch_runtime.available",))
    if runtime.device_count is not None:
        return _counted(runtime.device_count, "torch_runtime.device_count", snapshot)
    names = runtime.device_names
    return _counted(len(names), "torch_runtime.device_names", snapshot) if names else None


def _by_report(snapshot: Snapshot) -> Gpus | None:
    """On a live machine CUDA must answer, because NVML also lists GPUs that a program cannot use."""
    if snapshot.devices == ():
        return Gpus(count=0, why="NVML lists none", facts=("devices",))
    if not snapshot.devices or snapshot.contradictions is None:
        return None
    answering = [device for device in snapshot.devices if not device.error]
    return _counted(len(answering), "devices", snapshot)


def _counted(count: int, fact: str, snapshot: Snapshot) -> Gpus:
    listed = tuple(_listed(snapshot))
    why = "" if count else f"{fact} is 0"
    return Gpus(count=count, why=why, facts=(fact,), listed=listed, hidden=max(len(listed) - count, 0))


def _listed(snapshot: Snapshot) -> Iterator[Gpu]:
    """Yield CUDA's GPUs, which a program can use; else those that NVML lists."""
    cuda = snapshot.driver.cuda_devices if snapshot.driver is not None else None
    devices = snapshot.devices or ()
    if cuda is not None:
        yield from (_of_cuda(number, item, devices) for number, item in enumerate(cuda))
        return
    for number, device in enumerate(devices):
        if not device.error:
            mig = device.mig_enabled or "MIG" in (device.name or "")  # a program gets only a part of it
            yield Gpu(
                name=device.name or f"GPU {device.nvml_index}",
                device=device,
                capability=device_capability(device),
                memory_bytes=None if mig else device.memory_total_bytes,
                facts=known_facts(f"devices[{number}]", device, "name", "compute_capability", "memory_total_bytes"),
            )


def _of_cuda(number: int, cuda: CudaDevice, devices: Sequence[Device]) -> Gpu:
    """Return the GPU with the memory size from NVML: CUDA leaves out the driver's reserve."""
    path = f"driver.cuda_devices[{number}]"
    device = Device(nvml_index=number, name=cuda.name, compute_capability=cuda.compute_capability)
    whole = _whole_gpu(cuda, devices)
    memory = devices[whole].memory_total_bytes if whole is not None else cuda.memory_total_bytes
    return Gpu(
        name=cuda.name or f"GPU {number}",
        device=device,
        capability=device_capability(device),
        memory_bytes=memory,
        facts=(
            *known_facts(path, cuda, "name", "compute_capability"),
            *((f"devices[{whole}].memory_total_bytes",) if whole is not None else ()),
            *(known_facts(path, cuda, "memory_total_bytes") if whole is None else ()),
        ),
    )


def _whole_gpu(cuda: CudaDevice, devices: Sequence[Device]) -> int | None:
    """Return the index of the GPU with this name and memory; None if it is ambiguous or a MIG instance."""
    same = [number for number, device in enumerate(devices) if device.name == cuda.name]
    sizes = {devices[number].memory_total_bytes for number in same}
    sure = len(sizes) == 1 and None not in sizes and not any(devices[number].mig_enabled for number in same)
    return same[0] if sure else None


def judge_count(requirement: MachineRequirement, gpus: Gpus) -> Judgement:
    """Return whether there are as many usable GPUs as required."""
    if gpus.count is None:
        return _unknown(requirement, gpus)
    wanted = requirement.value if requirement.operator else 1
    met = OPERATORS[requirement.operator or ">="](gpus.count, wanted)
    faults = () if gpus.count else NO_GPU
    return Judgement(requirement=requirement, met=met, found=_how_many(gpus), facts=gpus.facts, faults=faults)


def least_count(requirements: Sequence[MachineRequirement]) -> int:
    """Return how many GPUs are required; 0 if no requirement says so."""
    return max((_least(item) for item in requirements if item.name == "gpu"), default=0)


def _least(requirement: MachineRequirement) -> int:
    count = int(requirement.value or 0)
    return {"": 1, ">=": count, "==": count, ">": count + 1}.get(requirement.operator, 0)


def judge_property(requirement: MachineRequirement, gpus: Gpus, least: int) -> tuple[Judgement, Gpus]:
    """Return whether `least` GPUs (0: all) have the property, and the GPUs that remain for the next property.

    Which of the listed GPUs a program cannot use is unknown, so the worst case is assumed.
    """
    if gpus.count is None:
        return _unknown(requirement, gpus), gpus
    if not gpus.count:
        found = _how_many(gpus)
        return Judgement(requirement=requirement, met=False, found=found, facts=gpus.facts, faults=NO_GPU), gpus
    answers = [(gpu, *PROPERTIES[requirement.name](requirement, gpu)) for gpu in gpus.listed]
    having = tuple(gpu for gpu, met, _ in answers if met)
    if len(having) - gpus.hidden >= (min(least, gpus.count) or gpus.count):
        return Judgement(requirement=requirement, met=True), replace(gpus, listed=having)
    lacking = [(gpu, text) for gpu, met, text in answers if not met]
    return (
        Judgement(
            requirement=requirement,
            met=None if not lacking or any(met is None for _, met, _ in answers) else False,
            found=described(f"{gpu.name} {text}" for gpu, text in lacking) or _unknown_gpus(gpus),
            facts=tuple(fact for gpu, _ in lacking for fact in gpu.facts) or gpus.facts,
        ),
        gpus,
    )


def _unknown(requirement: MachineRequirement, gpus: Gpus) -> Judgement:
    return Judgement(
        requirement=requirement, met=None, found=f"which GPUs can be used is not known: {gpus.why}", faults=NO_GPU
    )


def _how_many(gpus: Gpus) -> str:
    if not gpus.count:
        return f"no GPU can be used: {gpus.why}"
    return f"{gpus.count} GPU{'s' if gpus.count > 1 else ''} can be used"


def _unknown_gpus(gpus: Gpus) -> str:
    return f"of the {gpus.count} GPUs that can be used, it is known for {max(len(gpus.listed) - gpus.hidden, 0)}"


def _memory(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    if gpu.memory_bytes is None:
        return None, "does not show its memory"
    return size_agrees(requirement, gpu.memory_bytes, MEMORY_TOLERANCE), f"has {gpu.memory_bytes / _GIB:.2f} GiB"


def _capability(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    if gpu.capability is None:
        return None, "does not show its compute capability"
    return version_agrees(requirement, str(gpu.capability)), f"has compute capability {gpu.capability}"


def _precision(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    name = requirement.name
    if gpu.capability is None:
        return None, f"does not show its compute capability, and with it whether {name} is native"
    table = features(gpu.capability)
    kind = getattr(table, name, None)
    if name in ("tf32", "fp8") and has_tensor_cores(gpu.device, table) is False:
        kind = "none"
    if kind is None:
        return None, f"has compute capability {gpu.capability}, for which native {name} is not verified"
    words = {"none": f"has no {name}", "emulated": f"emulates {name}", "slow": f"has {name} far below the fp32 rate"}
    return kind == "native", f"{words.get(kind, f'has {name}')} (compute capability {gpu.capability})"


PROPERTIES: Mapping[str, Callable[[MachineRequirement, Gpu], _Answer]] = {
    "vram": _memory,
    "compute_capability": _capability,
    "bf16": _precision,
    "fp16": _precision,
    "tf32": _precision,
    "fp8": _precision,
}
