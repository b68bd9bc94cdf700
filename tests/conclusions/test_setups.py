"""Whether a container seen from outside gets the GPU, and what its name tells."""

import pytest

from gpudoctor.conclusions.setups import cuda_of_image_name, gpu_access, gpu_intent, setups
from gpudoctor.model import (
    Container,
    ContainerEngine,
    Containers,
    ContainerSetup,
    CudaVersion,
    Device,
    GpuIntent,
    GpuRequest,
    PciGpu,
    SeenSetup,
    Symptom,
    System,
    Torch,
    once_per_image,
    once_per_service,
)

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
    assert gpu_access(setup, RUNC) == expected


def test_a_service_without_a_runtime_takes_that_of_the_engine() -> None:
    service = started(runtime="", environment={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert gpu_access(service, ContainerEngine(default_runtime="nvidia")) == "runtime"
    assert gpu_access(service, RUNC) == ""
    assert gpu_access(service, ContainerEngine()) is None


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
    assert gpu_intent("setup", started(image=name)) == GpuIntent(fact="setup.image", words=f"its image is {name}")


@pytest.mark.parametrize("name", ["python:3.12", "nginx", "own/barracuda-web:1", "localhost:5000/web:2"])
def test_a_name_that_asks_for_nothing(name: str) -> None:
    assert gpu_intent("setup", started(image=name)) is None


def seen(*found: ContainerSetup, engine: ContainerEngine | None = RUNC, **known: object) -> tuple[SeenSetup, ...]:
    sections: dict[str, object] = {"container": Container(), "devices": None, "system": System(), **known}
    return setups(Containers(setups=found, engine=engine), **sections)  # type: ignore[arg-type]


def test_without_containers_there_is_none() -> None:
    assert setups(None, Container(), None, System()) == ()


def test_a_setup_with_its_path_and_its_failures() -> None:
    failure = Symptom(kind="shm-bus-error", text="Bus error")
    first, second = seen(started(), started(failures=(failure,)))
    assert (first.path, first.failures, first.gpu_access) == ("containers.setups[0]", (), "")
    assert [item.fact for item in second.failures] == ["containers.setups[1].failures[0].text"]
    assert second.fact("torch") == "containers.setups[1].torch"
    assert second.label == "container a"


def test_pytorch_alone_is_a_weak_sign() -> None:
    for build, certain in (("cuda", False), ("cpu", None)):
        (item,) = seen(started(torch=Torch(installed=True, build=build)))
        assert (item.gpu_intent.certain if item.gpu_intent else None) is certain


@pytest.mark.parametrize(
    ("known", "engine", "expected"),
    [
        pytest.param({"devices": (Device(nvml_index=0),)}, RUNC, True, id="NVML"),
        pytest.param(
            {"system": System(pci_gpus=(PciGpu(address="0", vendor="nvidia", device_id="2684"),))}, RUNC, True, id="bus"
        ),
        pytest.param({"devices": ()}, RUNC, False, id="none by NVML"),
        pytest.param({"system": System(pci_gpus=())}, RUNC, False, id="none on the bus"),
        pytest.param({}, RUNC, None, id="unknown"),
        pytest.param({"devices": (Device(nvml_index=0),)}, ContainerEngine(is_local=False), None, id="another host"),
    ],
)
def test_the_gpu_of_the_host(known: dict[str, object], engine: ContainerEngine, expected: bool | None) -> None:
    assert seen(started(), engine=engine, **known)[0].host_has_gpu is expected


@pytest.mark.parametrize(
    ("own", "declines"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, True),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, True),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, False),
        ({}, False),
    ],
)
def test_a_container_that_wants_no_gpu(own: dict[str, str], declines: bool) -> None:
    assert seen(started(environment=own, image_environment={}))[0].declines_gpu is declines
    assert not seen(started(environment=own, image_environment=own))[0].declines_gpu


def test_the_cuda_versions_of_an_image() -> None:
    setup = started(
        base="nvidia/cuda:13.0.1-base",
        image="train:1",
        environment={"CUDA_VERSION": "12.8.1"},
        torch=Torch(build="cuda", cuda_version=CudaVersion(12, 6)),
    )
    found = [(cuda.fact.rpartition(".")[2], cuda.version) for cuda in seen(setup)[0].image_cuda]
    assert found == [
        ("base", CudaVersion(13, 0)),
        ("environment", CudaVersion(12, 8)),
        ("torch", CudaVersion(12, 6)),
    ]


def test_a_service_comes_before_its_containers() -> None:
    service = ContainerSetup(name="train", kind="service", service="train")
    containers = (started(service="train"), started(service="infer"), started(service="infer"), started(), started())
    found = [item.path[-2] for item in once_per_service(seen(service, *containers))]
    assert found == ["0", "2", "4", "5"]


def test_an_image_is_named_once_by_the_highest_rank() -> None:
    items = seen(started(image="a"), started(image="b"), started(image="a"), started(), started())
    ranks = {"containers.setups[2]": 1}
    found = [item.path[-2] for item in once_per_image(items, rank=lambda item: ranks.get(item.path, 0))]
    assert found == ["2", "1", "3", "4"]
