"""Install and update the NVIDIA driver."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudoctor.data.capabilities import last_driver_branch, runs_on
from gpudoctor.data.distributions import distribution_of
from gpudoctor.data.drivers import first_driver, minimum_driver, packaged_driver
from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import ComputeCapability, CudaVersion, Device, Driver, DriverVersion, Fix, Place, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.fixes import fix, remedy_of_row
from gpudoctor.remedies.torch_choice import capabilities_of

DOWNLOAD = "https://www.nvidia.com/Download/index.aspx"
GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
WSL = "https://docs.nvidia.com/cuda/wsl-user-guide/"
DEBIAN = "https://wiki.debian.org/NvidiaGraphicsDrivers"
FABRIC_MANAGER = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"
VERIFY = "nvidia-smi"
# apt purges nothing at all if one of its patterns has no package.
PURGE = "dpkg --get-selections | cut -f1 | grep -E '^nvidia-(driver|dkms|kernel)-' | xargs -r {sudo}apt-get purge -y"
NO_UPDATE = "No driver update helps"
# The first long-term branch that supports CUDA 13; Ubuntu 22.04 and newer package it.
UBUNTU_BRANCH = 580
UBUNTU_WITH_BRANCH = ("22.04", "24.04", "25.04", "25.10", "26.04")
# Every maintained Ubuntu installs this branch or a newer one by default.
UBUNTU_AUTOMATIC = 535
# The package nvidia-open is in that repository. Source: https://wiki.debian.org/NvidiaGraphicsDrivers
KEYRING = "https://developer.download.nvidia.com/compute/cuda/repos/debian{}/x86_64/cuda-keyring_1.1-1_all.deb"
# The open kernel modules start with Turing. Source: NVIDIA's driver installation guide, "Kernel Modules".
FIRST_OPEN = ComputeCapability(7, 5)


@fix
def install_driver(*, system: System, devices: Sequence[Device] | None = None, place: Place = Place()) -> Remedy:
    """Return how to install the NVIDIA driver if it is missing."""
    if place.is_tegra:
        return remedy_of_row("install-jetpack", system)
    return _with_packages("Install the NVIDIA driver", system, gpu_capabilities(devices, system), None)


@fix
def reinstall_driver(*, system: System, place: Place = Place()) -> Remedy:
    """Return how to reinstall a driver that does not work."""
    if place.is_tegra:
        return remedy_of_row("install-jetpack", system)
    summary = "Reinstall the NVIDIA driver, which builds its kernel module for the running kernel"
    if system.os == "windows":
        return remedy_of_row("reinstall-driver-on-windows", system)
    commands: tuple[str, ...] = ()
    row = distribution_of(system)
    if row.get("packages") == "apt":
        packages = (PURGE, "{sudo}apt-get autoremove -y")
        install = row.get("driver", ["{sudo}apt-get install -y nvidia-driver"])[-1]
        commands = (*for_root((*packages, install, "{sudo}reboot"), system), VERIFY)
    if system.distribution is None:
        summary += (
            ". On Ubuntu: purge the packages whose names begin with nvidia-driver, nvidia-dkms and nvidia-kernel, then "
            "sudo ubuntu-drivers install"
        )
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=GUIDE)


@fix
def update_driver(
    *,
    system: System,
    needed: DriverVersion | CudaVersion | None = None,
    devices: Sequence[Device] | None = None,
    driver: Driver = Driver(),
    place: Place = Place(),
) -> Remedy:
    """Return how to update the NVIDIA driver to one that is new enough.

    needed: the driver version, or the CUDA version that it must support. If the GPU's last driver branch is older, no
    update helps: the remedy has no commands and says so.
    """
    if place.is_tegra:
        return remedy_of_row("install-jetpack", system)
    capabilities = gpu_capabilities(devices, system)
    windows = system.os == "windows" or bool(system.wsl)
    version = minimum_driver(needed, "windows" if windows else "linux") if isinstance(needed, CudaVersion) else needed
    if needed is None and driver.version is not None:
        version = DriverVersion((driver.version.parts[0] + 1,))  # a package of the same branch is not an update
    ruled_out = _ruled_out(version, capabilities, needed)
    if ruled_out:
        return Remedy(summary=f"{NO_UPDATE}: {ruled_out}")
    target = f" to {version} or newer" if needed is not None and version is not None else ""
    present = f"{' from' if target else ''} {driver.version}" if driver.version is not None else ""
    summary = f"Update the NVIDIA driver{present}{target}"
    summary += f" for CUDA {needed}" if isinstance(needed, CudaVersion) else ""
    if driver.nvswitches and not system.container:
        summary += ", and with it the fabric manager of the NVSwitches to exactly the same version"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=FABRIC_MANAGER)
    return _with_packages(summary, system, capabilities, version)


def gpu_capabilities(devices: Sequence[Device] | None, system: System) -> tuple[ComputeCapability, ...]:
    """Return the compute capabilities of the devices, or of the GPUs on the PCI bus if the driver lists none."""
    on_bus = [Device(nvml_index=0, name=gpu.name, pci_device_id=gpu.device_id) for gpu in system.nvidia_gpus or ()]
    return capabilities_of(devices) or capabilities_of(on_bus)


def _ruled_out(
    version: DriverVersion | None, capabilities: Sequence[ComputeCapability], needed: DriverVersion | CudaVersion | None
) -> str:
    for capability in capabilities:
        branch = last_driver_branch(capability)
        if version is not None and branch is not None and version.parts[0] > int(branch[1:]):
            builds = (
                build for build in reversed(torch_builds()) if runs_on(build.architectures, capability, build.cuda)
            )
            shown = (f"Use PyTorch {build.release} or older, built with CUDA {build.cuda} at most" for build in builds)
            last = next(shown, "Use another GPU: no PyTorch wheel has machine code for this one")
            wanted = f"{version} is needed" if needed is not None else "it is installed"
            return f"{branch} is the last driver branch for compute capability {capability}, and {wanted}. {last}"
    return ""


def _with_packages(
    summary: str, system: System, capabilities: Sequence[ComputeCapability], version: DriverVersion | None
) -> Remedy:
    """Return the remedy with the distribution's documented commands, if there are any."""
    lasts = [branch for branch in map(last_driver_branch, capabilities) if branch is not None]
    if lasts:
        summary += f"; {min(lasts)} is the last branch that supports this GPU"
    if system.wsl:
        summary += ", on Windows and not inside WSL, which uses the Windows driver. Then run wsl --shutdown"
        return Remedy(summary=summary, needs=("restart",), reference=WSL)
    if system.container:
        summary += ", on the host: a container uses the host's driver"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=DOWNLOAD)
    if system.os == "windows":
        return Remedy(summary=summary, needs=("root", "reboot"), reference=DOWNLOAD)
    row = distribution_of(system)
    install, reference = _package_commands(row, system, capabilities, version)
    commands: tuple[str, ...] = ()
    if install:
        component = ", from the component non-free, which must be enabled in the package sources first"
        summary += component if reference == DEBIAN else row.get("driver_note", "")
        summary += ". After the restart, nvidia-smi shows whether it worked"
        commands = (*for_root((*install, "{sudo}reboot"), system), VERIFY)
    elif system.distribution is None and system.os in (None, "linux"):
        summary += ". On Ubuntu: sudo ubuntu-drivers install, then sudo reboot. nvidia-smi shows whether it worked"
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=reference)


