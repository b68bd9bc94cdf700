"""The facts about one machine: what probes gather, what checks decide from, what a snapshot file holds.

`None` means unknown, never none: a known absence has a value of its own (`""`, `()`, `False`, `build="cpu"`).
Why a whole section is unknown stands in its `ProbeReport`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, NamedTuple

from gpudoctor.model.record import record
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion

SCHEMA = "gpudoctor/snapshot/1"
STATES = ("failed", "timed-out", "not-run", "absent", "ok")


class Fact(NamedTuple):
    """What a field of a section means, in which unit, and where it is read on a live machine."""

    meaning: str
    unit: str = ""
    source: str = ""


@record
class PciGpu:
    """A display or compute controller on the PCI bus, driver or not."""

    address: str
    vendor: Annotated[str, Fact('"nvidia", "amd", "intel" or the vendor id in hex')]
    device_id: Annotated[str, Fact('PCI device id, four upper-case hex digits: "2684"')]
    name: Annotated[str, Fact("product name by the PCI id; empty where the table does not know it")] = ""
    bound_driver: Annotated[str, Fact('kernel driver bound to it: "nvidia", "nouveau", "vfio-pci"; empty for none')] = (
        ""
    )


@record
class System:
    """The operating system and the limits that it sets."""

    os: Annotated[str | None, Fact('"linux", "windows" or "darwin"', source="platform.system")] = None
    machine: Annotated[str | None, Fact('"x86_64", "aarch64", "arm64", ...', source="platform.machine")] = None
    kernel: Annotated[str | None, Fact("kernel release", source="uname")] = None
    distribution: Annotated[str | None, Fact('ID of os-release: "ubuntu"', source="/etc/os-release")] = None
    distribution_version: Annotated[str | None, Fact('VERSION_ID of os-release: "24.04"', source="/etc/os-release")] = (
        None
    )
    distribution_name: Annotated[str | None, Fact("PRETTY_NAME of os-release", source="/etc/os-release")] = None
    glibc: Annotated[
        str | None, Fact("version of glibc; empty where the C library is another (musl)", source="confstr")
    ] = None
    wsl: Annotated[int | None, Fact("1 or 2 inside WSL, 0 outside", source="/proc/version")] = None
    container: Annotated[
        str | None,
        Fact('engine of the container this runs in: "docker", "podman", "kubernetes", "lxc"; empty outside one'),
    ] = None
    user_is_root: Annotated[bool | None, Fact("effective user id is 0")] = None
    user_groups: Annotated[tuple[str, ...] | None, Fact("groups of the user")] = None
    shm_total_bytes: Annotated[int | None, Fact("size of /dev/shm", "bytes", "statvfs /dev/shm")] = None
    shm_free_bytes: Annotated[int | None, Fact("free space of /dev/shm", "bytes", "statvfs /dev/shm")] = None
    memory_total_bytes: Annotated[int | None, Fact("main memory", "bytes", "/proc/meminfo")] = None
    memory_limit_bytes: Annotated[int | None, Fact("memory limit of the cgroup; 0 for no limit", "bytes", "cgroup")] = (
        None
    )
    cpu_count: Annotated[
        int | None, Fact("logical processors that this process may run on", source="sched_getaffinity")
    ] = None
    cpu_limit: Annotated[
        float | None, Fact("processors that the cgroup grants; 0 for no limit", "processors", "cgroup")
    ] = None
    memlock_limit_bytes: Annotated[int | None, Fact("RLIMIT_MEMLOCK; 0 for unlimited", "bytes", "getrlimit")] = None
    secure_boot: Annotated[bool | None, Fact("UEFI Secure Boot is on", source="efivars SecureBoot")] = None
    iommu: Annotated[bool | None, Fact("an IOMMU translates DMA for devices", source="/sys/class/iommu")] = None
    pci_gpus: Annotated[tuple[PciGpu, ...] | None, Fact("GPUs on the PCI bus", source="/sys/bus/pci/devices")] = None
    amd_gfx_targets: Annotated[
        tuple[str, ...] | None, Fact('gfx targets of AMD GPUs: "gfx1100"', source="/sys/class/kfd")
    ] = None


@record
class DeviceFile:
    """A device node of the driver."""

    path: str
    mode: Annotated[str, Fact('permission bits in octal: "666"')] = ""
    accessible: Annotated[bool | None, Fact("this user can open it for reading and writing")] = None
    error: Annotated[str, Fact('why it cannot be opened: "Operation not permitted"')] = ""


@record
class Xid:
    """An error that the driver wrote to the kernel log."""

    number: int
    pci_address: str = ""
    text: str = ""


@record
class Driver:
    """The NVIDIA driver: kernel module, user-space libraries and what they answer."""

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
    xids: Annotated[tuple[Xid, ...] | None, Fact("recent Xid errors; unknown where the kernel log is not readable")] = (
        None
    )
    kernel_messages: Annotated[tuple[str, ...] | None, Fact("last lines of the driver (NVRM) in the kernel log")] = None


@record
class DeviceProcess:
    """A process that holds memory of a device."""

    pid: int
    name: str = ""
    used_bytes: int | None = None


@record
class Device:
    """One NVIDIA GPU as NVML reports it. A field is unknown where NVML says "not supported" or "no permission"."""

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
    memory_free_bytes: Annotated[int | None, Fact("device memory free", "bytes")] = None
    processes: Annotated[tuple[DeviceProcess, ...] | None, Fact("processes on it, this run's own left out")] = None
    power_draw_watts: Annotated[float | None, Fact("power drawn now", "watts")] = None
    power_limit_watts: Annotated[float | None, Fact("enforced power limit", "watts")] = None
    power_limit_default_watts: Annotated[float | None, Fact("default power limit", "watts")] = None
    power_limit_max_watts: Annotated[float | None, Fact("highest power limit that can be set", "watts")] = None
    clock_sm_mhz: Annotated[int | None, Fact("SM clock now", "MHz")] = None
    clock_sm_max_mhz: Annotated[int | None, Fact("highest SM clock", "MHz")] = None
    clock_memory_mhz: Annotated[int | None, Fact("memory clock now", "MHz")] = None
    clock_memory_max_mhz: Annotated[int | None, Fact("highest memory clock", "MHz")] = None
    throttle_reasons: Annotated[
        tuple[str, ...] | None,
        Fact("why clocks are held: NVML's clocks event reasons in lower case: gpu_idle, hw_slowdown"),
    ] = None
    performance_state: Annotated[int | None, Fact("0 (highest) to 15")] = None
    utilization_percent: Annotated[int | None, Fact("share of the last second in which a kernel ran", "percent")] = None
    temperature_celsius: Annotated[int | None, Fact("temperature of the GPU", "°C")] = None
    temperature_slowdown_celsius: Annotated[int | None, Fact("temperature at which clocks are lowered", "°C")] = None
    fan_percent: Annotated[int | None, Fact("fan speed", "percent")] = None
    ecc_enabled: bool | None = None
    ecc_uncorrected_volatile: Annotated[int | None, Fact("uncorrected memory errors since the driver was loaded")] = (
        None
    )
    ecc_uncorrected_aggregate: Annotated[int | None, Fact("uncorrected memory errors in the device's life")] = None
    ecc_corrected_volatile: Annotated[int | None, Fact("corrected memory errors since the driver was loaded")] = None
    retired_pages: Annotated[int | None, Fact("memory pages taken out of use")] = None
    retired_pages_pending: Annotated[bool | None, Fact("pages wait for a reboot to be taken out of use")] = None
    remapped_rows_uncorrectable: Annotated[int | None, Fact("memory rows remapped after uncorrectable errors")] = None
    remapped_rows_pending: Annotated[bool | None, Fact("a row remapping waits for a reset")] = None
    remapped_rows_failed: Annotated[bool | None, Fact("a row could not be remapped: the device must be replaced")] = (
        None
    )
    mig_enabled: Annotated[bool | None, Fact("MIG mode is on; unknown or False where the device has none")] = None
    mig_uuids: Annotated[tuple[str, ...] | None, Fact("MIG devices that exist on it")] = None
    persistence_enabled: bool | None = None
    compute_mode: Annotated[str | None, Fact('"default", "exclusive-process" or "prohibited"')] = None
    pcie_generation: Annotated[int | None, Fact("PCIe generation of the link now")] = None
    pcie_generation_max: Annotated[int | None, Fact("highest PCIe generation of device and slot")] = None
    pcie_width: Annotated[int | None, Fact("lanes of the link now")] = None
    pcie_width_max: Annotated[int | None, Fact("most lanes of device and slot")] = None
    nvlinks_active: int | None = None
    nvlinks_inactive: int | None = None
    fabric_state: Annotated[str | None, Fact('"not-supported", "not-started", "in-progress" or "completed"')] = None
    fabric_status: Annotated[str | None, Fact("result of joining the fabric; empty for success")] = None


@record
class ToolkitInstall:
    """A CUDA toolkit found on this machine."""

    path: str
    version: CudaVersion | None = None
    has_nvcc: bool = False


@record
class SharedLibrary:
    """A shared library that a loader finds."""

    soname: str
    path: str


@record
class Toolkit:
    """CUDA toolkits, compilers, and the libraries that the loader's path puts before those of wheels."""

    nvcc_path: Annotated[str | None, Fact("nvcc that PATH or CUDA_HOME gives; empty for none")] = None
    nvcc_version: Annotated[CudaVersion | None, Fact("its CUDA version", source="nvcc --version")] = None
    cuda_home: Annotated[str | None, Fact("CUDA_HOME, else CUDA_PATH; empty for unset", source="environment")] = None
    cuda_home_exists: bool | None = None
    toolkits: Annotated[tuple[ToolkitInstall, ...] | None, Fact("toolkits found, links resolved")] = None
    library_path_libraries: Annotated[
        tuple[SharedLibrary, ...] | None,
        Fact("CUDA libraries that LD_LIBRARY_PATH would load first", source="LD_LIBRARY_PATH"),
    ] = None
    system_libraries: Annotated[
        tuple[SharedLibrary, ...] | None, Fact("CUDA libraries in the loader's cache", source="ldconfig -p")
    ] = None
    host_compiler: Annotated[str | None, Fact('"gcc", "clang", "cl"; empty for none')] = None
    host_compiler_version: Annotated[
        tuple[int, ...] | None, Fact("version of the host compiler", source="cc -dumpfullversion")
    ] = None
    host_compiler_max: Annotated[
        int | None,
        Fact("newest major version of gcc that this nvcc accepts", source="crt/host_config.h of the toolkit"),
    ] = None


