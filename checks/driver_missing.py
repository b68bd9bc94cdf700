"""An NVIDIA GPU without an NVIDIA driver."""

from collections.abc import Iterator

from gpudoctor.model import Driver, DriverState, Finding, Fix, Place, Severity, System, TorchRuntime
from gpudoctor.registry import CUDA_FAILS, Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code
from gpudoctor.symptoms.answers import answers

NO_NVIDIA_SMI = "nvidia-smi-not-found"
# Symptoms that no machine without a driver prints.
ONLY_WITH_A_DRIVER = ("nvml-driver-not-loaded", "nvml-version-mismatch", "nvidia-smi-no-devices", "torch-no-gpus")


@check(
    family="driver",
    explains=(
        *(*CUDA_FAILS, "libcuda-not-on-linker-path", "driver-not-loaded", "cuda-visible-devices-hides-gpu"),
        *("nvidia-container-toolkit-missing", "container-engine-cannot-give-gpu"),
    ),
)
def driver_missing(
    place: Place,
    driver_state: DriverState,
    driver: Driver = Driver(),
    system: System = System(),
    torch_runtime: TorchRuntime = TorchRuntime(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """No NVIDIA driver is installed on a machine with an NVIDIA GPU.

    Why: PyTorch and CuPy install CUDA libraries, but never the driver. Without libcuda and its kernel module no CUDA
    call works ("Found no NVIDIA driver on your system").
    Exception: a machine without an NVIDIA GPU passes. In a container and in WSL the driver belongs to the host, and
    other checks cover it.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    skip_unless(not place.in_container, "a container uses the driver of its host")
    skip_unless(not of_kind(symptoms, "@no-driver-expected"), "no driver is expected here")
    skip_unless(not place.asks_for_gpu, "a container that asks for the GPU uses the driver of its host")
    skip_unless(not place.in_wsl, "WSL uses the Windows driver")
    skip_unless(not place.is_mac, "macOS has no NVIDIA GPUs")
    skip_unless(not system.amd_gfx_targets, "the GPU is an AMD GPU")
    skip_unless(not place.is_tegra, "a Jetson has its driver in its system")
    gpus = system.nvidia_gpus
    traces = (driver.installed, driver.version, driver.module_loaded, driver.libcuda_path, driver.library_version)
    if gpus == () or driver_state.works or any(traces) or of_kind(symptoms, *ONLY_WITH_A_DRIVER):
        return
    if answered := answers(symptoms, "driver-missing"):
        yield answered[0]
        return
    commands = of_kind(symptoms, NO_NVIDIA_SMI)
    said = driver_state.not_found or first(with_code(symptoms, "nvml-12"), commands)
    certain = driver.installed is False
    if said is None and not (certain and gpus):
        raise Skip("system.pci_gpus is unknown" if certain else "driver.installed is unknown")
    subject = gpus[0].label if gpus else "NVIDIA driver"
    summary = "No NVIDIA driver found on this machine: libcuda cannot be loaded"
    if gpus:
        seen = f"{subject} is on the PCI bus, but no NVIDIA driver is installed"
        summary = seen if gpus[0].address else f"No NVIDIA driver is installed for {subject}"
    elif said is not None and said.kind == NO_NVIDIA_SMI:
        summary = "The NVIDIA driver is probably not installed, because nvidia-smi, which is part of it, is missing"
    # What computes on the GPU has its driver, wherever nvidia-smi is.
    severity = Severity.INFO if torch_runtime.available else Severity.ERROR
    facts = ("driver.installed" if certain else "", "system.pci_gpus" if gpus else "", said.fact if said else "")
    cluster = Fix("ask-cluster-for-gpu") if of_kind(symptoms, "place-slurm", "place-cluster") and not gpus else None
    yield Finding.of(severity, subject, summary, facts, cluster, Fix("install-missing-driver"), no_usable_gpu=True)
