"""The requirements on GPUs: how many there are, and what each of them has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.conclusions.requirements.gpus import Gpu, Gpus
from gpudoctor.conclusions.requirements.judgement import NO_GPU, size_agrees, version_agrees
from gpudoctor.data.capabilities import features, has_tensor_cores
from gpudoctor.model import described
from gpudoctor.model.requirement import OPERATORS, Judgement, MachineRequirement

MEMORY_TOLERANCE = 0.01
"""Of a 24 GB RTX 4090 nvidia-smi tells 23.99 GiB, of a 32 GB RTX 5090 31.84 and of an 80 GB H100 79.65: the driver
keeps up to half a percent for itself. What ECC takes, a sixteenth, is not there for a program either."""

_GIB = 2**30
_Answer = tuple[bool | None, str]  # None: not known; and what the GPU has, to follow its name


def judge_count(requirement: MachineRequirement, gpus: Gpus) -> Judgement:
    """Return whether there are as many usable GPUs as it asks for."""
    if gpus.count is None:
        return _unknown(requirement, gpus)
    wanted = requirement.value if requirement.operator else 1
    met = OPERATORS[requirement.operator or ">="](gpus.count, wanted)
    faults = () if gpus.count else NO_GPU
    return Judgement(requirement=requirement, met=met, found=_counted(gpus), facts=gpus.facts, faults=faults)


def least_count(requirements: Sequence[MachineRequirement]) -> int:
    """Return how many GPUs are asked for; 0 where nothing is said."""
    return max((_least(item) for item in requirements if item.name == "gpu"), default=0)


def _least(requirement: MachineRequirement) -> int:
    count = int(requirement.value or 0)
    return {"": 1, ">=": count, "==": count, ">": count + 1}.get(requirement.operator, 0)


def judge_property(requirement: MachineRequirement, gpus: Gpus, least: int) -> tuple[Judgement, Gpus]:
    """Return whether `least` GPUs (0: all of them) have the property, and the GPUs that are left for the next one.

    Which of the GPUs listed are hidden from a program is not known: the worst is assumed.
    """
    if gpus.count is None:
        return _unknown(requirement, gpus), gpus
    if not gpus.count:
        found = _counted(gpus)
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
            found=described(f"{gpu.name} {text}" for gpu, text in lacking) or _not_told(gpus),
            facts=tuple(fact for gpu, _ in lacking for fact in gpu.facts) or gpus.facts,
        ),
        gpus,
    )


def _unknown(requirement: MachineRequirement, gpus: Gpus) -> Judgement:
    return Judgement(
        requirement=requirement, met=None, found=f"which GPUs can be used is not known: {gpus.why}", faults=NO_GPU
    )


def _counted(gpus: Gpus) -> str:
    if not gpus.count:
        return f"no GPU can be used: {gpus.why}"
    return f"{gpus.count} GPU{'s' if gpus.count > 1 else ''} can be used"


def _not_told(gpus: Gpus) -> str:
    return f"of the {gpus.count} GPUs that can be used, it is known of {max(len(gpus.listed) - gpus.hidden, 0)}"


def _memory(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    if gpu.memory_bytes is None:
        return None, "does not tell its memory"
    return size_agrees(requirement, gpu.memory_bytes, MEMORY_TOLERANCE), f"has {gpu.memory_bytes / _GIB:.2f} GiB"


def _capability(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    if gpu.capability is None:
        return None, "does not tell its compute capability"
    return version_agrees(requirement, str(gpu.capability)), f"has compute capability {gpu.capability}"


def _precision(requirement: MachineRequirement, gpu: Gpu) -> _Answer:
    name = requirement.name
    if gpu.capability is None:
        return None, f"does not tell its compute capability, and with it whether {name} is native"
    table = features(gpu.capability)
    kind = getattr(table, name, None)
    if name in ("tf32", "fp8") and has_tensor_cores(gpu.device, table) is False:
        kind = "none"
    if kind is None:
        return None, f"has compute capability {gpu.capability}, of which it is not verified that {name} is native"
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
