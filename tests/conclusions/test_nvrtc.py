"""NVRTC and the GPU that it does not know."""

from __future__ import annotations

from gpudoctor.conclusions.nvrtc import named_gpus, nvrtc
from gpudoctor.data import toolkit_span
from gpudoctor.model import ComputeCapability, Symptom

REFUSED = Symptom(
    kind="nvrtc-architecture-refused",
    text="nvrtc: error: invalid value for --gpu-architecture",
    fact="symptoms[0].text",
)
CUPY = Symptom(kind="cupy-named", text="cupy")
L4 = Symptom(kind="nvrtc-architecture-device", text="L4 ... --gpu-architecture", names={"device": "L4"})


def refused(symptoms: tuple[Symptom, ...] | None) -> Symptom | None:
    return nvrtc(cupy=None, cupy_runtime=None, toolkit=None, python=None, symptoms=symptoms).refused


def test_who_refuses() -> None:
    assert refused((REFUSED,)) == REFUSED
    assert refused((REFUSED, CUPY)) is None
    assert refused(None) is None


def test_the_gpu_beside_the_error() -> None:
    assert [gpu.capability for gpu in named_gpus((REFUSED, L4))] == [ComputeCapability(8, 9)]
    assert named_gpus((REFUSED,)) == ()


def test_of_several_gpus_none_is_chosen() -> None:
    said = tuple(Symptom(kind="nvidia-gpu-named", text=name) for name in ("RTX 3090", "RTX 4090"))
    assert named_gpus(said) == ()
    assert [gpu.name for gpu in named_gpus(said[:1])] == ["RTX 3090"]


def test_the_toolkits_of_a_device() -> None:
    assert toolkit_span(ComputeCapability(8, 9)) == ", for which CUDA 11.8 is the first"
    assert "was the last" in toolkit_span(ComputeCapability(6, 1))
    assert toolkit_span(ComputeCapability(99, 0)) == ""
