"""Facts about the machine: system, NVIDIA driver and devices. `None` means unknown, never none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion

_DISTRIBUTIONS = {
    "almalinux": "AlmaLinux",
    "amzn": "Amazon Linux",
    "arch": "Arch Linux",
    "cachyos": "CachyOS",
    "centos": "CentOS",
    "endeavouros": "EndeavourOS",
    "linuxmint": "Linux Mint",
    "mx": "MX Linux",
    "neon": "KDE neon",
    "nixos": "NixOS",
    "ol": "Oracle Linux",
    "opensuse-leap": "openSUSE Leap",
    "opensuse-tumbleweed": "openSUSE Tumbleweed",
    "pop": "Pop!_OS",
    "rhel": "RHEL",
    "rocky": "Rocky Linux",
    "sles": "SLES",
    "void": "Void Linux",
}
"""IDs of os-release whose name is not the ID with a capital letter, as each distribution writes its own."""

_GPU_NODE = r"/dev/(nvidia\d+|nvidiactl|nvidia-uvm|dxg|nvhost-gpu|nvgpu/.*)"


@record
class PciGpu:
    """A display or compute controller on the PCI bus, with or without a driver."""

    address: str
    vendor: Annotated[str, Fact('"nvidia", "amd", "intel" or the vendor id in hex')]
    device_id: Annotated[str, Fact('PCI device id, four upper-case hex digits: "2684"')]
    name: Annotated[str, Fact("product name by the PCI id; empty if the table does not know it")] = ""
    bound_driver: Annotated[str, Fact('kernel driver bound to it: "nvidia", "nouveau", "vfio-pci"; empty for none')] = (
        ""
    )

    @property
    def label(self) -> str:
        """Its name for a sentence: the product name, else the PCI id."""
        return self.name or f"PCI device {self.vendor}:{self.device_id}"


@record
class System:
    """The operating system and its limits."""

    os: Annotated[str | None, Fact('"linux", "windows" or "darwin"', source="platform.system")] = None
    machine: Annotated[str | None, Fact('"x86_64", "aarch64", "arm64", ...', source="platform.machine")] = None
    kernel: Annotated[str | None, Fact("kernel release", source="uname")] = None
    distribution: Annotated[str | None, Fact('ID of os-release: "ubuntu"', source="/etc/os-release")] = None
    distribution_version: Annotated[str | None, Fact('VERSION_ID of os-release: "24.04"', source="/etc/os-release")] = (
        None
    )
    distribution_name: Annotated[str | None, Fact("PRETTY_NAME of os-release", source="/etc/os-release")] = None
    glibc: Annotated[
        str | None, Fact("version of glibc; empty if the C library is another (musl)", source="confstr")
    ] = None
    wsl: Annotated[int | None, Fact("1 or 2 inside WSL, 0 outside", source="/proc/version")] = None
    shell: Annotated[
        str | None, Fact('the shell of Windows whose prompt is shown: "cmd", "powershell"', source="report")
    ] = None
    container: Annotated[
        str | None,
        Fact('engine of the container this runs in: "docker", "podman", "kubernetes", "lxc"; empty outside one'),
    ] = None
    user_is_root: Annotated[bool | None, Fact("effective user id is 0")] = None
    shm_total_bytes: Annotated[int | None, Fact("size of /dev/shm", "bytes", "statvfs /dev/shm")] = None
    cpu_count: Annotated[
        int | None, Fact("logical processors that this process may run on", source="sched_getaffinity")
    ] = None
    memlock_limit_bytes: Annotated[int | None, Fact("RLIMIT_MEMLOCK; 0 for unlimited", "bytes", "getrlimit")] = None
    has_infiniband: Annotated[bool | None, Fact("programs can open InfiniBand devices", source="/dev/infiniband")] = (
        None
    )
    secure_boot: Annotated[bool | None, Fact("UEFI Secure Boot is on", source="efivars SecureBoot")] = None
    iommu: Annotated[bool | None, Fact("an IOMMU translates DMA for devices", source="/sys/class/iommu")] = None
    pci_gpus: Annotated[tuple[PciGpu, ...] | None, Fact("GPUs on the PCI bus", source="/sys/bus/pci/devices")] = None
    amd_gfx_targets: Annotated[
        tuple[str, ...] | None, Fact('gfx targets of AMD GPUs: "gfx1100"', source="/sys/class/kfd")
    ] = None

    @property
    def distribution_label(self) -> str:
        """The distribution for a sentence: "Ubuntu 24.04.1 LTS", "Fedora 34"; empty if it is unknown."""
        name = self.distribution or ""
        name = _DISTRIBUTIONS.get(name, name.capitalize())
        return self.distribution_name or f"{name} {self.distribution_version or ''}".strip()

    @property
    def nvidia_gpus(self) -> tuple[PciGpu, ...] | None:
        """The NVIDIA GPUs on the PCI bus; None if the bus is unknown."""
        return None if self.pci_gpus is None else tuple(gpu for gpu in self.pci_gpus if gpu.vendor == "nvidia")


@record
class DeviceFile:
    """One of the driver's device nodes."""

    path: str
    mode: Annotated[str, Fact('permission bits in octal: "666"')] = ""
    accessible: Annotated[bool | None, Fact("this user can open it for reading and writing")] = None
    error: Annotated[str, Fact('why it cannot be opened: "Operation not permitted"')] = ""

    @property
    def refused_by_cgroup(self) -> bool:
        """Whether a cgroup denies access, as batch systems and container engines do: EPERM, not EACCES."""
        return self.error.lower() == "operation not permitted"