@record
class Package:
    """An installed Python distribution that bears on GPUs."""

    name: Annotated[str, Fact("normalised name: lower case, hyphens")]
    version: PackageVersion
    installer: Annotated[str, Fact('"pip", "uv", "conda"; empty where not recorded')] = ""
    location: Annotated[str, Fact("folder it is installed in")] = ""


@record
class Python:
    """The interpreter and environment diagnosed."""

    version: Annotated[PackageVersion | None, Fact("Python version", source="sys.version_info")] = None
    executable: Annotated[str | None, Fact("path of the interpreter", source="sys.executable")] = None
    prefix: Annotated[str | None, Fact("root of the environment", source="sys.prefix")] = None
    environment: Annotated[str | None, Fact('"venv", "conda" or "system"')] = None
    active_environment: Annotated[
        str | None, Fact("VIRTUAL_ENV, else CONDA_PREFIX: the environment that the shell has activated; empty for none")
    ] = None
    installer: Annotated[str | None, Fact('tool that manages it: "pip", "uv" or "conda"')] = None
    externally_managed: Annotated[bool | None, Fact("the distribution forbids pip in it (PEP 668)")] = None
    free_threaded: bool | None = None
    platform_tag: Annotated[str | None, Fact('"linux_x86_64"', source="sysconfig.get_platform")] = None
    packages: Annotated[
        tuple[Package, ...] | None, Fact("installed distributions that bear on GPUs", source="package metadata")
    ] = None
    shadowed_modules: Annotated[
        tuple[str, ...] | None, Fact('files that hide an installed module of the same name: "/work/torch.py"')
    ] = None


