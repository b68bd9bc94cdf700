"""Facts of a pasted report that cannot be of one machine at one time."""

from collections.abc import Iterator

from gpudoctor.data.drivers import first_driver
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import Contradiction, Device, Devices, Driver, Finding, Fix, Place
from gpudoctor.registry import check, skip_unless

# Where WSL and a container are concerned a report often shows both sides, each with a system and a Python of its own.
OF_TWO_SIDES = ("system.", "python.")
MACHINES = "devices"  # the fact of a contradiction between texts that name different GPUs
WORDS = {
    "system.os": "the operating system",
    "system.machine": "the architecture",
    "toolkit.nvcc_version": "nvcc",
    "system.distribution": "the distribution",
    "system.distribution_version": "the distribution version",
    "driver.version": "the driver version",
    "driver.cuda_version": "the CUDA version that the driver supports",
    "python.version": "the Python version",
    "torch.version": "the PyTorch version",
    "torch.build": "the PyTorch build",
    "torch.cuda_version": "the PyTorch CUDA version",
    "cupy.version": "the CuPy version",
}


@check(family="tool")
def contradictory_report(
    place: Place, contradictions: tuple[Contradiction, ...], devices: Devices = None, driver: Driver = Driver()
) -> Iterator[Finding]:
    """The report contradicts itself: two values for one fact, or facts of different machines.

    Why: a report assembled from two machines or environments, or from before and after a change, leads to the wrong
    cause. gpudoctor uses the value from the more reliable text, and names the other one here.
    Exception: the system and Python of a container or of WSL may differ from those of the host: both belong to one
    machine.
    Reference: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
    """
    old = tuple(_drivers_too_old(devices or (), driver))
    skip_unless(contradictions or old or devices, "the report shows each fact once")
    two_sides = place.in_wsl or place.in_container
    for number, found in enumerate(contradictions):
        fact, name = (
            (f"contradictions[{number}].taken", f"contradictions[{number}].other"),
            WORDS.get(found.fact, "a GPU"),
        )
        if found.fact == MACHINES:
            summary = f"The texts are probably from different machines: one names {found.taken}, another {found.other}"
            yield Finding.warning("the texts", summary, fact, Fix("report-again"))
        elif not (two_sides and found.fact.startswith(OF_TWO_SIDES)):
            summary = f"The report gives two values for {name}: {found.taken} (used here) and {found.other}"
            yield Finding.advice(name, summary, fact, Fix("report-again"))
    yield from old


def _drivers_too_old(devices: tuple[Device, ...], driver: Driver) -> Iterator[Finding]:
    if driver.version is None:
        return
    for number, device in enumerate(devices):
        known = device_capability(device)
        first = first_driver(known) if known is not None else None
        if first is not None and driver.version.parts[0] < first.parts[0]:
            summary = (
                f"{device.label} has compute capability {known}, which needs driver {first.branch} or newer, "
                f"but the report shows driver {driver.version}"
            )
            facts = ("driver.version", f"devices[{number}].nvml_index")
            yield Finding.advice(device.label, summary, facts, Fix("report-again"))
            return
