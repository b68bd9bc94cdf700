"""What the user asks of the machine against what it is."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import Machine, whole_torch
from gpudoctor.model import CudaVersion, DriverVersion, Finding, Remedy, Severity, Snapshot
from gpudoctor.model.requirement import Judgement, MachineRequirement
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import update_driver


@check(family="tool")
def requirement_unmet(snapshot: Snapshot, judgements: tuple[Judgement, ...]) -> Iterator[Finding]:
    """Something that --require or the configuration asks of this machine is not so, or is not known.

    Why: a job that needs a GPU and silently runs on the CPU costs days. A requirement stops it before it starts.
    Requirements: gpu>=1, vram>=24GiB, compute_capability>=8.0, bf16, fp16, tf32, fp8 (native), driver>=550,
    cuda>=12.4 (what the driver offers), python>=3.10, torch>=2.4, torch.cuda (PyTorch computed on a GPU), cupy>=13,
    shm>=1GiB, profile (it fits this machine). GPUs are those that a program can use here; what is asked of them must
    hold for as many as gpu>=N asks for, without it for each. Versions compare as in PEP 440. Of vram, 1 % less is
    equal, because the driver keeps a little.
    Exception: none. If a value cannot be read, the requirement fails. An unmet one stays an error if another finding
    explains it, and makes the exit status 1 whatever --fail-on says.
    Reference: https://peps.python.org/pep-0440/#version-specifiers
    """
    skip_unless(judgements, "nothing is required (--require)")
    for judgement in judgements:
        if not judgement.met:
            text = judgement.requirement.text
            yield Finding(
                severity=Severity.ERROR,
                summary=f"{text} is required, and {judgement.found}",
                subject=text,
                facts=judgement.facts,
                remedies=tuple(_remedies(judgement.requirement, snapshot)),
                details={"requirement": text, "known": judgement.met is not None},
                same_fault_as=judgement.faults,
            )


def _remedies(requirement: MachineRequirement, snapshot: Snapshot) -> Iterator[Remedy]:
    """Yield what may meet it, where software can: no command brings another GPU."""
    machine = Machine(python=snapshot.python, system=snapshot.system, driver=snapshot.driver, devices=snapshot.devices)
    torch = whole_torch(snapshot.torch, snapshot.torch_runtime)
    if requirement.name == "torch.cuda":
        if torch.build != "cuda" and machine.gpu() != "":
            yield machine.install_torch(torch)
    elif requirement.name == "torch":
        yield machine.install_torch(replace(torch, version=None))  # the release that is there is not wanted
    elif requirement.name == "cupy":
        yield machine.install_cupy(snapshot.cupy)
    elif requirement.name in ("driver", "cuda"):
        yield update_driver(
            system=snapshot.system, needed=_needed(requirement), devices=snapshot.devices, driver=snapshot.driver
        )
    elif requirement.name == "profile":
        yield Remedy(summary="Tune on this machine; the profile is written anew", commands=("gpudoctor tune",))


def _needed(requirement: MachineRequirement) -> DriverVersion | CudaVersion | None:
    """Return the version to update to; None where none is the least."""
    if requirement.operator != ">=":
        return None
    kind = DriverVersion if requirement.name == "driver" else CudaVersion
    try:
        return kind.parse(str(requirement.value))
    except ValueError:
        return None
