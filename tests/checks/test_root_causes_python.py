"""Whole machines: the root cause comes first, alone in its severity, with the command that mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Environment,
    LibraryCall,
    Package,
    PackageVersion,
    PciGpu,
    Project,
    Python,
    Requirement,
    Severity,
    SharedLibrary,
    Snapshot,
    System,
    Toolkit,
    ToolkitInstall,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.report import Report
from tests.own_checks import own_checks

VERIFY = '-c "import torch; print(torch.__version__, torch.cuda.is_available())"'
VERIFY_CUPY = '-c "import cupy; print(cupy.__version__, int(cupy.arange(3).sum()))"'
TURING_ON = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
UNTIL_HOPPER = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
LINUX = System(
    os="linux", machine="x86_64", glibc="2.39", wsl=0, container="", distribution="ubuntu", user_is_root=False
)
INDEX = "https://download.pytorch.org/whl"
VENV = "/home/user/.venv/bin/python"


def machine(**sections: Any) -> Snapshot:
    return Snapshot(**{"environment": Environment(), "project": Project(requirements=()), **sections})


def diagnose(snapshot: Snapshot) -> Report:
    report = run_checks(own_checks(), snapshot)
    assert not [result.reason for result in report.results if result.outcome.value == "crashed"]
    return report


def ids(report: Report, severity: Severity) -> list[str]:
    return [finding.check_id for finding in report.findings if finding.severity is severity]


def pip(*packages: tuple[str, str], installer: str = "pip", **fields: Any) -> Python:
    """A virtual environment; installer: "pip" or "uv"."""
    values = {
        "version": PackageVersion("3.12.3"),
        "executable": VENV,
        "prefix": "/home/user/.venv",
        "environment": "venv",
        "active_environment": "/home/user/.venv",
        "installer": installer,
        "externally_managed": False,
        "free_threaded": False,
        "platform_tag": "linux_x86_64",
        "packages": tuple(
            Package(name=name, version=PackageVersion(version), installer=installer, location="/site")
            for name, version in packages
        ),
        "shadowed_modules": (),
    }
    return Python(**{**values, **fields})


def conda(*packages: Package) -> Python:
    return Python(
        version=PackageVersion("3.11.9"),
        executable="/opt/conda/envs/ml/bin/python",
        prefix="/opt/conda/envs/ml",
        environment="conda",
        active_environment="/opt/conda/envs/ml",
        installer="conda",
        externally_managed=False,
        free_threaded=False,
        platform_tag="linux_x86_64",
        packages=packages,
        shadowed_modules=(),
    )


def gpu(name: str, capability: str, device_id: str) -> Device:
    return Device(
        nvml_index=0,
        name=name,
        uuid="GPU-6f1d9a54-2a47-43a5-a1b5-3c1b3e3f7a10",
        compute_capability=ComputeCapability.parse(capability),
        pci_device_id=device_id,
    )


def driver(version: str, cuda: str) -> Driver:
    return Driver(
        installed=True,
        version=DriverVersion.parse(version),
        module_version=DriverVersion.parse(version),
        library_version=DriverVersion.parse(version),
        cuda_version=CudaVersion.parse(cuda),
        module_flavor="open",
        module_loaded=True,
        uvm_loaded=True,
        nouveau_loaded=False,
        libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        libcuda_error="",
        cuda_init_code=0,
        cuda_device_count=1,
        nvml_code=0,
        nvml_error="",
    )


RTX_4090 = gpu("NVIDIA GeForce RTX 4090", "8.9", "2684")
RTX_5090 = gpu("NVIDIA GeForce RTX 5090", "12.0", "2B85")
GTX_1080 = gpu("NVIDIA GeForce GTX 1080", "6.1", "1B80")
ON_BUS = replace(LINUX, pci_gpus=(PciGpu(address="01:00.0", vendor="nvidia", device_id="2684", name="RTX 4090"),))
NO_CUPY = Cupy(distributions=())


def torch(version: str, build: str, cuda: str | None, architectures: tuple[str, ...], **fields: Any) -> Torch:
    return Torch(
        **{
            "installed": True,
            "version": PackageVersion(version),
            "build": build,
            "cuda_version": CudaVersion.parse(cuda) if cuda else None,
            "hip_version": "",
            "architectures": architectures,
            "missing_libraries": (),
            "conda_build": "",
            "conda_cpuonly": False,
            **fields,
        }
    )


def on_cpu(version: str) -> TorchRuntime:
    return TorchRuntime(
        import_error="",
        version=PackageVersion(version),
        hip_version="",
        available=False,
        availability_error="",
        device_count=0,
        architectures=(),
        cudnn_version=0,
        cudnn_error="",
        mps_built=False,
        mps_available=False,
        warnings=(),
        precision_results=(),
    )


CPU_BUILD = torch("2.13.0+cpu", "cpu", None, ())


def s2(python: Python) -> Snapshot:
    """S2: RTX 4090, driver 550 and the CPU build."""
    return machine(
        system=ON_BUS,
        driver=driver("550.120", "12.4"),
        devices=(RTX_4090,),
        python=python,
        torch=CPU_BUILD,
        torch_runtime=on_cpu("2.13.0+cpu"),
        cupy=NO_CUPY,
    )


def test_cpu_build_with_pip() -> None:
    report = diagnose(s2(pip(("torch", "2.13.0+cpu"), ("torchvision", "0.28.0+cpu"))))
    assert report.findings[0].check_id == "torch-cpu-build"
    assert ids(report, Severity.ERROR) == ["torch-cpu-build"]
    assert report.findings[0].remedies[0].commands == (
        f"{VENV} -m pip install --index-url {INDEX}/cu126 torch==2.13.0+cu126 torchvision==0.28.0+cu126",
        f"{VENV} {VERIFY}",
    )


def test_cpu_build_with_uv() -> None:
    report = diagnose(s2(pip(("torch", "2.13.0+cpu"), installer="uv")))
    assert ids(report, Severity.ERROR) == ["torch-cpu-build"]
    assert report.findings[0].remedies[0].commands == (
        f"uv pip install --python {VENV} --index-url {INDEX}/cu126 torch==2.13.0+cu126",
        f"{VENV} {VERIFY}",
    )


def test_cpu_build_from_a_pasted_report() -> None:
    """What torch.utils.collect_env and nvidia-smi tell: nothing lies on a disk that could be read."""
    report = diagnose(
        Snapshot(
            system=System(os="linux"),
            driver=Driver(version=DriverVersion.parse("550.120"), cuda_version=CudaVersion(12, 4)),
            devices=(Device(nvml_index=0, name="NVIDIA GeForce RTX 4090"),),
            torch_runtime=TorchRuntime(version=PackageVersion("2.13.0+cpu"), available=False),
        )
    )
    assert report.findings[0].check_id == "torch-cpu-build"
    assert ids(report, Severity.ERROR) == ["torch-cpu-build"]
    assert report.findings[0].remedies[0].commands[0] == (
        f"python -m pip install --index-url {INDEX}/cu126 torch==2.13.0+cu126"
    )


def test_conda_chose_the_cpu_build() -> None:
    python = conda(
        Package(name="torch", version=PackageVersion("2.5.1"), installer="conda", location="/site"),
        Package(name="cpuonly", version=PackageVersion("2.0"), installer="conda", location="/conda-meta"),
    )
    chosen = torch("2.5.1", "cpu", None, (), conda_build="py3.11_cpu_0", conda_cpuonly=True)
    report = diagnose(
        machine(
            system=ON_BUS,
            driver=driver("570.86.15", "12.8"),
            devices=(RTX_4090,),
            python=python,
            torch=chosen,
            torch_runtime=on_cpu("2.5.1"),
            cupy=NO_CUPY,
        )
    )
    assert report.findings[0].check_id == "conda-cpuonly-solved"
    assert ids(report, Severity.ERROR) == ["conda-cpuonly-solved"]
    caused = {finding.check_id: finding.caused_by for finding in report.findings}
    assert caused["torch-cpu-build"] == "conda-cpuonly-solved"
    assert report.findings[0].remedies[0].commands == (
        "conda remove --yes --prefix /opt/conda/envs/ml cpuonly",
        "conda install --yes --prefix /opt/conda/envs/ml --channel conda-forge pytorch-gpu cuda-version=12",
        f"/opt/conda/envs/ml/bin/python {VERIFY}",
    )


def test_the_default_wheel_of_windows() -> None:
    executable = r"C:\Users\me\.venv\Scripts\python.exe"
    prefix = r"C:\Users\me\.venv"
    report = diagnose(
        machine(
            system=System(os="windows", machine="AMD64", wsl=0, container=""),
            driver=Driver(installed=True, version=DriverVersion.parse("566.36"), cuda_version=CudaVersion(12, 7)),
            devices=(RTX_4090,),
            python=pip(
                ("torch", "2.9.1"),
                executable=executable,
                prefix=prefix,
                active_environment=prefix,
                platform_tag="win_amd64",
            ),
            torch=torch("2.9.1+cpu", "cpu", None, ()),
            torch_runtime=on_cpu("2.9.1+cpu"),
            cupy=NO_CUPY,
        )
    )
    assert report.findings[0].check_id == "windows-pypi-cpu-wheel"
    assert ids(report, Severity.ERROR) == ["windows-pypi-cpu-wheel"]
    assert report.findings[0].remedies[0].commands == (
        rf"{executable} -m pip install --index-url {INDEX}/cu126 torch==2.9.1+cu126",
        rf"{executable} {VERIFY}",
    )


def s7(device: Device, build: Torch, on: Driver) -> Snapshot:
    """S7: a build without machine code for the device. is_available() is true."""
    return machine(
        system=LINUX,
        driver=on,
        devices=(device,),
        python=pip(("torch", str(build.version))),
        torch=build,
        torch_runtime=TorchRuntime(
            import_error="",
            version=build.version,
            cuda_version=build.cuda_version,
            hip_version="",
            available=True,
            availability_error="",
            device_count=1,
            device_names=(str(device.name),),
            device_capabilities=(device.compute_capability or ComputeCapability(0, 0),),
            architectures=build.architectures,
            cudnn_error="",
            precision_results=(),
        ),
        cupy=NO_CUPY,
    )


def test_a_gpu_newer_than_the_build() -> None:
    build = torch("2.7.1+cu118", "cuda", "11.8", ("sm_37", *UNTIL_HOPPER))
    report = diagnose(s7(RTX_5090, build, driver("580.65.06", "13.0")))
    assert report.findings[0].check_id == "torch-no-kernel-for-device"
    assert ids(report, Severity.ERROR) == ["torch-no-kernel-for-device"]
    assert report.findings[0].remedies[0].commands == (
        f"{VENV} -m pip install --index-url {INDEX}/cu128 torch==2.7.1+cu128",
        f"{VENV} {VERIFY}",
    )


def test_a_gpu_older_than_the_build() -> None:
    build = torch("2.13.0+cu130", "cuda", "13.0", TURING_ON)
    report = diagnose(s7(GTX_1080, build, driver("580.65.06", "13.0")))
    assert report.findings[0].check_id == "torch-no-kernel-for-device"
    assert ids(report, Severity.ERROR) == ["torch-no-kernel-for-device"]
    assert report.findings[0].remedies[0].commands == (
        f"{VENV} -m pip install --index-url {INDEX}/cu126 torch==2.13.0+cu126",
        f"{VENV} {VERIFY}",
    )


def working(version: str, cuda: str) -> TorchRuntime:
    return TorchRuntime(
        import_error="",
        version=PackageVersion(version),
        cuda_version=CudaVersion.parse(cuda),
        hip_version="",
        available=True,
        availability_error="",
        device_count=1,
        device_names=("NVIDIA GeForce RTX 4090",),
        device_capabilities=(ComputeCapability(8, 9),),
        architectures=TURING_ON,
        cudnn_version=92000,
        cudnn_error="",
        warnings=(),
    )


def working_cupy() -> CupyRuntime:
    names = ("nvrtc", "elementwise", "cublas", "cufft", "curand", "cusolver", "cusparse")
    return CupyRuntime(
        import_error="",
        version=PackageVersion("14.2.0"),
        build_cuda_version=CudaVersion(13, 0),
        runtime_cuda_version=CudaVersion(13, 0),
        driver_cuda_version=CudaVersion(13, 0),
        nvrtc_version=CudaVersion(13, 0),
        nvrtc_architectures=("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"),
        device_count=1,
        device_error="",
        calls=tuple(LibraryCall(library=name, relative_error=1e-15) for name in names),
        warnings=(),
    )


def cupy_of(*names: str) -> Cupy:
    return Cupy(
        distributions=tuple(
            Package(name=name, version=PackageVersion("14.2.0"), installer="pip", location="/site") for name in names
        ),
        version=PackageVersion("14.2.0"),
        platform="cuda",
        cuda_major=13,
        numpy_version=PackageVersion("2.3.1"),
        numpy_requirement=">=2.0,<2.6",
        nvrtc_files=("/site/nvidia/cu13/lib/libnvrtc.so.13",),
    )


HEALTHY = machine(
    system=ON_BUS,
    driver=driver("580.65.06", "13.0"),
    devices=(RTX_4090,),
    python=pip(
        ("torch", "2.13.0"),
        ("torchvision", "0.28.0"),
        ("numpy", "2.3.1"),
        ("nvidia-ml-py", "13.580.82"),
        ("nvidia-cudnn-cu13", "9.20.0.48"),
        ("cupy-cuda13x", "14.2.0"),
    ),
    torch=torch("2.13.0+cu130", "cuda", "13.0", TURING_ON),
    torch_runtime=working("2.13.0+cu130", "13.0"),
    cupy=cupy_of("cupy-cuda13x"),
    cupy_runtime=working_cupy(),
)


def test_a_healthy_machine() -> None:
    report = diagnose(HEALTHY)
    assert (ids(report, Severity.ERROR), ids(report, Severity.WARNING)) == ([], [])
    assert report.verdict == "healthy"


def test_every_gpu_is_hidden() -> None:
    runtime = TorchRuntime(
        import_error="",
        version=PackageVersion("2.13.0+cu130"),
        cuda_version=CudaVersion(13, 0),
        hip_version="",
        available=False,
        availability_error="RuntimeError: No CUDA GPUs are available",
        device_count=0,
        architectures=TURING_ON,
        cudnn_error="",
        precision_results=(),
    )
    hidden = replace(
        driver("580.65.06", "13.0"),
        cuda_init_code=100,
        cuda_init_error="CUDA_ERROR_NO_DEVICE",
        cuda_device_count=0,
    )
    report = diagnose(
        machine(
            system=ON_BUS,
            driver=hidden,
            devices=(RTX_4090,),
            python=pip(("torch", "2.13.0")),
            torch=torch("2.13.0+cu130", "cuda", "13.0", TURING_ON),
            torch_runtime=runtime,
            cupy=NO_CUPY,
            environment=Environment(variables={"CUDA_VISIBLE_DEVICES": ""}),
        )
    )
    assert report.findings[0].check_id == "cuda-visible-devices-hides-gpu"
    assert ids(report, Severity.ERROR) == ["cuda-visible-devices-hides-gpu"]
    caused = {finding.check_id: finding.caused_by for finding in report.findings}
    assert caused["torch-cuda-unavailable"] == "cuda-visible-devices-hides-gpu"
    assert report.findings[0].remedies[0].commands[0] == "unset CUDA_VISIBLE_DEVICES"


def test_two_cupy_distributions() -> None:
    runtime = working_cupy()
    failing = (LibraryCall(library="elementwise", error="ImportError: libnvrtc.so.12: cannot open shared object file"),)
    report = diagnose(
        machine(
            system=ON_BUS,
            driver=driver("580.65.06", "13.0"),
            devices=(RTX_4090,),
            python=pip(("cupy-cuda12x", "14.2.0"), ("cupy-cuda13x", "14.2.0"), ("numpy", "2.3.1")),
            torch=Torch(installed=False),
            cupy=cupy_of("cupy-cuda12x", "cupy-cuda13x"),
            cupy_runtime=replace(runtime, calls=failing),
        )
    )
    assert report.findings[0].check_id == "cupy-multiple-packages"
    assert ids(report, Severity.ERROR) == ["cupy-multiple-packages"]
    assert report.findings[0].remedies[0].commands == (
        f"{VENV} -m pip uninstall -y cupy-cuda12x cupy-cuda13x",
        f"{VENV} -m pip install 'cupy-cuda13x[ctk]'",
        f"{VENV} {VERIFY_CUPY}",
    )


def test_no_gpu_and_a_cpu_build() -> None:
    """S1: nothing is wrong with it, but programs compute on the CPU."""
    report = diagnose(
        machine(
            system=replace(LINUX, pci_gpus=()),
            driver=Driver(installed=False, module_loaded=False, nouveau_loaded=False, libcuda_path="", nvml_code=12),
            devices=(),
            python=pip(("torch", "2.13.0+cpu"), ("torchvision", "0.28.0+cpu"), ("numpy", "2.3.1")),
            torch=CPU_BUILD,
            torch_runtime=on_cpu("2.13.0+cpu"),
            cupy=NO_CUPY,
        )
    )
    assert (ids(report, Severity.ERROR), ids(report, Severity.WARNING)) == ([], ["no-nvidia-gpu"])
    assert report.verdict == "warning"


def test_the_wrong_environment() -> None:
    python = pip(
        executable="/usr/bin/python3", prefix="/usr", environment="system", active_environment="/home/user/.venv"
    )
    report = diagnose(
        machine(
            system=ON_BUS,
            driver=driver("580.65.06", "13.0"),
            devices=(RTX_4090,),
            python=python,
            torch=Torch(installed=False),
            cupy=NO_CUPY,
            project=Project(requirements=(Requirement(name="torch", source="requirements.txt line 1"),)),
        )
    )
    assert report.findings[0].check_id == "wrong-python-environment"
    assert ids(report, Severity.ERROR) == ["wrong-python-environment"]
    assert report.findings[0].remedies[0].commands == (
        '/home/user/.venv/bin/python -c "import torch; print(torch.__version__)"',
        "gpudoctor check --python /home/user/.venv/bin/python",
    )


def test_minor_version_compatibility_is_healthy() -> None:
    """S4: a cu128 build on a driver of the R535 branch."""
    a10 = gpu("NVIDIA A10", "8.6", "2236")
    build = torch("2.9.1+cu128", "cuda", "12.8", TURING_ON)
    runtime = replace(working("2.9.1+cu128", "12.8"), device_capabilities=(ComputeCapability(8, 6),))
    report = diagnose(
        machine(
            system=ON_BUS,
            driver=driver("535.230.02", "12.2"),
            devices=(a10,),
            python=pip(("torch", "2.9.1"), ("torchaudio", "2.9.1")),
            torch=build,
            torch_runtime=runtime,
            cupy=NO_CUPY,
        )
    )
    assert (ids(report, Severity.ERROR), ids(report, Severity.WARNING)) == ([], [])


def test_a_cluster_with_modules_is_healthy() -> None:
    """LD_LIBRARY_PATH, a toolkit of another major version, a newer gcc and one of several GPUs: all of it works."""
    libraries = tuple(
        SharedLibrary(soname=name, path=f"/apps/cuda/12.4/lib64/{name}")
        for name in ("libcudart.so.12", "libcublas.so.12")
    )
    report = diagnose(
        replace(
            HEALTHY,
            devices=(RTX_4090, replace(RTX_4090, nvml_index=1, uuid="GPU-71c0")),
            toolkit=Toolkit(
                nvcc_path="/apps/cuda/12.4/bin/nvcc",
                nvcc_version=CudaVersion(12, 4),
                toolkits=(ToolkitInstall(path="/apps/cuda/12.4", version=CudaVersion(12, 4), has_nvcc=True),),
                library_path_libraries=libraries,
                system_libraries=(),
                host_compiler="gcc",
                host_compiler_version=(14, 2, 0),
                host_compiler_max=13,
            ),
            environment=Environment(
                variables={"CUDA_VISIBLE_DEVICES": "0", "LD_LIBRARY_PATH": "/apps/cuda/12.4/lib64"}
            ),
        )
    )
    assert (ids(report, Severity.ERROR), ids(report, Severity.WARNING)) == ([], [])
    advice = ids(report, Severity.INFO)
    assert {"toolkit-mismatch-building-extension", "host-compiler-too-new"} <= set(advice)


def test_a_driver_for_an_older_cuda_comes_first() -> None:
    """S3: a cu130 build on a driver of the R535 branch."""
    old = replace(
        working("2.13.0+cu130", "13.0"),
        available=False,
        availability_error="RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
        device_count=0,
        device_names=None,
        device_capabilities=None,
    )
    report = diagnose(
        replace(
            HEALTHY,
            driver=driver("535.230.02", "12.2"),
            torch_runtime=old,
            cupy=NO_CUPY,
            cupy_runtime=None,
            python=pip(("torch", "2.13.0")),
        )
    )
    assert ids(report, Severity.ERROR) == ["driver-too-old"]
