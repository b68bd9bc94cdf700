"""What CuPy itself says when it is imported and called."""

from __future__ import annotations

import pytest

from gpudoctor.symptoms.matching import recognise

IMPORT = "cupy_runtime.import_error"


def own(text: str, fact: str = IMPORT) -> dict[str, dict[str, str]]:
    found = (each.symptom for each in recognise(text, fact=fact))
    return {symptom.kind: dict(symptom.names) for symptom in found if symptom.kind.startswith("cupy-own-")}


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        ("ImportError: libnvrtc.so.12: cannot open shared object file", "nvrtc-missing", {"library": "libnvrtc.so.12"}),
        ("failed to open nvrtc-builtins", "nvrtc-missing", {"library": "nvrtc-builtins"}),
        ("failed to open libnvrtc-builtins.so.12.4", "nvrtc-missing", {"library": "libnvrtc-builtins.so.12.4"}),
        ("Could not find module 'nvrtc64_120_0.dll'", "nvrtc-missing", {"library": "nvrtc64_120_0.dll"}),
        ("CuPy failed to load libcublasLt.so.12: OSError", "library-missing", {"library": "libcublasLt.so.12"}),
        ('DynamicLibNotFoundError: Failure finding "cufft"', "library-missing", {"library": "cufft"}),
        ("DLL load failed: curand64_10.dll could not be found", "library-missing", {"library": "curand64_10.dll"}),
        ('cannot open source file "cuda_fp16.h"', "header-missing", {"header": "cuda_fp16.h"}),
        ('error: identifier "__half_raw" is undefined', "headers-mixed", {}),
        ("RuntimeError: CUDA is not found", "toolkit-not-found", {}),
        ("ImportError: ...: cannot open shared object file", "library-unnamed", {}),
        ("DLL load failed while importing core", "dll-load-failed", {"error": "DLL load failed while importing core"}),
        ("nvrtc: error: invalid value for --gpu-architecture (-arch)", "architecture-refused", {}),
        ("module 'numpy' has no attribute 'bool8'", "numpy", {}),
        ("module 'cupy' has no attribute 'util'", "part-missing", {"module": "cupy", "attribute": "util"}),
        ("No module named 'cupy.core'", "part-missing", {"module": "cupy", "attribute": "core"}),
        ("cannot import name '_core' from 'cupy'", "incomplete", {}),
        ("CUBLAS_STATUS_NOT_INITIALIZED", "status", {}),
        ("CUDA_ERROR_INVALID_PTX: a PTX JIT compilation failed", "invalid-ptx", {}),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory", "out-of-memory", {}),
    ],
)
def test_a_message(text: str, kind: str, names: dict[str, str]) -> None:
    assert own(text).get(f"cupy-own-{kind}") == names


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("libnvrtc.so.12 is loaded", "nvrtc-missing"),
        ("cublas gives a wrong result", "library-missing"),
        ("DLL load failed while importing _multiarray_umath: numpy", "dll-load-failed"),
        ("NVRTC_ERROR_INVALID_OPTION for --gpu-architecture", "architecture-refused"),
        ("No module named 'cupy'", "part-missing"),
    ],
)
def test_what_is_no_such_message(text: str, kind: str) -> None:
    assert f"cupy-own-{kind}" not in own(text)


@pytest.mark.parametrize("fact", ["", "symptoms[0].text", "torch_runtime.import_error", "cupy_runtime.warnings[0]"])
def test_elsewhere_the_words_may_mean_another_package(fact: str) -> None:
    assert own("ImportError: libcublas.so.12: cannot open shared object file", fact) == {}


def test_a_call_of_cupy_is_searched_too() -> None:
    assert own("cublas failed: libcublas.so.12 not found", "cupy_runtime.calls[3].error") != {}
