"""The driver, put together from everything that tells of it."""

from __future__ import annotations

from dataclasses import fields

from gpudoctor.model import Driver


def merge_driver(*parts: Driver) -> Driver:
    """Return the driver whose facts are those of the first part that knows them.

    Its version is NVML's, else that of the kernel module. A driver that answers, or that is loaded, is installed.
    """
    known = {}
    for item in fields(Driver):
        values = (getattr(part, item.name) for part in parts)
        known[item.name] = next((value for value in values if value is not None), None)
    known["version"] = known["version"] or known["module_version"]
    if known["version"] is not None or known["cuda_init_code"] == 0 or known["module_loaded"]:
        known["installed"] = True
    return Driver(**known)
