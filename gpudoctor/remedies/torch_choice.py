"""Choose a PyTorch build for a machine: driver, devices, Python and platform against the table of builds."""

from collections.abc import Sequence

from gpudoctor.data.capabilities import runs_on
from gpudoctor.data.drivers import driver_can_run, offered_cuda_can_run, supported_cuda
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.torch_builds import TorchBuild, TorchRelease, torch_builds, torch_releases
from gpudoctor.data.torch_wheels import companion_of
from gpudoctor.model import ComputeCapability, CudaVersion, Device, Driver, PackageVersion, Python, System, Torch
from gpudoctor.model.conclusions import Pytorch
from gpudoctor.model.record import record


@record
class Machine:
    """The machine's limits for a build; None means unknown and excludes nothing.

    platform: key of the table: "linux_x86_64", "linux_aarch64", "windows_amd64"; "" if there are no wheels.
    python: "3.12", or "3.13t" for a free-threaded build.
    glibc: (2, 31); () for another C library.
    capabilities: of the devices whose capability is known.
    """

    platform: str | None = None
    python: str | None = None
    glibc: tuple[int, ...] | None = None
    driver: Driver = Driver()
    windows: bool = False
    capabilities: tuple[ComputeCapability, ...] = ()
    cuda: CudaVersion | None = None

    def offered_cuda(self) -> CudaVersion | None:
        """Return the highest CUDA version that the driver supports."""
        if self.driver.cuda_version is not None:
            return self.driver.cuda_version
        return supported_cuda(self.driver.version) if self.driver.version is not None else None

    def driver_is_unknown(self) -> bool:
        """Return whether both the driver version and its CUDA version are unknown."""
        return (self.driver.version or self.driver.cuda_version) is None

    def driver_is_newer_than_table(self) -> bool:
        """Return whether the driver is newer than everything in the table, and therefore supports it."""
        unknown = self.driver_is_unknown() or self.offered_cuda() is not None
        return not unknown and bool(self.driver_runs(torch_builds()[-1].cuda))

    def driver_runs(self, cuda: CudaVersion) -> bool | None:
        """Return whether the driver runs programs built with `cuda`; None if unknown."""
        answer = None
        if self.driver.version is not None:
            answer = driver_can_run(self.driver.version, cuda, "windows" if self.windows else "linux")
        if answer is None and self.driver.cuda_version is not None:
            answer = offered_cuda_can_run(self.driver.cuda_version, cuda)
        return answer


@record
class Choice:
    """A build and the patch version to install: "2.13.0"."""

    build: TorchBuild
    version: str


def machine_of(
    python: Python, system: System, driver: Driver, devices: Sequence[Device] | None, cuda: CudaVersion | None = None
) -> Machine:
    """Return this machine's limits for a build."""
    tag = python.version.minor_release if python.version is not None else None
    glibc = PackageVersion(system.glibc).release if system.glibc is not None else None
    return Machine(
        platform=platform_of(python, system),
        python=tag + "t" if tag and python.free_threaded else tag,
        glibc=glibc if system.os in (None, "linux") else None,
        driver=driver,
        windows=system.os == "windows" or bool(system.wsl),
        capabilities=capabilities_of(devices),
        cuda=cuda,
    )


def platform_of(python: Python, system: System) -> str | None:
    """Return the platform's name in the table; "" without CUDA wheels, None if unknown."""
    tag = (python.platform_tag or "").replace("-", "_").casefold()
    os = system.os or {"lin": "linux", "win": "windows", "mac": "darwin"}.get(tag[:3])
    machine = (system.machine or tag.partition("_")[2]).casefold()
    if os is None or not machine:
        return None
    if os == "linux" and machine in ("x86_64", "amd64"):
        return "linux_x86_64"
    if os == "linux" and machine in ("aarch64", "arm64"):
        return "linux_aarch64"
    return "windows_amd64" if os == "windows" and machine in ("x86_64", "amd64") else ""


def capabilities_of(devices: Sequence[Device] | None) -> tuple[ComputeCapability, ...]:
    """Return the known compute capabilities, from the table of names if the driver did not report them."""
    found = {device.compute_capability or capability_of(device.name, device.pci_device_id) for device in devices or ()}
    return tuple(sorted(capability for capability in found if capability is not None))


def choose(machine: Machine, torch: Pytorch | Torch | None) -> Choice | None:
    """Return the build to install: from the user's release if one fits, else from the newest that has one."""
    for release in _in_order(torch):
        fitting = [build for build in torch_builds(release.release) if fits(build, machine)]
        if fitting:
            build = _best(fitting, machine)
            return Choice(build=build, version=_patch_version(release, torch, machine.python))
    return None


def choose_for_older_driver(choice: Choice, machine: Machine) -> TorchBuild | None:
    """Return the newest other build that fits and supports older drivers than the chosen one, or None."""
    older = [build for build in torch_builds() if build.cuda.major < choice.build.cuda.major and fits(build, machine)]
    return older[-1] if older else None


def fits(build: TorchBuild, machine: Machine) -> bool:
    """Return whether no known limit of the machine excludes the build."""
    platform = machine.platform if machine.platform is not None else "linux_x86_64"
    architectures = build.platform_architectures.get(platform)
    return (
        build.available is True
        and architectures is not None
        and platform in build.pythons
        and (machine.cuda is None or build.cuda == machine.cuda)
        and (machine.python is None or machine.python in build.pythons.get(platform, ()))
        and (machine.glibc is None or (machine.glibc != () and machine.glibc >= build.minimum_glibc))
        and machine.driver_runs(build.cuda) is not False
        and all(runs_on(architectures, capability, build.cuda) for capability in machine.capabilities)
    )


def _in_order(torch: Pytorch | Torch | None) -> list[TorchRelease]:
    newest_first = list(reversed(torch_releases()))
    kept = torch.version.minor_release if torch is not None and torch.version is not None else ""
    # A release without a torchvision is last: most programs need it.
    return sorted(
        newest_first, key=lambda row: (row.release != kept, companion_of("torchvision", row.versions[-1]) is None)
    )


def _best(builds: Sequence[TorchBuild], machine: Machine) -> TorchBuild:
    """Return the build with the newest CUDA that the driver supports, else the newest that it can run.

    For an unknown driver: the build for the oldest drivers if the devices are known, else the one on PyPI, or a build
    for all of PyPI's devices and newer ones.
    """
    offered = machine.offered_cuda()
    steady = [build for build in builds if not build.experimental] or builds
    if offered is not None:
        return max(steady, key=lambda build: (build.cuda <= offered, build.cuda))
    if machine.driver_is_newer_than_table():
        return max(steady, key=lambda build: build.cuda)
    if machine.capabilities:
        return min(steady, key=lambda build: build.cuda)
    usual = next((build for build in steady if build.pypi_default), steady[-1])
    return next((build for build in reversed(steady) if _runs_on_more(build, usual)), usual)


def _runs_on_more(build: TorchBuild, usual: TorchBuild) -> bool:
    """Return whether the build supports all devices of the usual build, and newer ones."""
    newest, usual_newest = (max(map(ComputeCapability.parse, b.architectures)) for b in (build, usual))
    return newest > usual_newest and all(
        runs_on(build.architectures, ComputeCapability.parse(name)) for name in usual.architectures
    )


def _patch_version(release: TorchRelease, torch: Pytorch | Torch | None, python: str | None) -> str:
    if python is not None and python in release.last_with:
        return release.last_with[python]
    if torch is not None and torch.version is not None and torch.version.public in release.versions:
        return torch.version.public
    return release.versions[-1]
