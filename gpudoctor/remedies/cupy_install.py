"""Install CuPy: the distribution that fits driver, devices, Python and NumPy."""

from collections.abc import Sequence
from dataclasses import replace

from gpudoctor.data.capabilities import last_toolkit
from gpudoctor.data.drivers import minimum_driver
from gpudoctor.data.packages import cupy_pythons
from gpudoctor.model import CudaVersion, Cupy, Device, Driver, Origin, Package, PackageVersion, Python, Remedy, System
from gpudoctor.model.gpu_conclusions import KnownGpu
from gpudoctor.model.record import record
from gpudoctor.remedies.commands import Environment, environment_of
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.packages import removals
from gpudoctor.remedies.torch_choice import Machine, machine_of

REFERENCE = "https://docs.cupy.dev/en/stable/install.html"
VERIFY = "import cupy; print(cupy.__version__, int(cupy.arange(3).sum()))"
# The last version for CUDA 11, NumPy 1 and Python 3.9; since 14 the extra [ctk] contains the CUDA libraries.
# Source: "CuPy v14" in https://docs.cupy.dev/en/stable/upgrade.html; wheel metadata of 13.6.0 and 14.2.0.
LAST_13 = "13.6.0"
LAST_13_PYTHON = (3, 13)
# Common distributions; pip ignores those that are not installed.
USUAL = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")
# The first and the last version for each CUDA major version. Source: PyPI.
RELEASES = {13: ((13, 6), (9999,)), 12: ((11, 5), (9999,)), 11: ((11, 0), (13, 6, 0))}
FIRST_CUDA_13_PYTHON = (3, 9)
FIRST_WITH_LIBRARIES = (14,)
# The oldest toolkits for cupy-cuda13x, 12x and 11x.
FIRST_TOOLKITS = (CudaVersion(13, 0), CudaVersion(12, 0), CudaVersion(11, 2))


@record
class Requirement:
    """One CuPy distribution: "cupy-cuda12x", with its extra or version."""

    name: str
    rest: str

    def __str__(self) -> str:
        return self.name + self.rest


@fix
def install_cupy(  # noqa: PLR0913
    *,
    python: Python,
    system: System,
    driver: Driver,
    devices: Sequence[Device] | None,
    cupy: Cupy = Cupy(),
    cuda_major: int | None = None,
    release: PackageVersion | None = None,
    named: Sequence[str] = (),
    gpus: Sequence[KnownGpu] = (),
    origin: Origin | None = None,
) -> Remedy:
    """Return how to install exactly one CuPy, for the newest CUDA major version that driver and devices support.

    Several CuPy distributions overwrite each other's files, and removing one leaves a broken package, so all are
    removed first. For an unknown driver CUDA 12 is chosen. cuda_major: this CUDA major version instead of the newest.
    release: this version of CuPy instead of the newest.
    named: distributions in a message, which are removed if no list of packages is known. gpus: GPUs in a message,
    used if no device is known. A report may not list the installed packages: then the usual ones are removed.
    """
    if origin is not None and origin.is_report:
        named = tuple(dict.fromkeys((*named, *USUAL)))
    if named and cupy.distributions is None:
        packages = tuple(Package(name=name, version=PackageVersion("")) for name in named)
        cupy = replace(cupy, distributions=packages)
    if gpus and not devices:
        devices = [Device(nvml_index=n, name=gpu.name, compute_capability=gpu.capability) for n, gpu in enumerate(gpus)]
    machine = machine_of(python, system, driver, devices)
    if machine.platform == "":
        return Remedy(summary="Use Linux or Windows: CuPy has no CUDA wheels for this platform", reference=REFERENCE)
    major = cuda_major if cuda_major is not None else _cuda_major(machine, release)
    if major is None and release is not None and _cuda_major(machine, None) is not None:
        return Remedy(summary=f"CuPy {release} has no wheel for a CUDA version of this machine", reference=REFERENCE)
    if major is None:
        return Remedy(summary=_no_package(machine), reference=REFERENCE)
    requirement = _requirement(major, machine, _numpy(python, cupy), release)
    if requirement is None:
        return Remedy(summary=_no_python(major, machine), reference=REFERENCE)
    environment = environment_of(python, system)
    installed = [package.name for package in cupy.distributions or ()]
    by_conda = [package for package in (cupy.distributions if cupy else None) or () if package.installer == "conda"]
    if by_conda and environment.conda_prefix:
        return _install_with_conda(environment, python, major, [name for name in installed if name != "cupy"])
    # --upgrade: an older version of the same distribution would satisfy the requirement, without its extra.
    options = ["--upgrade"] if installed == [requirement.name] else []
    remove = () if environment.setup or installed == [requirement.name] else tuple(installed)
    commands = (
        *environment.setup,
        *removals(environment, python, remove),
        environment.install([*options, str(requirement)]),
        environment.run(VERIFY),
    )
    return Remedy(summary=_summary(requirement, major, machine), commands=commands, reference=REFERENCE)


