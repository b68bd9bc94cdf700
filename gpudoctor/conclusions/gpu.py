"""The relevant NVIDIA GPU, and the known compute capabilities."""

from collections.abc import Iterator

from gpudoctor.conclusions.driver_state import driver_works
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import Devices, Driver, Gpu, KnownGpu, PciGpu, System


def gpu(devices: Devices, driver: Driver, system: System) -> Gpu:
    """Return the NVIDIA GPU that programs here are meant to use.

    The PCI bus also shows GPUs that were passed to a virtual machine, and host GPUs outside this container.
    """
    present = _present(devices, driver, system)
    name = "" if _is_of_others(devices, driver, system) else present
    return Gpu(name=name, fact=_fact(devices, system) if name else "", present=present, known=tuple(_known(devices)))


def _is_of_others(devices: Devices, driver: Driver, system: System) -> bool:
    """Return whether the GPUs on the bus belong to a virtual machine, or to the host of this container."""
    gpus = _on_bus(system)
    if not gpus or devices or driver_works(driver):
        return False
    return all(gpu.bound_driver == "vfio-pci" for gpu in gpus) or bool(system and system.container)


def _on_bus(system: System) -> tuple[PciGpu, ...] | None:
    return system.nvidia_gpus


def _present(devices: Devices, driver: Driver, system: System) -> str | None:
    """Return the name of an NVIDIA GPU of this machine, "" without a GPU, None if unknown."""
    on_bus = _on_bus(system)
    if devices:  # NVML cannot name a GPU that does not answer
        alone = on_bus is not None and len(on_bus) == len(devices) == 1
        return devices[0].name or (on_bus[0].label if on_bus and alone else "an NVIDIA GPU")
    if on_bus:
        return on_bus[0].label
    if driver.cuda_device_count:
        return "a CUDA device"
    return None if devices is None and on_bus is None else ""


def _fact(devices: Devices, system: System) -> str:
    if devices:
        return "devices[0].nvml_index" if devices[0].name is None else "devices[0].name"
    return "system.pci_gpus" if _on_bus(system) else "driver.cuda_device_count"


def _known(devices: Devices) -> Iterator[KnownGpu]:
    for number, device in enumerate(devices or ()):
        capability = device.compute_capability or capability_of(device.name, device.pci_device_id)
        if capability is not None:
            fact = "name" if device.compute_capability is None and device.name else "compute_capability"
            name = device.name or f"GPU {device.nvml_index}"
            yield KnownGpu(name=name, capability=capability, fact=f"devices[{number}].{fact}")
