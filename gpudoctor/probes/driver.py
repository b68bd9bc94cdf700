"""The driver, put together from everything that tells of it."""

from __future__ import annotations

from dataclasses import fields

from gpudoctor.model import Driver


def merge_driver(*parts: Driver) -> Driver:
    """Return the driver whose facts are those of the first part that knows them.

    Its version is NVML's, else that of the loaded kernel module. It is installed where any part proves it.
    """
    known = {
        item.name: next((value for value in (getattr(part, item.name) for part in parts) if value is not None), None)
        for item in fields(Driver)
    }
    known["version"] = known["version"] or known["module_version"]
    proofs = [part.installed for part in parts]
    if True in proofs or known["version"] is not None or known["module_loaded"] or known["nvml_code"] == 0:
        known["installed"] = True
    return Driver(**known)
