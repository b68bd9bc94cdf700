"""The GPU that counts."""

from __future__ import annotations

from gpudoctor.conclusions.installed import Machine
from gpudoctor.model import Device, Driver, System
from gpudoctor.model.conclusions import Gpu


def gpu(devices: tuple[Device, ...] | None, driver: Driver | None, system: System | None) -> Gpu:
    """Return the NVIDIA GPU that programs here are meant to use.

    The PCI bus shows more: GPUs passed to a virtual machine, and those of the host that a container did not get.
    """
    machine = Machine(system=system, driver=driver, devices=devices)
    name = machine.gpu()
    return Gpu(name=name, fact=machine.gpu_fact() if name else "")