@record
class Xid:
    """An error that the driver wrote to the kernel log."""

    number: int
    pci_address: str = ""
    text: str = ""


@record
class CudaDevice:
    """A device that CUDA offers in this environment: a GPU or a MIG instance."""

    name: str | None = None
    compute_capability: ComputeCapability | None = None
    memory_total_bytes: Annotated[int | None, Fact("what a program can have of it", "bytes", "cuDeviceTotalMem")] = None


@record
class Driver:
    """The NVIDIA driver: kernel module, user-space libraries and their answers."""

    installed: Annotated[bool | None, Fact("libraries or kernel module of an NVIDIA driver are on this machine")] = None
    version: Annotated[
        DriverVersion | None, Fact("version of the driver in use", source="NVML or /proc/driver/nvidia/version")
    ] = None
    module_version: Annotated[
        DriverVersion | None, Fact("version of the loaded kernel module", source="/proc/driver/nvidia/version")
    ] = None
    library_version: Annotated[
        DriverVersion | None, Fact("version of the user-space libraries", source="name of libcuda.so.VERSION")
    ] = None
    cuda_version: Annotated[
        CudaVersion | None, Fact("highest CUDA version that libcuda offers", source="cuDriverGetVersion")
    ] = None
    module_flavor: Annotated[str | None, Fact('"open" or "proprietary"', source="/proc/driver/nvidia/version")] = None
    module_loaded: Annotated[bool | None, Fact("kernel module nvidia is loaded", source="/proc/modules")] = None
    uvm_loaded: Annotated[bool | None, Fact("kernel module nvidia_uvm is loaded", source="/proc/modules")] = None
    nouveau_loaded: Annotated[bool | None, Fact("kernel module nouveau is loaded", source="/proc/modules")] = None
    module_built_for_kernel: Annotated[
        bool | None, Fact("a kernel module nvidia is installed for the running kernel", source="/lib/modules")
    ] = None
    dkms: Annotated[bool | None, Fact("DKMS has the source of an NVIDIA module", source="/var/lib/dkms")] = None
    libcuda_path: Annotated[str | None, Fact("libcuda.so.1 that the loader takes; empty for none", source="dlopen")] = (
        None
    )
    libcuda_error: Annotated[str | None, Fact("what the loader said instead; empty for no error", source="dlopen")] = (
        None
    )
    libcuda_files: Annotated[tuple[str, ...] | None, Fact("files of libcuda found on this machine")] = None
    cuda_init_code: Annotated[int | None, Fact("result of cuInit; 0 is success", source="cuInit")] = None
    cuda_init_error: Annotated[
        str | None, Fact('name of that result: "CUDA_ERROR_UNKNOWN"', source="cuGetErrorName")
    ] = None
    cuda_device_count: Annotated[
        int | None, Fact("devices that CUDA sees with this environment", source="cuDeviceGetCount")
    ] = None
    cuda_devices: Annotated[
        tuple[CudaDevice, ...] | None, Fact("those devices in CUDA's order", source="libcuda: cuDeviceGet")
    ] = None
    nvml_code: Annotated[int | None, Fact("result of nvmlInit; 0 is success", source="nvmlInit_v2")] = None
    nvml_error: Annotated[str | None, Fact("text of that result; empty for success", source="nvmlErrorString")] = None
    device_files: Annotated[
        tuple[DeviceFile, ...] | None, Fact("device nodes of the driver", source="/dev/nvidia*")
    ] = None
    fabric_manager: Annotated[
        str | None,
        Fact('"running", "not-running" (installed), "not-installed"', source="/proc/*/comm and installed files"),
    ] = None
    fabric_manager_version: Annotated[DriverVersion | None, Fact("version of the fabric manager installed")] = None
    nvswitches: Annotated[int | None, Fact("NVSwitch bridges on the PCI bus", source="/sys/bus/pci/devices")] = None
    xids: Annotated[tuple[Xid, ...] | None, Fact("recent Xid errors; unknown if the kernel log is not readable")] = None
    kernel_messages: Annotated[tuple[str, ...] | None, Fact("last lines of the driver (NVRM) in the kernel log")] = None

    @property
    def gpu_nodes(self) -> tuple[DeviceFile, ...] | None:
        """The device nodes that CUDA opens; None if the nodes are unknown.

        /dev/nvidia-caps and /dev/nvidia-modeset are for other programs, /dev/nvidia-uvm-tools for debuggers.
        """
        if self.device_files is None:
            return None
        return tuple(node for node in self.device_files if re.fullmatch(_GPU_NODE, node.path))

    @property
    def libcuda_refusal(self) -> str:
        """Why the loader rejects an existing libcuda; "" if it finds none."""
        error = " ".join((self.libcuda_error or "").split())
        return "" if "no such file" in error.lower() else error

    @property
    def has_other_fabric_manager(self) -> bool:
        """Whether the installed fabric manager's version differs from the driver's."""
        manager, version = self.fabric_manager_version, self.version
        if self.nvswitches == 0 or self.fabric_manager == "not-installed":
            return False
        return manager is not None and version is not None and manager != version

    @property
    def label(self) -> str:
        """Its name as a finding's subject: "driver 580.65.06"."""
        return f"driver {self.version}" if self.version else "NVIDIA driver"


