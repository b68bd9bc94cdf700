"""What the user asks of the machine against what it is."""

from collections.abc import Iterator

from gpudoctor.model import CudaVersion, DriverVersion, Finding, Fix, Gpu, Pytorch, Severity
from gpudoctor.model.requirement import Judgement, MachineRequirement
from gpudoctor.registry import check, skip_unless


@check(family="tool")
def requirement_unmet(judgements: tuple[Judgement, ...], pytorch: Pytorch, gpu: Gpu) -> Iterator[Finding]:
    """A requirement from --require or the configuration is not met, or cannot be checked.

    Why: a job that needs a GPU and silently runs on the CPU costs days. A requirement stops it before it starts.
    Requirements: gpu>=1, vram>=24GiB, compute_capability>=8.0, bf16, fp16, tf32, fp8 (native), driver>=550, cuda>=12.4
    (what the driver supports), python>=3.10, torch>=2.4, torch.cuda (PyTorch computed on a GPU), cupy>=13, shm>=1GiB,
    profile (it fits this machine). Only GPUs that a program can use here count. With gpu>=N, N of them must meet the
    other requirements, otherwise all of them. Versions compare as in PEP 440. vram may be 1 % less, because the driver
    reserves a little.
    Exception: none. If a value cannot be read, the requirement fails. An unmet requirement stays an error if another
    finding explains it, and makes the exit status 1 whatever --fail-on says.
    Reference: https://peps.python.org/pep-0440/#version-specifiers
    """
    skip_unless(judgements, "nothing is required (--require)")
    for judgement in judgements:
        if not judgement.met:
            text = judgement.requirement.text
            yield Finding(
                severity=Severity.ERROR,
                summary=f"{text} is required, but {judgement.found}",
                subject=text,
                facts=judgement.facts,
                fixes=_fixes(judgement.requirement, pytorch, gpu) or _elsewhere(judgement),
                details={"requirement": text, "known": judgement.met is not None},
                same_fault_as=judgement.faults,
            )


def _fixes(requirement: MachineRequirement, pytorch: Pytorch, gpu: Gpu) -> tuple[Fix, ...]:
    """Return what may meet it, if software can: no command brings another GPU."""
    if requirement.name == "torch.cuda" and (pytorch.build_read == "cuda" or gpu.name == ""):
        return ()
    fixes = {
        "torch.cuda": Fix("install-torch"),
        "torch": Fix("install-torch", keep_release=False),  # the release that is there is not wanted
        "cupy": Fix("install-cupy"),
        "driver": Fix("update-driver", needed=_needed(requirement)),
        "cuda": Fix("update-driver", needed=_needed(requirement)),
        "profile": Fix("tune-again"),
    }
    return (fixes[requirement.name],) if requirement.name in fixes else ()


def _elsewhere(judgement: Judgement) -> tuple[Fix, ...]:
    """Return what to do if no command meets it: another machine, or a value that can be read."""
    name = "show-required-value" if judgement.met is None else "meet-requirement"
    return (Fix(name, requirement=judgement.requirement.text),)


def _needed(requirement: MachineRequirement) -> DriverVersion | CudaVersion | None:
    if requirement.operator != ">=" or requirement.name not in ("driver", "cuda"):
        return None
    kind = DriverVersion if requirement.name == "driver" else CudaVersion
    try:
        return kind.parse(str(requirement.value))
    except ValueError:
        return None
