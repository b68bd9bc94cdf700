"""What a CUDA image requires of its host's driver."""

from collections.abc import Iterator

from gpudoctor.data.drivers import driver_for, offered_cuda_can_run, supported_cuda
from gpudoctor.model import CudaVersion, Driver, DriverVersion, Environment, Finding, Fix, Place, Pytorch, Severity
from gpudoctor.model.container_conclusions import ContainerGpu
from gpudoctor.model.gpu_conclusions import DriverCondition, condition_of_cuda_version
from gpudoctor.model.record import record
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind, with_code

VARIABLE = "NVIDIA_REQUIRE_CUDA"
VERSION = "CUDA_VERSION"


@check(
    family="container",
    explains=("driver-too-old", "torch-cuda-unavailable", "cupy-unusable", "cuda-libs-conflict", "runs-on-cpu"),
)
def container_image_needs_newer_driver(
    container_gpu: ContainerGpu,
    place: Place,
    pytorch: Pytorch,
    environment: Environment | None = None,
    driver: Driver = Driver(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The container's image requires a newer driver than its host has.

    Why: CUDA images name the driver they need in NVIDIA_REQUIRE_CUDA. The NVIDIA runtime refuses to start them with an
    older driver ("unsatisfied condition: cuda>=12.6"). If the condition is disabled, or CDI starts the container, CUDA
    fails inside or lacks features.
    Exception: the condition is met if one of its alternatives is. Within one CUDA major version most programs run by
    minor-version compatibility, so that is a warning. The GPU brand is not compared. If PyTorch computes on the GPU, by
    forward compatibility for example, this is advice; error 804 says that this GPU does not support that.
    container-setup-image-needs-newer-driver checks containers from outside.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    image = f"The image {container_gpu.image}" if container_gpu.image else "The image"
    refusal = _refusal(image, driver, symptoms, about_container=place.about_container)
    if refusal is not None:
        yield Finding.of(
            Severity.INFO if pytorch.available else Severity.ERROR,
            "container image",
            refusal.summary,
            (refusal.fact, "driver.version"),
            Fix("update-driver", needed=refusal.needs),
            Fix("use-older-image", at_most=driver.cuda_version),
        )
        return
    environment = known(environment, "environment")
    variable = VERSION if place.in_container and not environment.get(VARIABLE) else VARIABLE
    text = environment.get(variable)
    condition = DriverCondition(text=condition_of_cuda_version(text) if variable == VERSION else text or "")
    skip_unless(condition.text, f"{VARIABLE} is not set")
    offered = driver.cuda_version
    if offered is None:
        offered = known(supported_cuda(known(driver.version, "driver.version")), "driver.cuda_version")
    if condition.is_met(offered, driver.version):
        return
    is_same_major = condition.cuda is not None and offered_cuda_can_run(offered, condition.cuda)
    yield Finding.of(
        Severity.INFO if pytorch.available else Severity.WARNING if is_same_major else Severity.ERROR,
        "container image",
        f"The image requires {condition.label}, but the driver{f' {driver.version}' if driver.version else ''} of "
        f"the host supports CUDA {offered}",
        (f"environment.{variable}", "driver.cuda_version", "driver.version"),
        Fix("use-older-image", at_most=offered),
        Fix("update-driver", needed=_driver_of(condition.cuda)),
    )


@record
class _Refusal:
    """What a container runtime, the image's own banner or CUDA says, and the driver that it asks for."""

    summary: str
    fact: str
    needs: CudaVersion | DriverVersion | None = None


def _refusal(image: str, driver: Driver, symptoms: Symptoms, *, about_container: bool) -> _Refusal | None:
    host = f": the host's driver is {driver.version}" if driver.version is not None else ""
    for banner in of_kind(symptoms, "container-ngc-needs-driver"):
        release = banner.names["release"]
        summary = f"{image} needs driver {release}{host.replace(':', ',', 1)}"
        return _Refusal(summary=summary, fact=banner.fact, needs=DriverVersion.parse(release))
    unmet = of_kind(symptoms, "container-requirement-unmet")
    for symptom in unmet:
        condition = DriverCondition(text="".join(symptom.names.get("condition", "").split()))
        if condition.text and not condition.text.startswith("arch"):
            return _Refusal(
                summary=f"{image} requires {condition.text}, which is not met{host or ' by the host'}",
                fact=symptom.fact,
                needs=_driver_of(condition.cuda) or condition.driver,
            )
    for symptom in unmet:
        if "condition" not in symptom.names:  # it may be cut off
            return _Refusal(summary=f"{image} requires a newer driver than its host has{host}", fact=symptom.fact)
    for error in with_code(symptoms, "cuda-804") if about_container else ():
        version = f" {driver.version}" if driver.version is not None else ""
        return _Refusal(
            summary=f"{image} is for a newer CUDA than the host's driver{version} supports, and this GPU has no "
            "forward compatibility (error 804)",
            fact=error.fact,
        )
    return None


def _driver_of(cuda: CudaVersion | None) -> CudaVersion | DriverVersion | None:
    """Return the driver that offers `cuda`: the condition compares with that, minor-version compatibility or not."""
    return (driver_for(cuda) if cuda is not None else None) or cuda
