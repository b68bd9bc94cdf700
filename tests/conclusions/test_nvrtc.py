"""NVRTC and the GPU that it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.conclusions.nvrtc import named_gpus, nvrtc
from gpudoctor.data.capabilities import toolkit_span
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Nvrtc,
    Package,
    PackageVersion,
    Python,
    SharedLibrary,
    Symptom,
    Toolkit,
    ToolkitInstall,
)

REFUSED = Symptom(
    kind="nvrtc-architecture-refused",
    text="nvrtc: error: invalid value for --gpu-architecture",
    fact="symptoms[0].text",
)
CUPY = Symptom(kind="cupy-named", text="cupy")
L4 = Symptom(kind="nvrtc-architecture-device", text="L4 ... --gpu-architecture", names={"device": "L4"})


def refused(symptoms: tuple[Symptom, ...] | None) -> Symptom | None:
    return nvrtc(cupy=Cupy(), cupy_runtime=CupyRuntime(), toolkit=Toolkit(), python=Python(), symptoms=symptoms).refused


def test_who_refuses() -> None:
    assert refused((REFUSED,)) == REFUSED
    assert refused((REFUSED, CUPY)) is None
    assert refused(None) is None


def test_the_gpu_next_to_the_error() -> None:
    assert [gpu.capability for gpu in named_gpus((REFUSED, L4))] == [ComputeCapability(8, 9)]
    assert named_gpus((REFUSED,)) == ()


def test_of_several_gpus_none_is_chosen() -> None:
    said = tuple(Symptom(kind="nvidia-gpu-named", text=name) for name in ("RTX 3090", "RTX 4090"))
    assert named_gpus(said) == ()
    assert [gpu.name for gpu in named_gpus(said[:1])] == ["RTX 3090"]


def test_the_toolkits_of_a_device() -> None:
    assert toolkit_span(ComputeCapability(8, 9)) == ", which needs CUDA 11.8 or newer"
    assert "or older" in toolkit_span(ComputeCapability(6, 1))
    assert toolkit_span(ComputeCapability(99, 0)) == ""


L40 = Python(packages=(Package(name="nvidia-cuda-nvrtc-cu12", version=PackageVersion("12.4.127")),))


def concluded(**sections: Any) -> Nvrtc:
    known = {"cupy": Cupy(), "cupy_runtime": CupyRuntime(), "toolkit": Toolkit(), "python": Python(), "symptoms": None}
    return nvrtc(**{**known, **sections})


@pytest.mark.parametrize(
    ("sections", "name", "fact"),
    [
        (
            {"cupy_runtime": CupyRuntime(nvrtc_architectures=("sm_75",), nvrtc_version=CudaVersion(13, 0))},
            "NVRTC 13.0",
            "cupy_runtime.nvrtc_architectures",
        ),
        ({"cupy_runtime": CupyRuntime(nvrtc_version=CudaVersion(12, 4))}, "NVRTC 12.4", "cupy_runtime.nvrtc_version"),
        (
            {"cupy_runtime": CupyRuntime(runtime_cuda_version=CudaVersion(12, 4))},
            "NVRTC 12.4",
            "cupy_runtime.runtime_cuda_version",
        ),
        ({"cupy": Cupy(cuda_major=12), "python": L40}, "NVRTC 12.4", "python.packages[0].version"),
        ({"cupy": Cupy(cuda_major=13), "python": L40}, "NVRTC of CUDA 13", "cupy.cuda_major"),
    ],
)
def test_the_compiler_of_cupy(sections: dict[str, Any], name: str, fact: str) -> None:
    compiler = concluded(**sections).of_cupy
    assert compiler is not None
    assert (compiler.name, compiler.fact) == (name, fact)
    assert "sm_75" in compiler.architectures


def test_all_toolkits_of_a_major_version_together() -> None:
    compiler = concluded(cupy=Cupy(cuda_major=12)).of_cupy
    assert compiler is not None
    assert (compiler.architectures[0], compiler.architectures[-1]) == ("sm_50", "sm_121")
    assert concluded(cupy=Cupy(cuda_major=10)).of_cupy is None  # older than the table
    assert concluded(cupy=Cupy()).of_cupy is None


NONE = Toolkit(toolkits=(), system_libraries=())
CONDA = Package(name="cuda-nvrtc", version=PackageVersion("12.4"), installer="conda")


@pytest.mark.parametrize(
    ("cupy", "toolkit", "python", "on_disk", "unknown"),
    [
        (Cupy(), NONE, None, None, "cupy.nvrtc_files"),
        (Cupy(nvrtc_files=("/s/libnvrtc.so.12",)), None, None, True, ""),
        (Cupy(nvrtc_files=()), None, None, None, "toolkit.toolkits"),
        (Cupy(nvrtc_files=()), Toolkit(toolkits=()), None, None, "toolkit.system_libraries"),
        (Cupy(nvrtc_files=()), Toolkit(toolkits=(ToolkitInstall(path="/usr/local/cuda"),)), None, True, ""),
        (Cupy(nvrtc_files=()), NONE, None, False, ""),
        (Cupy(nvrtc_files=()), NONE, Python(environment="conda"), None, "what conda's packages hold"),
        (Cupy(nvrtc_files=()), NONE, Python(environment="conda", packages=(CONDA,)), True, ""),
        (
            Cupy(nvrtc_files=()),
            Toolkit(toolkits=(), system_libraries=(SharedLibrary(soname="libnvrtc.so.12", path="/l"),)),
            None,
            True,
            "",
        ),
    ],
)
def test_where_the_library_of_nvrtc_is(
    cupy: Cupy, toolkit: Toolkit | None, python: Python | None, on_disk: bool | None, unknown: str
) -> None:
    found = concluded(cupy=cupy, toolkit=toolkit or Toolkit(), python=python or Python())
    assert (found.on_disk, found.unknown) == (on_disk, unknown)
