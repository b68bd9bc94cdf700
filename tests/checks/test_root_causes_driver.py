"""One fault of a machine is one error, and the deepest cause comes first: every check over whole machines."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    ComputeCapability,
    Container,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    DeviceFile,
    Driver,
    DriverVersion,
    Environment,
    LibraryCall,
    Package,
    PackageVersion,
    PciGpu,
    PrecisionResult,
    Project,
    Python,
    Report,
    Severity,
    Snapshot,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from tests.own_checks import own_checks

GIB = 1024**3
R580 = DriverVersion((580, 95, 5))
R535 = DriverVersion((535, 183, 1))
SM_OF_CU130 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
SM_OF_CU128 = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
NODES = tuple(
    DeviceFile(path=path, mode="666", accessible=True) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")
)
RTX_4090 = PciGpu(
    address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090", bound_driver="nvidia"
)
LINUX = System(
    os="linux",
    machine="x86_64",
    kernel="6.8.0-45-generic",
    distribution="ubuntu",
    distribution_version="24.04",
    distribution_name="Ubuntu 24.04.1 LTS",
    glibc="2.39",
    wsl=0,
    container="",
    user_is_root=False,
    shm_total_bytes=32 * GIB,
    cpu_count=16,
    memlock_limit_bytes=0,
    secure_boot=False,
    iommu=False,
    pci_gpus=(RTX_4090,),
    amd_gfx_targets=(),
)
DRIVER = Driver(
    installed=True,
    version=R580,
    module_version=R580,
    library_version=R580,
    cuda_version=CudaVersion(13, 0),
    module_flavor="open",
    module_loaded=True,
    uvm_loaded=True,
    nouveau_loaded=False,
    module_built_for_kernel=True,
    dkms=True,
    libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    libcuda_error="",
    libcuda_files=("/usr/lib/x86_64-linux-gnu/libcuda.so.1", f"/usr/lib/x86_64-linux-gnu/libcuda.so.{R580}"),
    cuda_init_code=0,
    cuda_init_error="",
    cuda_device_count=1,
    nvml_code=0,
    nvml_error="",
    device_files=NODES,
    fabric_manager="not-installed",
    nvswitches=0,
    xids=(),
    kernel_messages=(),
)
DEVICE = Device(
    nvml_index=0,
    name="NVIDIA GeForce RTX 4090",
    uuid="GPU-11111111-2222-3333-4444-555555555555",
    compute_capability=ComputeCapability(8, 9),
    pci_address="00000000:01:00.0",
    pci_device_id="2684",
    memory_total_bytes=24 * GIB,
    memory_used_bytes=GIB // 4,
    processes=(),
    power_draw_watts=25.0,
    power_limit_watts=450.0,
    power_limit_default_watts=450.0,
    clock_sm_mhz=2520,
    clock_sm_max_mhz=3105,
    throttle_reasons=(),
    performance_state=2,
    utilization_percent=0,
    temperature_celsius=38,
    temperature_slowdown_celsius=90,
    mig_enabled=False,
    mig_uuids=(),
    persistence_enabled=True,
    compute_mode="default",
    pcie_generation=4,
    pcie_generation_max=4,
    pcie_width=16,
    pcie_width_max=16,
    fabric_state="not-supported",
)
PYTHON = Python(
    version=PackageVersion("3.12.3"),
    executable="/home/user/.venv/bin/python",
    prefix="/home/user/.venv",
    environment="venv",
    active_environment="/home/user/.venv",
    installer="pip",
    externally_managed=False,
    free_threaded=False,
    platform_tag="linux_x86_64",
    packages=(
        Package(name="torch", version=PackageVersion("2.13.0+cu130"), installer="pip"),
        Package(name="cupy-cuda13x", version=PackageVersion("14.2.0"), installer="pip"),
        Package(name="numpy", version=PackageVersion("2.3.5"), installer="pip"),
    ),
    shadowed_modules=(),
)
TORCH = Torch(
    installed=True,
    version=PackageVersion("2.13.0+cu130"),
    build="cuda",
    cuda_version=CudaVersion(13, 0),
    hip_version="",
    architectures=SM_OF_CU130,
    cxx11_abi=True,
    missing_libraries=(),
    conda_build="",
    conda_cpuonly=False,
)
RUNTIME = TorchRuntime(
    import_error="",
    version=PackageVersion("2.13.0+cu130"),
    cuda_version=CudaVersion(13, 0),
    hip_version="",
    available=True,
    availability_error="",
    device_count=1,
    device_names=("NVIDIA GeForce RTX 4090",),
    device_capabilities=(ComputeCapability(8, 9),),
    architectures=SM_OF_CU130,
    cudnn_version=92000,
    cudnn_error="",
    matmul_tf32=False,
    cudnn_benchmark=False,
    warnings=(),
    precision_results=(PrecisionResult(device="cuda:0", precision="fp32", relative_error=1e-7),),
)
CUPY = Cupy(
    distributions=(Package(name="cupy-cuda13x", version=PackageVersion("14.2.0"), installer="pip"),),
    version=PackageVersion("14.2.0"),
    platform="cuda",
    cuda_major=13,
    numpy_version=PackageVersion("2.3.5"),
    numpy_requirement=">=2.0,<2.6",
    nvrtc_files=("/home/user/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",),
)
CUPY_RUNTIME = CupyRuntime(
    import_error="",
    version=PackageVersion("14.2.0"),
    build_cuda_version=CudaVersion(13, 0),
    runtime_cuda_version=CudaVersion(13, 0),
    driver_cuda_version=CudaVersion(13, 0),
    nvrtc_version=CudaVersion(13, 0),
    nvrtc_architectures=SM_OF_CU130,
    device_count=1,
    device_error="",
    calls=(LibraryCall(library="elementwise", relative_error=0.0),),
    warnings=(),
)
HEALTHY = Snapshot(
    taken_at="2026-11-20T12:00:00Z",
    system=LINUX,
    driver=DRIVER,
    devices=(DEVICE,),
    toolkit=Toolkit(nvcc_path="", toolkits=(), library_path_libraries=(), system_libraries=(), host_compiler=""),
    python=PYTHON,
    torch=TORCH,
    torch_runtime=RUNTIME,
    cupy=CUPY,
    cupy_runtime=CUPY_RUNTIME,
    container=Container(
        docker_installed=False,
        podman_installed=False,
        toolkit_installed=False,
        nvidia_runtime_configured=False,
        cdi_devices=(),
    ),
    environment=Environment(),
    project=Project(requirements=()),
)


def without_cuda(torch_error: str, cupy_error: str) -> dict[str, Any]:
    """Return the runtime sections of a machine on which CUDA cannot be initialised."""
    return {
        "torch_runtime": replace(
            RUNTIME,
            available=False,
            availability_error=torch_error,
            device_count=0,
            device_names=(),
            device_capabilities=(),
            precision_results=(),
        ),
        "cupy_runtime": replace(
            CUPY_RUNTIME,
            driver_cuda_version=None,
            device_count=0,
            device_error=cupy_error,
            calls=(),
        ),
    }


NO_DRIVER = without_cuda(
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from "
    "http://www.nvidia.com/Download/index.aspx",
    "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
)
NO_DEVICE = without_cuda("No CUDA GPUs are available", "cudaErrorNoDevice: no CUDA-capable device is detected")
NOTHING = Driver(
    installed=False,
    module_loaded=False,
    uvm_loaded=False,
    nouveau_loaded=False,
    module_built_for_kernel=False,
    dkms=False,
    libcuda_path="",
    libcuda_error="libcuda.so.1: cannot open shared object file: No such file or directory",
    libcuda_files=(),
    nvml_code=12,
    nvml_error="NVML Shared Library Not Found",
    device_files=(),
    fabric_manager="not-installed",
    nvswitches=0,
)
UNLOADED = replace(
    DRIVER,
    version=None,
    module_version=None,
    module_loaded=False,
    uvm_loaded=False,
    module_built_for_kernel=False,
    cuda_init_code=100,
    cuda_init_error="CUDA_ERROR_NO_DEVICE",
    cuda_device_count=0,
    nvml_code=9,
    nvml_error="Driver Not Loaded",
    device_files=(),
)
DRIVER_MISSING = replace(
    HEALTHY,
    system=replace(LINUX, pci_gpus=(replace(RTX_4090, bound_driver=""),)),
    driver=NOTHING,
    devices=(),
    **NO_DRIVER,
)
NOT_LOADED = replace(
    HEALTHY,
    system=replace(LINUX, kernel="6.8.0-50-generic", pci_gpus=(replace(RTX_4090, bound_driver=""),)),
    driver=UNLOADED,
    devices=(),
    **NO_DEVICE,
)
MISMATCH = replace(
    HEALTHY,
    driver=replace(
        DRIVER,
        version=None,
        module_version=DriverVersion((580, 82, 7)),
        cuda_init_code=803,
        cuda_init_error="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        cuda_device_count=0,
        nvml_code=18,
        nvml_error="Driver/library version mismatch",
    ),
    devices=None,
    **without_cuda(
        "Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver "
        "combination",
        "cudaErrorSystemDriverMismatch: system has unsupported display driver / cuda driver combination",
    ),
)
TOO_OLD = replace(
    HEALTHY,
    driver=replace(
        DRIVER,
        version=R535,
        module_version=R535,
        library_version=R535,
        cuda_version=CudaVersion(12, 2),
        module_flavor="proprietary",
    ),
    **without_cuda(
        "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver",
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
    ),
)
IN_DOCKER = replace(LINUX, container="docker", user_is_root=True, shm_total_bytes=GIB)
WITHOUT_GPU = replace(HEALTHY, system=IN_DOCKER, driver=NOTHING, devices=(), **NO_DRIVER)
NVML_LOST = replace(
    HEALTHY,
    system=IN_DOCKER,
    driver=replace(
        DRIVER,
        version=None,
        cuda_init_code=999,
        cuda_init_error="CUDA_ERROR_UNKNOWN",
        cuda_device_count=None,
        nvml_code=999,
        nvml_error="Unknown Error",
        device_files=tuple(replace(node, accessible=False, error="Operation not permitted") for node in NODES),
    ),
    devices=None,
    **without_cuda("CUDA unknown error - this may be due to an incorrectly set up environment", "cudaErrorUnknown"),
)
ROCM_BUILD = replace(
    HEALTHY,
    torch=replace(
        TORCH,
        version=PackageVersion("2.13.0+rocm7.2"),
        build="rocm",
        cuda_version=None,
        hip_version="7.2.1",
        architectures=("gfx90a", "gfx1100"),
    ),
    torch_runtime=replace(
        RUNTIME,
        version=PackageVersion("2.13.0+rocm7.2"),
        cuda_version=None,
        hip_version="7.2.1",
        available=False,
        availability_error="No HIP GPUs are available",
        device_count=0,
        device_names=(),
        device_capabilities=(),
        architectures=(),
        precision_results=(),
    ),
)
WSL_IN_ORDER = replace(
    HEALTHY,
    system=replace(
        LINUX, kernel="5.15.153.1-microsoft-standard-WSL2", wsl=2, pci_gpus=(), secure_boot=None, iommu=None
    ),
    driver=replace(
        DRIVER,
        version=DriverVersion((581, 29)),
        module_version=None,
        library_version=None,
        module_flavor=None,
        module_loaded=False,
        uvm_loaded=False,
        module_built_for_kernel=None,
        dkms=False,
        libcuda_path="/usr/lib/wsl/lib/libcuda.so.1",
        libcuda_files=("/usr/lib/wsl/lib/libcuda.so.1",),
        device_files=(DeviceFile(path="/dev/dxg", mode="666", accessible=True),),
    ),
)
WSL_LINUX_DRIVER = replace(
    WSL_IN_ORDER,
    driver=replace(
        WSL_IN_ORDER.driver or DRIVER,
        version=None,
        cuda_version=None,
        library_version=R535,
        libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        libcuda_files=(f"/usr/lib/x86_64-linux-gnu/libcuda.so.{R535}", "/usr/lib/wsl/lib/libcuda.so.1"),
        cuda_init_code=100,
        cuda_init_error="CUDA_ERROR_NO_DEVICE",
        cuda_device_count=0,
        nvml_code=17,
        nvml_error="GPU access blocked by the operating system",
    ),
    devices=(),
    **NO_DEVICE,
)
A10_MINOR = replace(
    HEALTHY,
    system=replace(LINUX, pci_gpus=(replace(RTX_4090, device_id="2236", name="A10"),)),
    driver=replace(
        DRIVER,
        version=R535,
        module_version=R535,
        library_version=R535,
        cuda_version=CudaVersion(12, 2),
        module_flavor="proprietary",
    ),
    devices=(
        replace(
            DEVICE,
            name="NVIDIA A10",
            compute_capability=ComputeCapability(8, 6),
            pci_device_id="2236",
            power_limit_watts=150.0,
            power_limit_default_watts=150.0,
        ),
    ),
    python=replace(
        PYTHON,
        packages=(
            Package(name="torch", version=PackageVersion("2.9.1+cu128"), installer="pip"),
            Package(name="numpy", version=PackageVersion("2.3.5"), installer="pip"),
        ),
    ),
    torch=replace(
        TORCH,
        version=PackageVersion("2.9.1+cu128"),
        cuda_version=CudaVersion(12, 8),
        architectures=SM_OF_CU128,
    ),
    torch_runtime=replace(
        RUNTIME,
        version=PackageVersion("2.9.1+cu128"),
        cuda_version=CudaVersion(12, 8),
        architectures=SM_OF_CU128,
        device_names=("NVIDIA A10",),
        device_capabilities=(ComputeCapability(8, 6),),
    ),
    cupy=Cupy(distributions=()),
    cupy_runtime=None,
)
GB10 = replace(
    HEALTHY,
    system=replace(
        LINUX, machine="aarch64", pci_gpus=(replace(RTX_4090, address="000f:01:00.0", device_id="2E12", name="GB10"),)
    ),
    devices=(
        replace(
            DEVICE,
            name="NVIDIA GB10",
            compute_capability=ComputeCapability(12, 1),
            pci_address="0000000f:01:00.0",
            pci_device_id="2E12",
            memory_total_bytes=None,
            memory_used_bytes=None,
            power_limit_watts=None,
            power_limit_default_watts=None,
        ),
    ),
    python=replace(PYTHON, platform_tag="linux_aarch64"),
    torch=replace(TORCH, architectures=("sm_80", "sm_90", "sm_100", "sm_110", "sm_120")),
    torch_runtime=replace(
        RUNTIME,
        architectures=("sm_80", "sm_90", "sm_100", "sm_110", "sm_120"),
        device_names=("NVIDIA GB10",),
        device_capabilities=(ComputeCapability(12, 1),),
    ),
    cupy_runtime=replace(CUPY_RUNTIME, nvrtc_architectures=(*SM_OF_CU130, "sm_121")),
)
CPU_ONLY = replace(
    HEALTHY,
    system=replace(LINUX, pci_gpus=()),
    driver=NOTHING,
    devices=(),
    python=replace(PYTHON, packages=(Package(name="torch", version=PackageVersion("2.13.0+cpu"), installer="pip"),)),
    torch=replace(
        TORCH, version=PackageVersion("2.13.0+cpu"), build="cpu", cuda_version=None, architectures=(), hip_version=""
    ),
    torch_runtime=replace(
        RUNTIME,
        version=PackageVersion("2.13.0+cpu"),
        cuda_version=None,
        available=False,
        availability_error="Torch not compiled with CUDA enabled",
        device_count=0,
        device_names=(),
        device_capabilities=(),
        architectures=(),
        cudnn_version=0,
        precision_results=(PrecisionResult(device="cpu", precision="fp32", relative_error=1e-7),),
    ),
    cupy=Cupy(distributions=()),
    cupy_runtime=None,
)
IDLE = replace(
    HEALTHY,
    devices=(
        replace(
            DEVICE,
            performance_state=8,
            throttle_reasons=("gpu_idle",),
            clock_sm_mhz=210,
            pcie_generation=1,
        ),
    ),
)
POWER_CAP = replace(
    HEALTHY,
    devices=(replace(DEVICE, throttle_reasons=("sw_power_cap",), power_draw_watts=448.0, utilization_percent=100),),
)


def diagnosed(snapshot: Snapshot) -> Report:
    return run_checks(own_checks(), snapshot)


@pytest.mark.parametrize(
    ("snapshot", "cause"),
    [
        pytest.param(DRIVER_MISSING, "driver-missing", id="driver missing"),
        pytest.param(NOT_LOADED, "driver-not-loaded", id="driver not loaded"),
        pytest.param(MISMATCH, "driver-library-mismatch", id="library mismatch"),
        pytest.param(TOO_OLD, "driver-too-old", id="driver too old"),
        pytest.param(WITHOUT_GPU, "container-without-gpu", id="container without GPU"),
        pytest.param(NVML_LOST, "container-nvml-lost", id="container lost the GPU"),
        pytest.param(ROCM_BUILD, "rocm-build-on-nvidia", id="ROCm build"),
        pytest.param(WSL_LINUX_DRIVER, "wsl-driver-problem", id="Linux driver in WSL"),
    ],
)
def test_one_fault_is_one_error(snapshot: Snapshot, cause: str) -> None:
    report = diagnosed(snapshot)
    assert report.findings[0].check_id == cause
    errors = [finding.check_id for finding in report.findings if finding.severity is Severity.ERROR]
    assert errors == [cause]
    assert all(finding.severity is not Severity.WARNING for finding in report.findings)
    assert report.verdict == "error"


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(HEALTHY, id="RTX 4090, R580, cu130"),
        pytest.param(A10_MINOR, id="A10, R535, cu128: minor-version compatibility"),
        pytest.param(GB10, id="GB10, sm_121 runs sm_120"),
        pytest.param(WSL_IN_ORDER, id="WSL in order"),
        pytest.param(IDLE, id="idle in P8"),
        pytest.param(POWER_CAP, id="under load at its power limit"),
    ],
)
def test_a_healthy_machine_is_called_healthy(snapshot: Snapshot) -> None:
    report = diagnosed(snapshot)
    assert [finding.check_id for finding in report.findings if finding.severity is not Severity.INFO] == []
    assert report.verdict == "healthy"


def test_a_cpu_build_without_a_gpu_is_one_warning() -> None:
    report = diagnosed(CPU_ONLY)
    worst = [finding.check_id for finding in report.findings if finding.severity is not Severity.INFO]
    assert (worst, report.verdict) == (["no-nvidia-gpu"], "warning")


def test_a_cuda_build_without_a_gpu_is_one_error() -> None:
    snapshot = replace(HEALTHY, system=replace(LINUX, pci_gpus=()), driver=NOTHING, devices=(), **NO_DRIVER)
    report = diagnosed(snapshot)
    assert report.findings[0].check_id == "no-nvidia-gpu"
    assert [finding.severity for finding in report.findings].count(Severity.ERROR) == 1
    assert report.verdict == "error"


@pytest.mark.parametrize("snapshot", [HEALTHY, DRIVER_MISSING, NOT_LOADED, MISMATCH, TOO_OLD, WITHOUT_GPU, NVML_LOST])
def test_no_check_crashes(snapshot: Snapshot) -> None:
    assert [result.reason for result in diagnosed(snapshot).results if result.reason.startswith("crashed")] == []