@record
class Torch:
    """PyTorch as it lies on disk, read without importing it."""

    installed: Annotated[bool | None, Fact("a distribution or package torch is there")] = None
    version: Annotated[PackageVersion | None, Fact("torch.__version__", source="torch/version.py")] = None
    build: Annotated[str | None, Fact('"cuda", "rocm", "cpu", "xpu" or "mps"', source="torch/version.py")] = None
    cuda_version: Annotated[CudaVersion | None, Fact("CUDA version it was built with", source="torch/version.py")] = (
        None
    )
    hip_version: Annotated[
        str | None, Fact("ROCm version it was built with; empty for none", source="torch/version.py")
    ] = None
    debug: bool | None = None
    location: Annotated[str | None, Fact("folder of the package")] = None
    architectures: Annotated[
        tuple[str, ...] | None, Fact('machine code and PTX inside: "sm_80", "compute_90"', source="flags in the binary")
    ] = None
    cxx11_abi: Annotated[bool | None, Fact("built with the C++11 ABI of libstdc++")] = None
    missing_libraries: Annotated[
        tuple[str, ...] | None,
        Fact("libraries that belong to the build and are not on disk", source="torch/lib, nvidia wheels"),
    ] = None
    conda_build: Annotated[
        str | None, Fact("build string of conda's package; empty without conda", source="conda-meta")
    ] = None
    conda_cpuonly: Annotated[
        bool | None, Fact("conda's package cpuonly or a cpu mutex is installed", source="conda-meta")
    ] = None


