"""Facts that follow from other facts of a pasted report but are in none of its texts."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.packages import cuda_major
from gpudoctor.model import Cupy, Device, Driver, Package, ProbeReport, Snapshot, System, Torch
from gpudoctor.model.versions import CudaVersion, PackageVersion

SOURCE = "concluded from the report"
# With these words in a message, a GPU that the report names may not answer.
_NOT_ANSWERING = (
    r"(?i)no nvidia driver|nvml|nvidia-smi has failed|no cuda-capable|no cuda gpus|driver was not detected|libcuda\.so"
    r"|no devices were found|unknown error|could not select device|driver is insufficient|gpu access blocked"
)
# "torch==1.13.1", "torch===1.3.0" in commands for Windows; and the index of one variant: "cu118", "nightly/cpu".
_PINNED = r"(?:^|\s)torch={2,3}(\d\.\d{1,2}\.\d)(?![\w.+])"
_VARIANT = r"(?:^|/)(?:cu\d|cpu|rocm|xpu)"


def with_inferred(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a pasted report, completed with inferred facts.

    On a live machine the probes read them, and nothing is inferred.
    """
    if snapshot.contradictions is None:
        return snapshot
    shown = _with_local_version(snapshot)
    found = {
        "torch": _torch(shown),
        "driver": _driver(shown.driver),
        "system": _system(shown.system),
        "cupy": _cupy(shown.cupy),
        "devices": _named_devices(shown) or None,
    }
    sections = {name: _joined(getattr(shown, name), value) for name, value in found.items() if value is not None}
    devices = sections.get("devices", shown.devices)
    if devices:
        sections["devices"] = tuple(map(_device, devices))
    reports = (_report(name, getattr(snapshot, name), value) for name, value in found.items() if value is not None)
    known = tuple(report for report in snapshot.reports if not (report.section in found and _is_missing(report, found)))
    return replace(shown, **sections, reports=(*known, *(report for report in reports if report is not None)))


def _joined(shown: Any, found: Any) -> Any:
    """Return the section completed with inferred fields."""
    if shown is None or isinstance(shown, tuple):
        return found
    return replace(shown, **_added(shown, found))


def _added(shown: Any, found: Any) -> dict[str, Any]:
    """Return the fields that are only inferred."""
    inferred = {field.name: getattr(found, field.name) for field in fields(found)}
    return {name: value for name, value in inferred.items() if value is not None and getattr(shown, name) is None}


def _is_missing(report: ProbeReport, found: Mapping[str, Any]) -> bool:
    return report.state == "not-run" and found[report.section] is not None


def _report(section: str, shown: Any, found: Any) -> ProbeReport | None:
    """Return which facts of the section were inferred; None if the report shows all of them."""
    given: tuple[str, ...] = ()
    if shown is not None and not isinstance(found, tuple):
        given = tuple(_added(shown, found))
    if shown is not None and not given:
        return None
    return ProbeReport(section=section, state="ok", source=SOURCE, facts=given)