def legacy_driver(row: Mapping[str, Any], branch: str) -> tuple[str, ...]:
    """Return the commands for an older driver branch ("470"); () without commands, or if it is not a number."""
    is_branch = branch.isascii() and branch.isdigit()
    return tuple(command.replace("{branch}", branch) for command in row.get("driver_legacy", ()) if is_branch)


def for_root(commands: Sequence[str], system: System) -> Iterator[str]:
    """Yield the commands with sudo, unless the user is root."""
    return (command.replace("{sudo}", with_sudo("", system)) for command in commands)


def _package_commands(
    row: Mapping[str, Any], system: System, capabilities: Sequence[ComputeCapability], version: DriverVersion | None
) -> tuple[Sequence[str], str]:
    """Return the commands and the address of their documentation."""
    if row.get("id") == "debian":
        return _debian(system, capabilities, version)
    lasts = [branch for branch in map(last_driver_branch, capabilities) if branch is not None]
    commands = row.get("driver", ())
    if row.get("id") == "ubuntu":
        commands = (*commands[:-1], _ubuntu(system, capabilities, version))
    elif lasts and "driver_legacy" in row:
        commands = legacy_driver(row, min(lasts)[1:])
    elif not (capabilities or row.get("driver_picks")):
        # They install the newest branch, so the GPU must be known to be supported by it.
        commands = ()
    return commands, row.get("page", GUIDE if system.os == "linux" else DOWNLOAD)


def _debian(
    system: System, capabilities: Sequence[ComputeCapability], version: DriverVersion | None
) -> tuple[tuple[str, ...], str]:
    """Return the commands for Debian's own driver, or for NVIDIA's repository if Debian's is too old."""
    release = system.distribution_version
    packaged = packaged_driver(system.distribution, release)
    needed = tuple(filter(None, (version, *map(first_driver, capabilities))))
    lasts = [int(branch[1:]) for branch in map(last_driver_branch, capabilities) if branch is not None]
    fits = packaged and all(packaged >= one for one in needed) and all(packaged.parts[0] <= last for last in lasts)
    if fits or not (needed or lasts):
        return ("{sudo}apt-get update", "{sudo}apt-get install -y nvidia-driver"), DEBIAN
    by_nvidia = bool(capabilities) and min(capabilities) >= FIRST_OPEN and system.machine in ("x86_64", None)
    if not by_nvidia or release not in ("12", "13"):
        return (), GUIDE
    install = ("dpkg -i cuda-keyring_1.1-1_all.deb", "apt-get update", "apt-get install -y nvidia-open")
    return (f"{{sudo}}wget {KEYRING.format(release)}", *("{sudo}" + command for command in install)), GUIDE


def _ubuntu(system: System, capabilities: Sequence[ComputeCapability], version: DriverVersion | None) -> str:
    """Return the command that chooses the driver automatically, or a branch if that might be too old."""
    automatic_may_be_too_old = version is not None and UBUNTU_AUTOMATIC < version.parts[0] <= UBUNTU_BRANCH
    if not automatic_may_be_too_old or not capabilities or system.distribution_version not in UBUNTU_WITH_BRANCH:
        return "{sudo}ubuntu-drivers install"
    flavor = "-open" if min(capabilities) >= FIRST_OPEN else ""
    return f"{{sudo}}ubuntu-drivers install nvidia:{UBUNTU_BRANCH}{flavor}"


@fix
def remove_driver_in_wsl(*, system: System) -> Fix:
    """Return how to remove a Linux driver inside WSL, which hides the Windows driver."""
    by_apt = system.distribution is None or distribution_of(system).get("packages") == "apt"
    return Fix(f"remove-driver-in-wsl-{'by-apt' if by_apt else 'by-hand'}")