@record
class PrecisionResult:
    """A small product in one precision on one device, compared with the float64 result."""

    device: Annotated[str, Fact('"cuda:0", "mps", "cpu"')]
    precision: Annotated[str, Fact('"fp32", "tf32", "fp16", "bf16"')]
    relative_error: Annotated[float | None, Fact("largest error, relative to the largest value of the result")] = None
    error: Annotated[str, Fact("exception raised instead of a result; empty for none")] = ""


@record
class TorchRuntime:
    """What PyTorch answered when it was imported in a process of its own."""

    import_error: Annotated[
        str | None, Fact("last line of the import's traceback; empty when it worked", source="import torch")
    ] = None
    version: Annotated[PackageVersion | None, Fact("torch.__version__", source="torch.__version__")] = None
    cuda_version: Annotated[CudaVersion | None, Fact("torch.version.cuda", source="torch.version.cuda")] = None
    hip_version: Annotated[str | None, Fact("torch.version.hip; empty for none", source="torch.version.hip")] = None
    available: Annotated[bool | None, Fact("torch.cuda.is_available()", source="torch.cuda.is_available")] = None
    availability_error: Annotated[
        str | None, Fact("why CUDA cannot be initialised; empty for no error", source="torch.cuda.init")
    ] = None
    device_count: Annotated[int | None, Fact("torch.cuda.device_count()", source="torch.cuda.device_count")] = None
    device_names: tuple[str, ...] | None = None
    device_capabilities: tuple[ComputeCapability, ...] | None = None
    device_uuids: tuple[str, ...] | None = None
    architectures: Annotated[
        tuple[str, ...] | None, Fact("torch.cuda.get_arch_list()", source="torch.cuda.get_arch_list")
    ] = None
    cudnn_version: Annotated[int | None, Fact("torch.backends.cudnn.version(): 91002 is 9.10.2; 0 for none")] = None
    cudnn_error: Annotated[str | None, Fact("why cuDNN cannot be used; empty for no error")] = None
    nccl_version: Annotated[str | None, Fact("torch.cuda.nccl.version(); empty for none")] = None
    matmul_tf32: Annotated[
        bool | None, Fact("float32 products may run in TF32", source="torch.backends.cuda.matmul")
    ] = None
    cudnn_tf32: Annotated[bool | None, Fact("float32 convolutions may run in TF32", source="torch.backends.cudnn")] = (
        None
    )
    cudnn_benchmark: Annotated[bool | None, Fact("torch.backends.cudnn.benchmark", source="torch.backends.cudnn")] = (
        None
    )
    bf16_native: Annotated[bool | None, Fact("is_bf16_supported(including_emulation=False) on device 0")] = None
    mps_built: bool | None = None
    mps_available: bool | None = None
    warnings: Annotated[tuple[str, ...] | None, Fact("warnings raised on the way", source="warnings")] = None
    precision_results: Annotated[tuple[PrecisionResult, ...] | None, Fact("products compared with float64")] = None


