"""What the image of a container, seen from outside, requires of the host's driver."""

from collections.abc import Iterator

from gpudoctor.data.drivers import driver_for, offered_cuda_can_run, supported_cuda
from gpudoctor.model import CudaVersion, Driver, DriverCondition, Finding, Fix, SeenSetup, Severity, once_per_image
from gpudoctor.model.record import record
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind

REFUSALS = ("container-requirement-unmet", "container-ngc-needs-driver")


@check(family="container")
def container_setup_image_needs_newer_driver(
    setups: tuple[SeenSetup, ...], driver: Driver = Driver()
) -> Iterator[Finding]:
    """The image of a container, or of a service, needs a newer driver than its host has.

    Why: CUDA images name the driver they need in NVIDIA_REQUIRE_CUDA. The NVIDIA runtime refuses to start them with an
    older driver. If the condition is disabled, or CDI starts the container, CUDA fails inside or lacks features. Other
    images show their CUDA version in CUDA_VERSION, FROM or their PyTorch.
    Exception: the condition is met if one of its alternatives is. Within one CUDA major version most programs run by
    minor-version compatibility, so that is a warning. A container that gets no GPU on purpose needs no driver.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    skip_unless(setups, "no container was checked")
    needs = {seen.path: need for seen in setups if (need := _need_of(seen, driver)) is not None}
    concerned = (seen for seen in setups if seen.path in needs)
    for seen in once_per_image(concerned, rank=lambda seen: needs[seen.path].severity):
        yield _finding(seen, needs[seen.path], driver)


@record
class _Need:
    """What a container needs of the driver, and the fact that shows it."""

    text: str
    fact: str
    cuda: CudaVersion | None = None
    severity: Severity = Severity.ERROR


def _finding(seen: SeenSetup, need: _Need, driver: Driver) -> Finding:
    offered = _offered(seen, driver)
    here = f", but the driver{f' {driver.version}' if driver.version else ''} supports CUDA {offered}"
    at_least = (driver_for(need.cuda) if need.cuda is not None else None) or need.cuda
    return Finding.of(
        need.severity,
        seen.label,
        f"The {seen.label} needs a newer driver: {need.text}{here if offered else ''}",
        (need.fact, "driver.cuda_version", "driver.version"),
        Fix("use-older-base-image", setup=seen.setup, at_most=offered),
        Fix("update-driver", needed=at_least),
    )


def _offered(seen: SeenSetup, driver: Driver) -> CudaVersion | None:
    """Return the CUDA version that the driver of the container's host offers; None if that is unknown."""
    if seen.engine.is_local is False:
        return None
    return driver.cuda_version or (supported_cuda(driver.version) if driver.version is not None else None)


def _need_of(seen: SeenSetup, driver: Driver) -> _Need | None:
    """Return what the container needs and the driver lacks; what the runtime said comes first."""
    offered = _offered(seen, driver)
    is_for_gpu = seen.gpu_access != "" or (seen.gpu_intent is not None and not seen.declines_gpu)
    need = None
    if offered is not None and is_for_gpu:
        need = _unmet(seen, offered, driver) or _too_new(seen, offered)
    for refusal in of_kind(seen.failures, *REFUSALS):
        said = " ".join(refusal.text.split())[:120]
        return _Need(text=said, fact=refusal.fact, cuda=need.cuda if need is not None else None)
    return need


def _unmet(seen: SeenSetup, offered: CudaVersion, driver: Driver) -> _Need | None:
    environment = seen.setup.environment
    condition = DriverCondition(text=environment.get("NVIDIA_REQUIRE_CUDA", ""))
    is_off = environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true")
    version = driver.version
    if is_off or not condition.text.split() or condition.is_met(offered, version):
        return None
    is_same_major = condition.cuda is not None and offered_cuda_can_run(offered, condition.cuda)
    return _Need(
        text=f"its image requires {condition.label[:120]}",
        fact=seen.fact("environment"),
        cuda=condition.cuda,
        severity=Severity.WARNING if is_same_major else Severity.ERROR,
    )


def _too_new(seen: SeenSetup, offered: CudaVersion) -> _Need | None:
    for cuda in seen.image_cuda:
        if not offered_cuda_can_run(offered, cuda.version):
            return _Need(text=f"{cuda.words} (CUDA {cuda.version})", fact=cuda.fact, cuda=cuda.version)
    return None
