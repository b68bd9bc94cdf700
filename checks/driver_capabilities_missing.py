"""Which libraries of the driver a container was given."""

from collections.abc import Iterator

from gpudoctor.model import ContainerGpu, Driver, Environment, Finding, Fix, Place, Severity, System
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

VARIABLE = "NVIDIA_DRIVER_CAPABILITIES"
# Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
DEFAULT = "utility,compute"
FIXES = (Fix("start-container-with-capabilities", granted="compute,utility"),)


@check(
    family="container",
    explains=(
        *("torch-cuda-unavailable", "cupy-unusable", "driver-missing", "libcuda-not-on-linker-path"),
        *("container-without-gpu", "wsl-driver-problem"),
    ),
)
def driver_capabilities_missing(
    container_gpu: ContainerGpu,
    place: Place,
    system: System = System(),
    driver: Driver = Driver(),
    environment: Environment = Environment(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The container has the GPU, but not all driver libraries: compute or utility is missing.

    Why: NVIDIA_DRIVER_CAPABILITIES says which libraries the container runtime mounts: without "compute" there is no
    libcuda and CUDA fails although nvidia-smi works; without "utility" there is neither nvidia-smi nor NVML.
    Exception: unset means compute and utility. If everything works, as with CDI, which mounts every library, the check
    passes. container-setup-driver-capabilities-missing checks containers from outside.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """
    about_container = place.about_container or of_kind(symptoms, "place-docker", "place-kubernetes")
    video = answers(symptoms, "driver-capabilities-missing") if about_container else ()
    yield from video[:1]
    if video:
        return
    if container_gpu.smi_alone:
        summary = (
            "nvidia-smi works in the container and CUDA does not: the container has the GPU but not libcuda (compute)"
        )
        yield Finding.error("container", summary, container_gpu.smi_alone, *FIXES)
        return
    skip_unless(known(system.container, "system.container"), "this is not a container")
    skip_unless(not place.in_wsl, "WSL mounts every library of the driver")
    nodes = container_gpu.nodes
    if nodes == () and not container_gpu.present:
        return
    value = environment.get(VARIABLE)
    cuda_works = driver.cuda_init_code == 0 or bool(driver.libcuda_path)
    left_out = not {"compute", "all"}.intersection(name.strip() for name in (value or DEFAULT).lower().split(","))
    no_compute = container_gpu.no_libcuda or (f"environment.{VARIABLE}" if left_out and not cuda_works else "")
    no_utility = container_gpu.no_nvml if nodes else ""
    if not (no_compute or no_utility):
        if driver.libcuda_path is None and driver.cuda_init_code is None and value is None:
            raise Skip("driver.libcuda_path is unknown")
        return
    fact = no_compute or no_utility
    severity = Severity.ERROR if no_compute else Severity.WARNING
    summary = (
        f"The container has the GPU but not "
        f"{'libcuda (compute)' if no_compute else 'NVML and nvidia-smi (utility)'}: "
        f"{f'{VARIABLE}={value}' if value else f'{VARIABLE} is unset'}"
    )
    facts = (
        fact,
        f"environment.{VARIABLE}" if value and not fact.startswith("environment") else "",
        "driver.device_files" if nodes else "",
    )
    yield Finding.of(severity, f"{system.container} container", summary, facts, *FIXES)