@record
class Cupy:
    """CuPy as it lies on disk, read without importing it."""

    distributions: Annotated[
        tuple[Package, ...] | None, Fact("every installed CuPy distribution; () for none", source="package metadata")
    ] = None
    version: Annotated[PackageVersion | None, Fact("version of the CuPy package", source="package metadata")] = None
    platform: Annotated[str | None, Fact('"cuda", "rocm" or "source"', source="name of the distribution")] = None
    cuda_major: Annotated[int | None, Fact("CUDA major version it is built for; None for a source build")] = None
    numpy_version: Annotated[PackageVersion | None, Fact("installed NumPy", source="package metadata")] = None
    numpy_requirement: Annotated[
        str | None, Fact('NumPy versions it declares: ">=2.0,<2.6"', source="package metadata")
    ] = None
    nvrtc_files: Annotated[
        tuple[str, ...] | None, Fact("NVRTC libraries that wheels brought", source="nvidia/*/lib")
    ] = None


@record
class LibraryCall:
    """A call into one of the libraries that CuPy uses, compared with NumPy."""

    library: Annotated[str, Fact('"elementwise", "cufft", "cublas", "nvrtc", "curand", "cusolver", "cusparse"')]
    version: Annotated[str, Fact("version the library reports; empty where unknown")] = ""
    relative_error: Annotated[float | None, Fact("largest error, relative to the largest value of the result")] = None
    error: Annotated[str, Fact("exception raised instead of a result; empty for none")] = ""


@record
class CupyRuntime:
    """What CuPy answered when it was imported in a process of its own."""

    import_error: Annotated[
        str | None, Fact("last line of the import's traceback; empty when it worked", source="import cupy")
    ] = None
    version: PackageVersion | None = None
    build_cuda_version: Annotated[CudaVersion | None, Fact("CUDA that CuPy was built with")] = None
    runtime_cuda_version: Annotated[
        CudaVersion | None, Fact("CUDA runtime that it loaded", source="runtimeGetVersion")
    ] = None
    driver_cuda_version: Annotated[
        CudaVersion | None, Fact("CUDA of the driver that it sees", source="driverGetVersion")
    ] = None
    nvrtc_version: Annotated[CudaVersion | None, Fact("NVRTC that it loaded", source="nvrtc.getVersion")] = None
    nvrtc_architectures: Annotated[
        tuple[str, ...] | None, Fact("architectures NVRTC knows", source="nvrtcGetSupportedArchs")
    ] = None
    cuda_root: Annotated[str | None, Fact("toolkit that CuPy uses; empty for none", source="get_cuda_path")] = None
    device_count: int | None = None
    device_error: Annotated[str | None, Fact("why no device is available; empty for no error")] = None
    calls: Annotated[tuple[LibraryCall, ...] | None, Fact("library calls compared with NumPy")] = None
    warnings: tuple[str, ...] | None = None


