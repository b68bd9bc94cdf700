"""What a CUDA image requires of its host's driver."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.error_codes import COMPAT_NOT_SUPPORTED, cuda_error, in_container
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import driver_for, offered_cuda_can_run, supported_cuda
from gpudoctor.model import (
    Container,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Environment,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import update_driver

VARIABLE = "NVIDIA_REQUIRE_CUDA"
VERSION = "CUDA_VERSION"


@check(family="container", explains=("driver-too-old", "torch-cuda-unavailable", "cupy-unusable", "cuda-libs-conflict"))
def container_image_needs_newer_driver(
    environment: Environment | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    container: Container | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
) -> Iterator[Finding]:
    """The container's image requires a newer driver than its host has.

    Why: CUDA images name the driver they need in NVIDIA_REQUIRE_CUDA. The NVIDIA runtime refuses to start them on an
    older one ("unsatisfied condition: cuda>=12.6"); where the condition is switched off, or CDI starts the container,
    CUDA fails inside or lacks features.
    Exception: the condition holds where any of its alternatives does. Within one CUDA major version most programs run
    all the same by minor-version compatibility, so that is a warning. The brand of a GPU is not compared. Where PyTorch
    computes on the GPU, by forward compatibility for one, it is advice; error 804 says that this GPU has none.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    computes = torch_runtime is not None and torch_runtime.available is True
    told = _told(driver, container, symptoms)
    if told is None and told_of_container(system, container):
        told = _compatibility(driver, torch_runtime, container, symptoms)
    if told is not None:
        summary, fact, wanted = told
        yield Finding(
            severity=Severity.INFO if computes else Severity.ERROR,
            summary=summary,
            subject="container image",
            facts=(fact, *(("driver.version",) if driver is not None and driver.version is not None else ())),
            remedies=(
                update_driver(system=system, needed=wanted, devices=devices, driver=driver),
                _other_image(driver.cuda_version if driver is not None else None),
            ),
        )
        return
    environment = known(environment, "environment")
    variable = VERSION if in_container(system) and not environment.get(VARIABLE) else VARIABLE
    text = _of_version(environment.get(VERSION)) if variable == VERSION else environment.get(VARIABLE) or ""
    skip_unless(text, f"{VARIABLE} is not set")
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
        severity=Severity.INFO if computes else Severity.WARNING if same_major else Severity.ERROR,
        summary=f"The image requires {_short(text)}, the driver{f' {driver.version}' if driver.version else ''} of the "
        f"host supports CUDA {offered}",
        subject="container image",
        facts=(
            f"environment.{variable}",
            *(("driver.cuda_version",) if driver.cuda_version is not None else ()),
            *(("driver.version",) if driver.version is not None else ()),
        ),
        remedies=(
            _other_image(offered),
            update_driver(system=system, needed=_driver_of(needed), driver=driver),
        ),
    )


def _told(
    driver: Driver | None, container: Container | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[str, str, CudaVersion | DriverVersion | None] | None:
    """Return what the container runtime or the image's own banner says, its fact, and what it asks for."""
    host = f"the host's driver is {driver.version}" if driver is not None and driver.version is not None else ""
    image = f"The image {container.image}" if container is not None and container.image else "The image"
    for fact, message in reported(symptoms, "container-ngc-needs-driver"):
        release = message.names["release"]
        return f"{image} needs driver {release}{f', {host}' if host else ''}", fact, DriverVersion.parse(release)
    unmet = reported(symptoms, "container-requirement-unmet")
    for fact, message in unmet:
        condition = " ".join(message.names.get("condition", "").split())
        if condition.startswith("arch") or not condition:
            continue
        number = re.fullmatch(r"(cuda|driver) ?>=? ?(\d{1,4}(?:\.\d{1,4}){0,2})", condition)
        wanted = None
        if number is not None:
            cuda = number[1] == "cuda"
            wanted = _driver_of(_cuda_of(f"cuda>={number[2]}")) if cuda else DriverVersion.parse(number[2])
        return f"{image} requires {condition}, which is not met{f': {host}' if host else ' by the host'}", fact, wanted
    # The condition may be cut off.
    for fact, message in unmet:
        if "condition" not in message.names:
            return f"{image} requires a newer driver than its host has{f': {host}' if host else ''}", fact, None
    return None


def _compatibility(
    driver: Driver | None,
    torch_runtime: TorchRuntime | None,
    container: Container | None,
    symptoms: tuple[Symptom, ...] | None,
) -> tuple[str, str, None] | None:
    """Return what error 804 tells: the image's forward compatibility package is newer than the host's driver."""
    fact = cuda_error(COMPAT_NOT_SUPPORTED, driver, torch_runtime, symptoms=symptoms)
    if fact is None:
        return None
    image = f"The image {container.image}" if container is not None and container.image else "The image"
    host = f" {driver.version}" if driver is not None and driver.version is not None else ""
    needs = "is for a newer CUDA than the host's driver"
    return f"{image} {needs}{host} supports, and this GPU has no forward compatibility (error 804)", fact, None


def _other_image(cuda: CudaVersion | None) -> Remedy:
    limit = f"CUDA {cuda} or older" if cuda is not None else "an older CUDA, which the driver of the host supports"
    return Remedy(
        summary=f"Use an image for {limit}: another tag of the same image",
        reference="https://hub.docker.com/r/nvidia/cuda/tags",
    )


def _cuda_of(text: str) -> CudaVersion | None:
    """Return the CUDA version that the first alternative asks for."""
    match = re.search(r"\bcuda>=?(\d{1,3}(?:\.\d{1,3})?)", text)
    return CudaVersion.parse(match[1]) if match else None


def _of_version(text: str | None) -> str:
    """Return the condition of an image that only tells its CUDA version: within a major the minor is free."""
    match = re.match(r"\d{1,3}(?=\.\d)", text or "")
    return f"cuda>={match[0]}.0" if match else ""


def _driver_of(cuda: CudaVersion | None) -> CudaVersion | DriverVersion | None:
    """Return the driver that offers `cuda`: the condition compares with that, minor-version compatibility or not."""
    return (driver_for(cuda) if cuda is not None else None) or cuda


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
