"""The driver against the CUDA version that each installed library was built with."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpudoctor.conclusions.error_codes import UNSUPPORTED_PTX, cuda_error, in_container, too_old_reported
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import (
    driver_can_run,
    last_driver_branch,
    minimum_driver,
    offered_cuda_can_run,
    old_torch_cuda,
    runs_on,
    supported_cuda,
    torch_builds,
)
from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Finding,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_cupy, install_torch, update_driver

# The driver of CUDA 10.0, the oldest of the table of toolkits.
OLDEST_IN_TABLE = DriverVersion((410, 48))
OLD_INDEX = "https://download.pytorch.org/whl/torch_stable.html"
# Source: the index named, and https://github.com/pytorch/pytorch/issues/37113.
OLD_BUILDS = Remedy(
    summary="Or, on Python 3.8 and older, keep the driver and take an old build for CUDA 9.2 (cu92)",
    commands=(
        f"python -m pip install torch==1.4.0+cu92 torchvision==0.5.0+cu92 -f {OLD_INDEX}",
        'python -c "import torch; print(torch.version.cuda, torch.cuda.is_available())"',
    ),
)


class _Consumer(NamedTuple):
    """A library that needs a driver for `cuda`, the fact that says so, and whether it is known to work."""

    name: str
    text: str
    cuda: CudaVersion
    fact: str
    works: bool


@record
class _Machine:
    """What remedies depend on."""

    system: System | None
    driver: Driver | None
    devices: tuple[Device, ...] | None
    python: Python | None
    torch: Torch | None
    cupy: Cupy | None


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "cupy-wrong-cuda-package",
        "cuda-init-unknown-error-999",
    ),
)
def driver_too_old(
    driver: Driver | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    cupy_runtime: CupyRuntime | None = None,
    toolkit: Toolkit | None = None,
    devices: tuple[Device, ...] | None = None,
    system: System | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The driver is too old for the CUDA version that an installed library was built with.

    Why: the first CUDA call fails: "CUDA driver version is insufficient for CUDA runtime version".
    Exception: from CUDA 11 on a driver runs every build of its own CUDA major version (minor-version compatibility), so
    a cu128 build passes on a driver of the R535 branch although nvidia-smi shows CUDA 12.2; only PTX newer than the
    driver is not compiled there. Where only CuPy's package is for a newer driver, the package is what is wrong:
    cupy-wrong-cuda-package tells of it. A build that works, as with the package cuda-compat, passes. A toolkit whose
    nvcc is newer than the driver is advice, for libraries bring their own CUDA runtime.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    skip_unless(driver is None or driver.installed is not False, "no driver is installed")
    machine = _Machine(system=system, driver=driver, devices=devices, python=python, torch=torch, cupy=cupy)
    consumers = tuple(_consumers(torch, torch_runtime, cupy, cupy_runtime, system))
    said = too_old_reported(torch_runtime, cupy_runtime, symptoms)
    advice = tuple(_toolkit_finding(machine, toolkit))
    refused = [consumer for consumer in consumers if not consumer.works and _can_run(machine, consumer.cuda) is False]
    if [consumer.name for consumer in refused] == ["cupy"] and cupy is not None and cupy.cuda_major is not None:
        skip_unless(advice, "only CuPy's package asks for a newer driver: cupy-wrong-cuda-package tells")
    elif refused:
        yield _finding(refused, machine, said[0] if said else None)
    elif said and _loadable(driver):
        yield _reported_finding(said, consumers, machine, toolkit, symptoms)
    else:
        ptx = (*_newer_ptx(machine, torch_runtime, cupy_runtime, symptoms), *_older_than_ptxas(machine, symptoms))
        if not ptx and not advice:
            _skip_unknown(machine, consumers)
        yield from ptx
    yield from advice


def _skip_unknown(machine: _Machine, consumers: tuple[_Consumer, ...]) -> None:
    """Skip the check where nothing could be compared.

    Raises:
        Skip: no library asks for a CUDA version, or what the driver runs is unknown.
    """
    skip_unless(consumers, "no library with a known CUDA version is installed")
    if any(consumer.works or _can_run(machine, consumer.cuda) for consumer in consumers):
        return
    driver = known(machine.driver, "driver")
    raise Skip(f"what driver {known(driver.version, 'driver.version')} runs is not in the tables")


def _consumers(
    torch: Torch | None,
    torch_runtime: TorchRuntime | None,
    cupy: Cupy | None,
    cupy_runtime: CupyRuntime | None,
    system: System | None,
) -> Iterator[_Consumer]:
    """Yield the libraries that need the driver."""
    built_with = _torch_cuda(torch, torch_runtime, system)
    if built_with is not None:
        works = torch_runtime is not None and bool(torch_runtime.available)
        yield _Consumer("torch", f"PyTorch was built with CUDA {built_with[0]}", *built_with, works)
    works = cupy_runtime is not None and bool(cupy_runtime.device_count)
    if cupy_runtime is not None and cupy_runtime.runtime_cuda_version is not None:
        cuda = cupy_runtime.runtime_cuda_version
        yield _Consumer("cupy", f"CuPy uses CUDA {cuda}", cuda, "cupy_runtime.runtime_cuda_version", works)
    elif cupy is not None and cupy.cuda_major is not None:
        # The wheel runs on every driver of its major version: compare with the first release of that.
        cuda = CudaVersion(cupy.cuda_major, 0)
        yield _Consumer("cupy", f"CuPy is built for CUDA {cupy.cuda_major}", cuda, "cupy.cuda_major", works)


def _torch_cuda(
    torch: Torch | None, torch_runtime: TorchRuntime | None, system: System | None
) -> tuple[CudaVersion, str] | None:
    """Return the CUDA version that PyTorch was built with, and the fact that tells it."""
    if torch is not None and torch.cuda_version is not None:
        return torch.cuda_version, "torch.cuda_version"
    if torch_runtime is not None and torch_runtime.cuda_version is not None:
        return torch_runtime.cuda_version, "torch_runtime.cuda_version"
    if torch is None or torch.version is None or torch.build not in (None, "cuda") or torch.version.local:
        return None
    if torch_runtime is None or torch_runtime.available is not False:
        return None
    if system is not None and system.os not in (None, "linux"):
        return None
    # A version alone, as in a pasted "pip list": what the default index serves under it.
    release = torch.version.minor_release
    defaults = [build.cuda for build in torch_builds(release) if build.pypi_default]
    cuda = defaults[0] if defaults else old_torch_cuda(release)
    return (cuda, "torch.version") if cuda is not None else None


def _can_run(machine: _Machine, cuda: CudaVersion) -> bool | None:
    """Return whether the driver runs programs built with `cuda`; None where that is not known.

    What libcuda offers counts besides the driver's own version: with the package cuda-compat it offers more.
    """
    driver, system = machine.driver, machine.system
    if driver is None:
        return None
    os = "windows" if system is not None and (system.os == "windows" or system.wsl) else "linux"
    by_version = driver_can_run(driver.version, cuda, os) if driver.version is not None else None
    if by_version or driver.cuda_version is None:
        return by_version
    return offered_cuda_can_run(driver.cuda_version, cuda)


def _loadable(driver: Driver | None) -> bool:
    """Return whether libcuda may be there: without it the same error means that there is no driver."""
    return driver is None or driver.libcuda_path != ""


def _driver_text(driver: Driver | None, found: CudaVersion | None = None) -> str:
    version = f" {driver.version}" if driver is not None and driver.version else ""
    offered = found or (driver.cuda_version if driver is not None else None)
    if offered is None and driver is not None and driver.version is not None:
        offered = supported_cuda(driver.version)
    return f"driver{version} supports CUDA {offered}" if offered else f"driver{version} is too old for that"


def _finding(refused: list[_Consumer], machine: _Machine, reported: str | None) -> Finding:
    driver = machine.driver
    newest = max(refused, key=lambda consumer: consumer.cuda)
    return Finding(
        severity=Severity.ERROR,
        summary=f"{' and '.join(consumer.text for consumer in refused)}, the {_driver_text(driver)}",
        subject=_subject(driver),
        facts=(
            *(consumer.fact for consumer in refused),
            *_driver_facts(driver),
            *((reported,) if reported else ()),
        ),
        remedies=_remedies(machine, newest.cuda, {consumer.name for consumer in refused}),
    )


def _reported_finding(
    said: tuple[str, CudaVersion | None],
    consumers: tuple[_Consumer, ...],
    machine: _Machine,
    toolkit: Toolkit | None,
    symptoms: tuple[Symptom, ...] | None,
) -> Finding:
    """Return the finding where a library says that the driver is too old, and the versions known do not."""
    fact, found = said
    needed: CudaVersion | DriverVersion | None = max((consumer.cuda for consumer in consumers), default=None)
    if needed is None and found is not None:
        needed = CudaVersion(max(found.major + 1, 11), 0)
    if needed is None and toolkit is not None and toolkit.nvcc_version is not None:
        # A program that somebody compiled.
        needed = toolkit.nvcc_version if _can_run(machine, toolkit.nvcc_version) is not True else None
    for named in (m.names["driver"] for _, m in reported(symptoms, "nvenc-driver-too-old") if "driver" in m.names):
        needed = needed or DriverVersion.parse(named)
    library = "CuPy" if fact.startswith("cupy") else "PyTorch" if fact.startswith("torch") else "A program"
    built_with = consumers[0].text if consumers else f"{library} was built with a newer CUDA version"
    libraries = {"CuPy": {"cupy"}, "PyTorch": {"torch"}}.get(library, {consumer.name for consumer in consumers})
    return Finding(
        severity=Severity.ERROR,
        summary=f"{built_with}, the {_driver_text(machine.driver, found)}",
        subject=_subject(machine.driver),
        facts=(fact, *(consumer.fact for consumer in consumers[:1]), *_driver_facts(machine.driver)),
        remedies=_remedies(machine, needed, libraries, found),
    )


def _subject(driver: Driver | None) -> str:
    return f"driver {driver.version}" if driver is not None and driver.version else "NVIDIA driver"


def _driver_facts(driver: Driver | None) -> tuple[str, ...]:
    names = ("version", "cuda_version") if driver is not None else ()
    return tuple(f"driver.{name}" for name in names if getattr(driver, name) is not None)


def _newer_ptx(
    machine: _Machine,
    torch_runtime: TorchRuntime | None,
    cupy_runtime: CupyRuntime | None,
    symptoms: tuple[Symptom, ...] | None,
) -> Iterator[Finding]:
    """Yield a finding where a device needs PTX newer than the driver: minor-version compatibility ends there."""
    driver, torch = machine.driver, machine.torch
    said = cuda_error(UNSUPPORTED_PTX, driver, torch_runtime, cupy_runtime, symptoms)
    architectures = torch.architectures or () if torch is not None else ()
    compiled = [name for name in architectures if name.startswith("sm_")]
    offered = driver.cuda_version if driver is not None else None
    if offered is None and driver is not None and driver.version is not None:
        offered = supported_cuda(driver.version)
    cuda = torch.cuda_version if torch is not None else None
    for number, device in enumerate(machine.devices or ()):
        capability = device.compute_capability
        if said or capability is None or offered is None or cuda is None or cuda <= offered:
            continue
        if runs_on(architectures, capability) and not runs_on(compiled, capability):
            yield Finding(
                severity=Severity.ERROR,
                summary=f"PyTorch has only PTX of CUDA {cuda} for {device.name or 'the device'} ({capability.sm}), "
                f"the {_driver_text(driver)}",
                subject=_subject(driver),
                facts=("torch.architectures", "torch.cuda_version", f"devices[{number}].compute_capability"),
                remedies=_remedies(machine, cuda, {"torch"}),
            )
            return
    if said:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"PTX of a newer CUDA toolkit than the driver knows was to be compiled, the {_driver_text(driver)}",
            subject=_subject(driver),
            facts=(said, *_driver_facts(driver)),
            remedies=_remedies(machine, cuda, {"cupy" if said.startswith("cupy") else "torch"}),
        )


def _older_than_ptxas(machine: _Machine, symptoms: tuple[Symptom, ...] | None) -> Iterator[Finding]:
    """Yield a warning where XLA compiles one after the other, because ptxas is newer than the driver."""
    for fact, message in reported(symptoms, "xla-driver-older-than-ptxas")[:1]:
        ptxas = f" of CUDA {message.names['ptxas']}" if "ptxas" in message.names else ""
        yield Finding(
            severity=Severity.WARNING,
            summary=f"XLA does not compile in parallel: ptxas{ptxas} is newer than the driver, which supports CUDA "
            f"{message.names.get('cuda', '')}",
            subject=_subject(machine.driver),
            facts=(fact, *_driver_facts(machine.driver)),
            remedies=(
                update_driver(system=machine.system, needed=None, devices=machine.devices, driver=machine.driver),
            ),
        )


def _toolkit_finding(machine: _Machine, toolkit: Toolkit | None) -> Iterator[Finding]:
    """Yield advice where programs compiled with the toolkit found would not run."""
    nvcc = toolkit.nvcc_version if toolkit is not None else None
    if nvcc is not None and _can_run(machine, nvcc) is False:
        yield Finding(
            severity=Severity.INFO,
            summary=f"Programs compiled with nvcc of CUDA {nvcc} do not run here: the {_driver_text(machine.driver)}",
            subject="CUDA toolkit",
            facts=("toolkit.nvcc_version", *_driver_facts(machine.driver)),
        )


def _remedies(
    machine: _Machine,
    needed: CudaVersion | DriverVersion | None,
    libraries: set[str],
    found: CudaVersion | None = None,
) -> tuple[Remedy, ...]:
    """Return the remedies, best first: the driver where its owner is here and may update it, else the library."""
    driver = machine.driver
    if found is not None and (driver is None or driver.version is None):
        driver = Driver(cuda_version=found)
    update = update_driver(system=machine.system, needed=needed, devices=machine.devices, driver=driver)
    if needed is None:
        floors = ", ".join(f"CUDA {major} {minimum_driver(CudaVersion(major, 0))}" for major in (13, 12, 11))
        update = replace(update, summary=f"{update.summary}; of drivers for Linux needs {floors} or newer")
    installs: list[Remedy] = []
    if "torch" in libraries:
        installs.append(
            install_torch(
                python=machine.python,
                system=machine.system,
                driver=driver,
                devices=machine.devices,
                torch=machine.torch,
            )
        )
    if "cupy" in libraries:
        installs.append(
            install_cupy(
                python=machine.python, system=machine.system, driver=driver, devices=machine.devices, cupy=machine.cupy
            )
        )
    if "torch" in libraries and _is_old(driver):
        installs.append(OLD_BUILDS)
    installs.sort(key=lambda remedy: not remedy.commands)
    if any(remedy.commands for remedy in installs) and _driver_stays(machine):
        return (*installs, update)
    return (update, *installs)


def _is_old(driver: Driver | None) -> bool:
    """Return whether the driver is older than every build in the table."""
    if driver is None:
        return False
    offered = driver.cuda_version or (supported_cuda(driver.version) if driver.version is not None else None)
    if offered is None:
        return driver.version is not None and driver.version < OLDEST_IN_TABLE
    return offered < torch_builds()[0].cuda


def _driver_stays(machine: _Machine) -> bool:
    """Return whether the driver cannot be updated by this user, or not to a branch that supports the device."""
    system = machine.system
    if in_container(system):
        return True
    if system is not None and system.user_is_root is False:
        return True
    version: DriverVersion | None = machine.driver.version if machine.driver is not None else None
    capabilities = [device.compute_capability for device in machine.devices or () if device.compute_capability]
    return version is not None and any(last_driver_branch(capability) == version.branch for capability in capabilities)