@record
class Container:
    """The container engines on this machine, as files tell without asking an engine."""

    docker_installed: Annotated[bool | None, Fact("a docker command is on PATH")] = None
    podman_installed: bool | None = None
    toolkit_installed: Annotated[bool | None, Fact("nvidia-ctk or nvidia-container-cli is on PATH")] = None
    nvidia_runtime_configured: Annotated[
        bool | None, Fact("the engine's configuration names the NVIDIA runtime", source="/etc/docker/daemon.json")
    ] = None
    cdi_devices: Annotated[
        tuple[str, ...] | None, Fact("CDI specifications of NVIDIA devices", source="/etc/cdi, /var/run/cdi")
    ] = None


@record
class Environment:
    """The environment variables that bear on GPUs; nothing else of the environment is read."""

    variables: Annotated[Mapping[str, str], Fact("set variables; a variable that is not there is unset")] = field(
        default_factory=dict
    )

    def get(self, name: str) -> str | None:
        """Return the variable's value, None where it is unset."""
        return self.variables.get(name)


@record
class Requirement:
    """A package that the working directory's project asks for."""

    name: Annotated[str, Fact("normalised name: lower case, hyphens")]
    specifier: Annotated[str, Fact('versions asked for: ">=2.4"; empty for any')] = ""
    source: Annotated[str, Fact('where it stands: "requirements.txt line 3"')] = ""


@record
class Project:
    """What the project in the working directory asks for."""

    requirements: Annotated[
        tuple[Requirement, ...] | None, Fact("packages named by requirements files and pyproject.toml")
    ] = None

    def requires(self, *names: str) -> Requirement | None:
        """Return the first requirement on one of `names`; a name may end with "*"."""
        for requirement in self.requirements or ():
            for name in names:
                if requirement.name == name or (name.endswith("*") and requirement.name.startswith(name[:-1])):
                    return requirement
        return None


@record
class ProbeReport:
    """How one probe of a section went."""

    section: str
    state: Annotated[str, Fact('"ok", "absent" (no such thing here), "failed", "timed-out" or "not-run"')]
    probe: Annotated[str, Fact('name of the question asked: "nvml"')] = ""
    source: Annotated[str, Fact('where its facts come from: "NVML", "import torch"')] = ""
    detail: Annotated[str, Fact("why it failed, with the last lines of its standard error")] = ""
    seconds: float = 0.0


@record
class Snapshot:
    """All facts about one machine. A section that could not be gathered is None."""

    taken_at: Annotated[str | None, Fact("UTC time in ISO 8601")] = None
    system: System | None = None
    driver: Driver | None = None
    devices: tuple[Device, ...] | None = None
    toolkit: Toolkit | None = None
    python: Python | None = None
    torch: Torch | None = None
    torch_runtime: TorchRuntime | None = None
    cupy: Cupy | None = None
    cupy_runtime: CupyRuntime | None = None
    container: Container | None = None
    environment: Environment | None = None
    project: Project | None = None
    reports: tuple[ProbeReport, ...] = ()

    def report(self, section: str) -> ProbeReport | None:
        """Return how the gathering of `section` went, the worst of its probes first; None where nobody tried."""
        reports = [report for report in self.reports if report.section == section]
        return min(reports, key=lambda report: STATES.index(report.state), default=None)


SECTIONS = tuple(f.name for f in dataclasses.fields(Snapshot) if f.name not in ("taken_at", "reports"))


def look_up(snapshot: Snapshot, fact: str) -> Any:
    """Return the value at a dotted path such as "torch.cuda_version", "devices[0].name" or "environment.CUDA_HOME".

    Raises:
        KeyError: there is no such fact.
    """
    value: Any = snapshot
    for step in fact.split("."):
        name, *indices = re.split(r"[\[\]]+", step.rstrip("]"))
        try:
            value = value.get(name) if isinstance(value, Environment) else getattr(value, name)
            for index in indices:
                value = value[int(index)]
        except (AttributeError, IndexError, TypeError, ValueError):
            raise KeyError(fact) from None
    return value
