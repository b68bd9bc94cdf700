"""Whether a container seen from outside gets the GPU, and what its name tells."""

import pytest

from gpudoctor.conclusions.container_setups import cuda_of_image_name, gpu_way, gpu_wish
from gpudoctor.model import ContainerEngine, ContainerSetup, CudaVersion, GpuRequest

RUNC = ContainerEngine(default_runtime="runc", runtimes=("runc", "nvidia"))


def started(**about: object) -> ContainerSetup:
    known: dict[str, object] = {"gpu_requests": (), "device_files": (), "runtime": "runc", "is_privileged": False}
    return ContainerSetup(name="a", kind="container", **{**known, **about})  # type: ignore[arg-type]


def asks(**about: object) -> tuple[GpuRequest, ...]:
    return (GpuRequest(**about),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        pytest.param(started(gpu_requests=asks(count=-1, capabilities=("gpu",))), "request", id="--gpus all"),
        pytest.param(started(gpu_requests=asks(driver="nvidia", device_ids=("0",))), "request", id="device=0"),
        pytest.param(started(gpu_requests=asks(count=0, capabilities=("gpu",))), "", id="--gpus 0"),
        pytest.param(started(gpu_requests=asks(count=-1, capabilities=("tpu",))), "", id="another device"),
        pytest.param(started(gpu_requests=asks(driver="cdi", device_ids=("nvidia.com/gpu=0",))), "cdi", id="CDI"),
        pytest.param(started(gpu_requests=asks(driver="cdi", device_ids=("amd.com/gpu=0",))), "", id="CDI of AMD"),
        pytest.param(started(device_files=("/dev/nvidia0",)), "devices", id="device nodes"),
        pytest.param(started(device_files=("/dev/dxg",)), "devices", id="WSL"),
        pytest.param(started(device_files=("/dev/infiniband/uverbs0",)), "", id="InfiniBand is no GPU"),
        pytest.param(
            started(runtime="nvidia", environment={"NVIDIA_VISIBLE_DEVICES": "all"}), "runtime", id="runtime nvidia"
        ),
        pytest.param(started(runtime="nvidia"), "", id="runtime nvidia and no variable"),
        pytest.param(
            started(runtime="nvidia", environment={"CUDA_VERSION": "9.0.176"}), "runtime", id="CUDA image of old"
        ),
        pytest.param(started(environment={"NVIDIA_VISIBLE_DEVICES": "all"}), "", id="the variable and runc"),
        pytest.param(started(is_privileged=True), None, id="privileged"),
        pytest.param(started(gpu_requests=None), None, id="Podman, or an image"),
    ],
)
def test_how_it_gets_the_gpu(setup: ContainerSetup, expected: str | None) -> None:
    assert gpu_way(setup, RUNC) == expected


def test_a_service_without_a_runtime_takes_that_of_the_engine() -> None:
    service = started(runtime="", environment={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert gpu_way(service, ContainerEngine(default_runtime="nvidia")) == "runtime"
    assert gpu_way(service, RUNC) == ""
    assert gpu_way(service, ContainerEngine()) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia/cuda:12.2.2-devel-ubuntu22.04", CudaVersion(12, 2)),
        ("docker.io/nvidia/cuda:13.0.1-base", CudaVersion(13, 0)),
        ("pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime", CudaVersion(12, 8)),
        ("nvidia/cuda:13.0.1-base@sha256:81474675", CudaVersion(13, 0)),
        ("nvcr.io/nvidia/pytorch:25.10-py3", None),
        ("python:3.12-slim", None),
        (None, None),
    ],
)
def test_the_cuda_of_a_name(name: str | None, expected: CudaVersion | None) -> None:
    assert cuda_of_image_name(name) == expected


@pytest.mark.parametrize("name", ["nvidia/cuda:12.2.2-base", "nvcr.io/nvidia/pytorch:25.10-py3", "own/train:1-cu128"])
def test_a_name_that_asks_for_the_gpu(name: str) -> None:
    assert gpu_wish(started(image=name)) == ("image", f"its image is {name}")


@pytest.mark.parametrize("name", ["python:3.12", "nginx", "own/barracuda-web:1", "localhost:5000/web:2"])
def test_a_name_that_asks_for_nothing(name: str) -> None:
    assert gpu_wish(started(image=name)) is None
