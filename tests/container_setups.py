"""Containers, services and images as they are seen from outside, and what a check finds in them."""

from dataclasses import replace
from typing import Any

from gpudoctor.model import (
    CheckResult,
    ContainerEngine,
    Containers,
    ContainerSetup,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Finding,
    GpuRequest,
    Outcome,
    PackageVersion,
    System,
    Torch,
)
from gpudoctor.testing import run_check

HOST = System(os="linux", container="", wsl=0, pci_gpus=())
GPUS = (Device(nvml_index=0, name="NVIDIA A100", uuid="GPU-1"), Device(nvml_index=1, name="NVIDIA A100", uuid="GPU-2"))
R535 = Driver(version=DriverVersion.parse("535.129.03"), cuda_version=CudaVersion(12, 2))
DOCKER = ContainerEngine(
    name="docker",
    is_local=True,
    runtimes=("runc",),
    default_runtime="runc",
    cgroup_driver="systemd",
    has_device_links=False,
)
WITH_TOOLKIT = replace(DOCKER, runtimes=("runc", "nvidia"))
CUDA_13 = {
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "CUDA_VERSION": "13.0.1",
    "NVIDIA_REQUIRE_CUDA": "cuda>=13.0",
}
ALL = (GpuRequest(count=-1, capabilities=("gpu",)),)
CDI = (GpuRequest(driver="cdi", count=0, device_ids=("nvidia.com/gpu=all",)),)
CUDA_TORCH = Torch(installed=True, build="cuda", version=PackageVersion("2.9.0+cu128"), cuda_version=CudaVersion(12, 8))
CPU_TORCH = Torch(installed=True, build="cpu", version=PackageVersion("2.9.0+cpu"))
PLAIN = ContainerSetup(
    name="web",
    kind="container",
    image="web:1",
    state="running",
    gpu_requests=(),
    device_files=(),
    is_privileged=False,
    runtime="runc",
    image_environment={},
    shm_size_bytes=64 << 20,
    ipc="private",
    has_own_shm=False,
)
CUDA = replace(PLAIN, name="train", image="train:1", environment=CUDA_13, image_environment=CUDA_13)
WITH_GPU = replace(CUDA, gpu_requests=ALL)
SERVICE = replace(CUDA, kind="service", service="train", state=None, runtime="", shm_size_bytes=None, ipc=None)


def look(check: str, *setups: ContainerSetup, engine: ContainerEngine | None = DOCKER, **sections: Any) -> CheckResult:
    """Return how the check ends on a host with these containers."""
    return run_check(check, **{"system": HOST, "containers": Containers(setups=setups, engine=engine), **sections})


def findings(
    check: str, *setups: ContainerSetup, engine: ContainerEngine | None = DOCKER, **sections: Any
) -> list[Finding]:
    """Return what the check finds."""
    result = look(check, *setups, engine=engine, **sections)
    assert result.outcome is not Outcome.CRASHED, result.reason
    return list(result.findings)


def only(check: str, *setups: ContainerSetup, engine: ContainerEngine | None = DOCKER, **sections: Any) -> Finding:
    """Return the only finding."""
    (finding,) = findings(check, *setups, engine=engine, **sections)
    return finding


def lines(finding: Finding) -> str:
    """Return all that the remedies say."""
    return "\n".join(text for remedy in finding.remedies for text in (remedy.summary, *remedy.commands))