@record
class DeviceProcess:
    """A process that uses device memory."""

    pid: int
    name: str = ""
    used_bytes: int | None = None


@record
class Device:
    """One NVIDIA GPU as NVML reports it. A field is unknown if NVML says "not supported" or "no permission"."""

    nvml_index: int
    name: str | None = None
    uuid: str | None = None
    error: Annotated[str, Fact("why NVML cannot reach it: GPU is lost, ...; empty when it can")] = ""
    compute_capability: Annotated[
        ComputeCapability | None, Fact("compute capability", source="nvmlDeviceGetCudaComputeCapability")
    ] = None
    pci_address: str | None = None
    pci_device_id: Annotated[str | None, Fact("PCI device id, four upper-case hex digits")] = None
    memory_total_bytes: Annotated[int | None, Fact("device memory", "bytes")] = None
    memory_used_bytes: Annotated[int | None, Fact("device memory in use", "bytes")] = None
    processes: Annotated[tuple[DeviceProcess, ...] | None, Fact("processes on it, this run's own left out")] = None
    power_draw_watts: Annotated[float | None, Fact("power drawn now", "watts")] = None
    power_limit_watts: Annotated[float | None, Fact("enforced power limit", "watts")] = None
    power_limit_default_watts: Annotated[float | None, Fact("default power limit", "watts")] = None
    clock_sm_mhz: Annotated[int | None, Fact("SM clock now", "MHz")] = None
    clock_sm_max_mhz: Annotated[int | None, Fact("highest SM clock", "MHz")] = None
    throttle_reasons: Annotated[
        tuple[str, ...] | None,
        Fact("why clocks are lowered: NVML's clocks event reasons in lower case: gpu_idle, hw_slowdown"),
    ] = None
    performance_state: Annotated[int | None, Fact("0 (highest) to 15")] = None
    utilization_percent: Annotated[int | None, Fact("share of the last second in which a kernel ran", "percent")] = None
    temperature_celsius: Annotated[int | None, Fact("temperature of the GPU", "°C")] = None
    temperature_slowdown_celsius: Annotated[int | None, Fact("temperature at which clocks are lowered", "°C")] = None
    temperature_operating_celsius: Annotated[
        int | None, Fact("highest operating temperature: from it on clocks may fall below the base clock", "°C")
    ] = None
    ecc_uncorrected_volatile: Annotated[int | None, Fact("uncorrected memory errors since the driver was loaded")] = (
        None
    )
    retired_pages_pending: Annotated[bool | None, Fact("pages wait for a reboot to be taken out of use")] = None
    remapped_rows_pending: Annotated[bool | None, Fact("a row remapping waits for a reset")] = None
    remapped_rows_failed: Annotated[bool | None, Fact("a row could not be remapped: the device must be replaced")] = (
        None
    )
    mig_enabled: Annotated[bool | None, Fact("MIG mode is on; unknown or False if the device has none")] = None
    mig_uuids: Annotated[tuple[str, ...] | None, Fact("MIG devices that exist on it")] = None
    persistence_enabled: bool | None = None
    compute_mode: Annotated[str | None, Fact('"default", "exclusive-process" or "prohibited"')] = None
    pcie_generation: Annotated[int | None, Fact("PCIe generation of the link now")] = None
    pcie_generation_max: Annotated[int | None, Fact("highest PCIe generation of device and slot")] = None
    pcie_width: Annotated[int | None, Fact("lanes of the link now")] = None
    pcie_width_max: Annotated[int | None, Fact("most lanes of device and slot")] = None
    nvlinks_active: int | None = None
    fabric_state: Annotated[str | None, Fact('"not-supported", "not-started", "in-progress" or "completed"')] = None

    @property
    def temperature_limit_celsius(self) -> int | None:
        """The temperature at which clocks are lowered. Source: nvmlTemperatureThresholds_t of nvml.h."""
        limits = (self.temperature_operating_celsius, self.temperature_slowdown_celsius)
        return min((limit for limit in limits if limit), default=None)

    @property
    def label(self) -> str:
        """Its name for a sentence: "GPU 0 (NVIDIA A100-SXM4-80GB)"."""
        return f"GPU {self.nvml_index}" + (f" ({self.name})" if self.name else "")


Devices = tuple[Device, ...] | None
"""The NVIDIA devices: None if unknown, () if there are none."""


def known_facts(path: str, device: Device | CudaDevice, *names: str) -> tuple[str, ...]:
    """Return the dotted paths of those fields that are known."""
    return tuple(f"{path}.{name}" for name in names if getattr(device, name) is not None)


def ranges(numbers: Iterable[int]) -> str:
    """Return device numbers in short form: "0-3, 5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