def _cuda_major(machine: Machine, release: PackageVersion | None) -> int | None:
    """Return the newest CUDA major version that the driver supports and whose NVRTC compiles for every device."""
    lasts = [last_toolkit(capability) for capability in machine.capabilities]
    for first in FIRST_TOOLKITS:
        # Unknown driver: CUDA 12 runs on every driver that is still supported.
        runs = first.major <= 12 if machine.driver_is_unknown() else machine.driver_runs(first)
        runs = runs and _has_wheel(first.major, machine, release)
        if runs and all(last is None or last.major >= first.major for last in lasts):
            return first.major
    return None


def _has_wheel(major: int, machine: Machine, release: PackageVersion | None) -> bool:
    """Return whether this version of CuPy, or any, was built for this CUDA major version, as far as is known."""
    first, last = RELEASES[major]
    old_python = machine.python is not None and PackageVersion(machine.python).release < FIRST_CUDA_13_PYTHON
    return not (major == 13 and old_python) and (release is None or first <= release.release <= last)


def _requirement(
    major: int, machine: Machine, numpy: PackageVersion | None, wanted: PackageVersion | None
) -> Requirement | None:
    name = f"cupy-cuda{major}x"
    if wanted is not None:
        return Requirement(name=name, rest=f"{'[ctk]' if wanted.release >= FIRST_WITH_LIBRARIES else ''}=={wanted}")
    tag = machine.python
    release = None if tag is None else PackageVersion(tag).release
    can_take_13 = release is None or (release <= LAST_13_PYTHON and not str(tag).endswith("t"))
    if major == 11:
        return Requirement(name=name, rest=f"=={LAST_13}") if can_take_13 else None
    needs_13 = (release is not None and release < (3, 10)) or (numpy is not None and numpy.release < (2,))
    if needs_13 and can_take_13:
        return Requirement(name=name, rest="<14")
    wheels = cupy_pythons(name)
    platform = machine.platform or "linux_x86_64"
    if tag is not None and wheels is not None and tag not in wheels.get(platform, ()):
        return None
    return Requirement(name=name, rest="[ctk]")


def _numpy(python: Python, cupy: Cupy) -> PackageVersion | None:
    if cupy.numpy_version is not None:
        return cupy.numpy_version
    packages = python.packages or ()
    return next((package.version for package in packages if package.name == "numpy"), None)


def _install_with_conda(environment: Environment, python: Python, major: int, remove: Sequence[str]) -> Remedy:
    commands = (
        *removals(environment, python, remove),
        environment.conda("install", ["--channel", "conda-forge", "cupy", f"cuda-version={major}"]),
        environment.run(VERIFY),
    )
    summary = f"Install conda-forge's CuPy for CUDA {major}, with CUDA's libraries, as the only CuPy"
    return Remedy(summary=summary, commands=commands, reference=f"{REFERENCE}#installing-cupy-from-conda-forge")


def _summary(requirement: Requirement, major: int, machine: Machine) -> str:
    text = f"Install {requirement} as the only CuPy"
    if machine.driver_is_unknown():
        text += f". The driver is unknown: nvidia-smi must show CUDA {major} or newer"
    if not requirement.rest.startswith("[ctk]"):
        text += f". It needs the CUDA {major} toolkit on this machine, because it does not contain the libraries"
    return text


def _no_package(machine: Machine) -> str:
    devices = ", ".join(map(str, machine.capabilities)) or "unknown"
    lasts = [last for last in map(last_toolkit, machine.capabilities) if last is not None and last < CudaVersion(11, 0)]
    if lasts and len(lasts) == len(machine.capabilities):
        return (
            f"No newer CuPy compiles for compute capability {devices}: CUDA {max(lasts)} is the last toolkit that "
            "does. Use that toolkit with an older CuPy built for it, or a newer GPU"
        )
    if not machine.driver_is_unknown() and not machine.driver_runs(FIRST_TOOLKITS[-1]):
        needed = minimum_driver(CudaVersion(12, 0))
        return f"No current CuPy wheel supports this driver: update it first, to {needed} or newer"
    return f"No CuPy wheel compiles for these devices together (compute capability {devices})"


def _no_python(major: int, machine: Machine) -> str:
    wheels = cupy_pythons(f"cupy-cuda{major}x") or {}
    versions = ", ".join(wheels.get(machine.platform or "linux_x86_64", ()))
    return f"cupy-cuda{major}x has no wheel for Python {machine.python}; it has wheels for {versions}"
