"""What a CUDA image requires of its host's driver."""

import re
from collections.abc import Iterator

from gpudoctor.data import offered_cuda_can_run, supported_cuda
from gpudoctor.model import CudaVersion, Driver, DriverVersion, Environment, Finding, Remedy, Severity, System
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import update_driver

VARIABLE = "NVIDIA_REQUIRE_CUDA"


@check(family="container", explains=("driver-too-old", "torch-cuda-unavailable", "cupy-unusable"))
def container_image_needs_newer_driver(
    environment: Environment, driver: Driver | None = None, system: System | None = None
) -> Iterator[Finding]:
    """The container's image requires a newer driver than its host has.

    Why: CUDA images name the driver they need in NVIDIA_REQUIRE_CUDA. The NVIDIA runtime refuses to start them on an
    older one ("unsatisfied condition: cuda>=12.6"); where the condition is switched off, or CDI starts the container,
    CUDA fails inside or lacks features.
    Exception: the condition holds where any of its alternatives does. Within one CUDA major version most programs run
    all the same by minor-version compatibility, so that is a warning. The brand of a GPU is not compared.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    text = environment.get(VARIABLE) or ""
    applies(text, f"{VARIABLE} is not set")
    needed = _cuda_of(text)
    driver = known(driver, "driver")
    offered = driver.cuda_version
    if offered is None:
        offered = supported_cuda(known(driver.version, "driver.version"))
    offered = known(offered, "driver.cuda_version")
    if any(_holds(alternative, offered, driver.version) for alternative in text.split()):
        return
    same_major = needed is not None and offered_cuda_can_run(offered, needed)
    yield Finding(
        severity=Severity.WARNING if same_major else Severity.ERROR,
        summary=f"The image requires {_short(text)}, the driver{f' {driver.version}' if driver.version else ''} of the "
        f"host supports CUDA {offered}",
        subject="container image",
        facts=(
            f"environment.{VARIABLE}",
            *(("driver.cuda_version",) if driver.cuda_version is not None else ()),
            *(("driver.version",) if driver.version is not None else ()),
        ),
        remedies=(
            Remedy(
                summary=f"Use an image for CUDA {offered} or older: another tag of the same image",
                reference="https://hub.docker.com/r/nvidia/cuda/tags",
            ),
            update_driver(system=system, needed=needed, driver=driver),
        ),
    )


def _cuda_of(text: str) -> CudaVersion | None:
    """Return the CUDA version that the first alternative asks for."""
    match = re.search(r"\bcuda>=?(\d{1,3}(?:\.\d{1,3})?)", text)
    return CudaVersion.parse(match[1]) if match else None


def _short(text: str) -> str:
    first, *others = text.split()
    return f"{first} (or one of {len(others)} alternatives)" if others else first


def _holds(alternative: str, offered: CudaVersion, version: DriverVersion | None) -> bool:
    """Return whether all conditions of one alternative hold, such as "brand=tesla,driver>=470,driver<471".

    What cannot be compared counts as met: a false alarm is worse than a condition that the runtime checks anyway.
    """
    return all(_is_met(condition, offered, version) for condition in alternative.split(","))


def _is_met(condition: str, offered: CudaVersion, version: DriverVersion | None) -> bool:
    match = re.fullmatch(r"(cuda|driver)(>=|<=|!=|=|<|>)(\d{1,4}(?:\.\d{1,4}){0,3})", condition)
    if match is None:
        return True
    wanted = tuple(int(part) for part in match[3].split("."))
    present = (offered.major, offered.minor) if match[1] == "cuda" else version.parts if version is not None else None
    if present is None:
        return True
    length = max(len(wanted), len(present))
    left, right = (part + (0,) * (length - len(part)) for part in (present, wanted))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "!=": left != right,
        "=": left == right,
        "<": left < right,
        ">": left > right,
    }[match[2]]
