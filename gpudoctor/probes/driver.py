"""The driver, put together from everything that tells of it."""

from __future__ import annotations

from dataclasses import replace

from gpudoctor.model import Driver
from gpudoctor.probes.parts import first_known


def merge_driver(*parts: Driver) -> Driver:
    """Return the driver whose facts are those of the first part that knows them.

    Its version is NVML's, else that of the loaded kernel module. It is installed where any part proves it.
    """
    driver = first_known(*parts)
    driver = replace(driver, version=driver.version or driver.module_version)
    proofs = [part.installed for part in parts]
    proven = True in proofs or driver.version is not None or driver.module_loaded or driver.nvml_code == 0
    return replace(driver, installed=True) if proven else driver
