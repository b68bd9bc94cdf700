"""What is known of a machine, in the words of the tables of the triage."""

from typing import Any

import pytest

from gpudoctor.conclusions.visible_devices import choose
from gpudoctor.model import (
    ComputeCapability,
    Container,
    CudaVersion,
    Device,
    DriverState,
    Gpu,
    Origin,
    PackageVersion,
    Place,
    Pytorch,
    Symptom,
    System,
    VisibleDevices,
)
from gpudoctor.model.gpu_conclusions import KnownGpu
from gpudoctor.triage.features import features

NOTHING = {"no-error"}
TWO = (Device(nvml_index=0), Device(nvml_index=1))


def of(*kinds: str, texts: tuple[str, ...] = (), **known: Any) -> set[str]:
    """Return the features without those that only name a symptom."""
    symptoms = (*(Symptom(kind=kind, text="x") for kind in kinds), *map(named, texts))
    arguments = {
        "origin": Origin(is_report=True),
        "system": System(),
        "place": Place(),
        "pytorch": Pytorch(),
        "gpu": Gpu(),
        "driver_state": DriverState(),
        "symptoms": symptoms,
    }
    return {name for name in features(**{**arguments, **known}) if not name.startswith("symptom:")}


def named(text: str) -> Symptom:
    return Symptom(kind="nvidia-gpu-named", text=text)


def capable(*number: int) -> Gpu:
    capability = ComputeCapability(*number)
    return Gpu(present="NVIDIA X", known=(KnownGpu(name="NVIDIA X", capability=capability, fact="f"),))


def test_symptoms_are_features() -> None:
    symptoms = (Symptom(kind="about-ollama", text="ollama"), Symptom(kind="torch-no-gpus", text="No CUDA GPUs"))
    found = features(Origin(is_report=True), System(), Place(), Pytorch(), Gpu(), DriverState(), symptoms)
    assert found == {"about:ollama", "symptom:torch-no-gpus", "no-torch", "error"}
    assert features(Origin(is_report=True), System(), Place(), Pytorch(), Gpu(), DriverState(), None) == NOTHING


@pytest.mark.parametrize(
    ("known", "found"),
    [
        pytest.param({"system": System(os="linux")}, {"os:linux"}, id="Linux"),
        pytest.param({"system": System(os="linux"), "place": Place(in_wsl=True)}, {"os:wsl"}, id="WSL is no Linux"),
        pytest.param({"system": System()}, set(), id="an unknown system"),
        pytest.param({"driver_state": DriverState(works=True)}, {"driver:works"}, id="a driver that answers"),
        pytest.param(
            {"driver_state": DriverState(cuda_version=CudaVersion(13, 0))}, {"driver:newest"}, id="new driver"
        ),
        pytest.param({"driver_state": DriverState(cuda_version=CudaVersion(12, 8))}, set(), id="an older driver"),
        pytest.param(
            {"visible_devices": VisibleDevices(nvidia=choose("0,1", TWO)), "devices": TWO},
            {"devices:all-visible"},
            id="a variable that hides nothing",
        ),
        pytest.param(
            {"visible_devices": VisibleDevices(nvidia=choose("1", TWO)), "devices": TWO}, set(), id="one of two"
        ),
        pytest.param({"container": Container(gpus_requested=True)}, {"container:with-gpu"}, id="docker run --gpus"),
        pytest.param({"gpu": Gpu(present="NVIDIA A100")}, {"gpu:nvidia", "gpu:datacenter"}, id="perhaps NVSwitches"),
        pytest.param({"gpu": Gpu(present="NVIDIA GeForce RTX 3090")}, {"gpu:nvidia"}, id="one without"),
        pytest.param({"place": Place(about_container=True)}, {"place:docker"}, id="a container"),
        pytest.param({"place": Place(is_tegra=True)}, {"place:jetson"}, id="Jetson"),
        pytest.param({"origin": Origin(is_report=False)}, {"live"}, id="this machine"),
        pytest.param({"pytorch": Pytorch(build="cpu")}, {"build:cpu"}, id="a build"),
        pytest.param({"pytorch": Pytorch(installed=True)}, {"about:torch"}, id="PyTorch is installed"),
        pytest.param({"pytorch": Pytorch(available=False)}, {"about:torch"}, id="PyTorch was asked"),
        pytest.param({"pytorch": Pytorch(installed=False)}, set(), id="PyTorch is not installed"),
        pytest.param({"gpu": Gpu(present="NVIDIA L4")}, {"gpu:nvidia"}, id="a GPU is there"),
        pytest.param({"gpu": Gpu(present="")}, set(), id="none is there"),
        pytest.param({"gpu": capable(7, 4)}, {"gpu:nvidia", "gpu:old"}, id="too old for new builds"),
        pytest.param({"gpu": capable(7, 5)}, {"gpu:nvidia", "gpu:turing"}, id="Turing"),
        pytest.param({"gpu": capable(9, 0)}, {"gpu:nvidia", "gpu:turing", "gpu:bf16"}, id="Hopper"),
        pytest.param({"gpu": capable(10, 0)}, {"gpu:nvidia", "gpu:new", "gpu:turing", "gpu:bf16"}, id="Blackwell"),
        pytest.param(
            {"gpu": capable(7, 5), "pytorch": Pytorch(version=PackageVersion("2.5.1+cu124"))},
            {"gpu:nvidia", "gpu:turing", "build:has-kernels"},
            id="a build with code for the GPU",
        ),
        pytest.param(
            {"gpu": capable(12, 0), "pytorch": Pytorch(version=PackageVersion("2.5.1+cu124"))},
            {"gpu:nvidia", "gpu:new", "gpu:turing", "gpu:bf16"},
            id="a build without",
        ),
    ],
)
def test_facts_are_features(known: dict[str, Any], found: set[str]) -> None:
    assert of(**known) == NOTHING | found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("nvidia-gpu-named", {"gpu:nvidia"}),
        ("nvidia-gpu-owned", {"gpu:nvidia"}),
        ("amd-gpu-named", {"gpu:amd", "no-nvidia"}),
        ("amd-gpu-reported", {"gpu:amd", "no-nvidia"}),
        ("apple-mac-named", {"os:darwin"}),
    ],
)
def test_a_gpu_that_words_name(kind: str, found: set[str]) -> None:
    assert of(kind) - {"error", "no-error"} == found


def test_a_generation_is_known_by_the_name() -> None:
    assert {"gpu:old", "gpu:nvidia"} <= of(texts=("Tesla P100",))
    assert {"gpu:new", "gpu:nvidia"} <= of(texts=("NVIDIA GeForce RTX 5090",))
    assert not {"gpu:old", "gpu:new"} & of(texts=("NVIDIA A100",))


def test_words_of_a_person_are_no_error_of_a_program() -> None:
    assert "no-error" in of("asks-hang")
    assert "error" in of("torch-no-gpus")


@pytest.mark.parametrize(
    ("kind", "without_torch"),
    [
        *((f"about-{name}", True) for name in ("ollama", "llama-cpp", "lm-studio", "jax", "tensorflow", "onnxruntime")),
        *((f"about-{name}", True) for name in ("numba", "rapids", "paddle", "xgboost")),
        ("cupy-named", True),
        ("about-comfyui", False),
    ],
)
def test_what_computes_without_pytorch(kind: str, without_torch: bool) -> None:
    assert ("no-torch" in of(kind)) is without_torch
    assert "no-torch" not in of(kind, "about-torch-named")
    assert "no-torch" not in of(kind, pytorch=Pytorch(installed=True))