def _with_local_version(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the long PyTorch version: a list shows "2.1.1", PyTorch "2.1.1+cu118"."""
    torch = snapshot.torch
    version = torch.version if torch is not None else None
    if torch is None or version is None or version.local:
        return snapshot
    longer = next((other for other in _versions(snapshot) if other.local and other.public == version.public), None)
    return snapshot if longer is None else replace(snapshot, torch=replace(torch, version=longer))


def _versions(snapshot: Snapshot) -> list[PackageVersion]:
    """Return the PyTorch versions in the other sections."""
    runtime, python = snapshot.torch_runtime, snapshot.python
    packages: tuple[Package, ...] = (python.packages if python is not None else None) or ()
    listed = [item.version for item in packages if item.name == "torch"]
    return listed + ([runtime.version] if runtime is not None and runtime.version is not None else [])


def _torch(snapshot: Snapshot) -> Torch | None:
    """Return the facts in PyTorch's version: it is installed, and the local part ("cpu", "cu118") names its build."""
    torch, runtime = snapshot.torch, snapshot.torch_runtime
    version = (torch.version if torch is not None else None) or (runtime.version if runtime is not None else None)
    if torch is not None and torch.installed is False:
        return None
    if version is None and runtime is not None and runtime.available is not None:
        version = _pinned(snapshot)
    if version is None:
        build = (torch.build if torch is not None else None) or _build(snapshot, None)
        return Torch(installed=True, build=build) if build else None
    local = re.match(r"(cpu|cu|rocm|xpu)(\d{2,3}(?!\d))?", version.local)
    digits = local[2] if local and local[1] == "cu" else None
    cuda = CudaVersion(int(digits[:-1]), int(digits[-1])) if digits else None
    hip = re.match(r"rocm(\d[\d.]*)", version.local)
    return Torch(
        installed=True,
        version=version,
        build=_build(snapshot, local[1] if local else None),
        cuda_version=cuda or (runtime.cuda_version if runtime is not None else None),
        hip_version=hip[1] if hip else None,
    )


def _pinned(snapshot: Snapshot) -> PackageVersion | None:
    """Return the PyTorch version that a pip command names without a variant, before a session imports it."""
    symptoms = snapshot.symptoms or ()
    kinds = {symptom.kind for symptom in symptoms}
    variants = [symptom.names.get("variant", "") for symptom in symptoms if symptom.kind == "pip-index"]
    if kinds & {"pip-no-version", "pip-no-match"} or any(re.search(_VARIANT, variant) for variant in variants):
        return None
    commands = [symptom.names.get("arguments", "") for symptom in symptoms if symptom.kind == "pip-install-command"]
    found = [match[1] for command in commands if (match := re.search(_PINNED, command))]
    return PackageVersion(found[-1]) if found and len(set(found)) == 1 else None


def _build(snapshot: Snapshot, local: str | None) -> str | None:
    """Return the build kind from the version's local part, the CUDA or ROCm version, or the machine code."""
    if local is not None:
        return "cuda" if local == "cu" else local
    sections = [section for section in (snapshot.torch, snapshot.torch_runtime) if section is not None]
    code = [name for section in sections for name in section.architectures or ()]
    if any(section.cuda_version is not None for section in sections) or any(name.startswith("sm_") for name in code):
        return "cuda"
    if _has_cuda_wheels(snapshot):
        return "cuda"
    hip = any(section.hip_version for section in sections) or any(name.startswith("gfx") for name in code)
    return "rocm" if hip else None


def _has_cuda_wheels(snapshot: Snapshot) -> bool:
    """Return whether a list has the requirements of PyPI's CUDA build, and no other package needs them."""
    packages = (snapshot.python.packages if snapshot.python is not None else None) or ()
    names = {package.name for package in packages}
    others = any(name.startswith(("tensorflow", "jax", "cupy")) for name in names)
    return not others and {"torch", "triton"} <= names and any(name.startswith("nvidia-cudnn") for name in names)


def _driver(driver: Driver | None) -> Driver | None:
    """Return that a driver is installed if its version is known or it is loaded."""
    if driver is None or driver.installed is not None or not (driver.version is not None or driver.module_loaded):
        return None
    return Driver(installed=True)


def _system(system: System | None) -> System | None:
    """Return the operating system of a distribution, a kernel or WSL."""
    if system is None:
        return None
    linux = system.distribution or system.wsl or system.glibc or system.container
    wsl = 0 if system.wsl is None and system.kernel and "microsoft" not in system.kernel.lower() else None
    found = System(os="linux" if linux and system.os is None else None, wsl=wsl if system.os == "linux" else None)
    return found if found != System() else None


def _cupy(cupy: Cupy | None) -> Cupy | None:
    """Return the facts in the name of the only CuPy distribution."""
    names = {item.name for item in cupy.distributions or ()} if cupy is not None else set()
    major = cuda_major(names.pop()) if len(names) == 1 else None
    return Cupy(platform="cuda", cuda_major=major) if major is not None else None


def _named_devices(snapshot: Snapshot) -> tuple[Device, ...]:
    """Return the NVIDIA GPUs that the report names as devices, unless it says that they do not answer.

    Without the driver's list, a GPU's capability is known only from its name.
    """
    system = snapshot.system
    gpus = [
        gpu for gpu in (system.pci_gpus if system is not None else None) or () if gpu.vendor == "nvidia" and gpu.name
    ]
    if (
        snapshot.devices is not None
        or not gpus
        or any(gpu.bound_driver not in ("", "nvidia") for gpu in gpus)
        or _is_silent(snapshot)
    ):
        return ()
    return tuple(Device(nvml_index=index, name=gpu.name) for index, gpu in enumerate(gpus))


def _is_silent(snapshot: Snapshot) -> bool:
    """Return whether there is evidence that the driver or PyTorch does not reach the GPU."""
    driver, runtime = snapshot.driver, snapshot.torch_runtime
    if driver is not None:
        absent = driver.installed is False or driver.module_loaded is False or driver.nouveau_loaded
        if absent or driver.nvml_error or driver.nvml_code or driver.cuda_init_code or driver.libcuda_error:
            return True
    if runtime is not None and (runtime.available is False or runtime.device_count == 0):
        return True
    return any(re.search(_NOT_ANSWERING, symptom.text) for symptom in snapshot.symptoms or ())


def _device(device: Device) -> Device:
    """Return the device with its compute capability from the product name."""
    if device.compute_capability is not None:
        return device
    return replace(device, compute_capability=capability_of(device.name, device.pci_device_id))
