"""cuDNN against what PyTorch needs."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Outcome,
    Package,
    PackageVersion,
    PrecisionResult,
    Python,
    Severity,
    SharedLibrary,
    Symptom,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

CU128 = Torch(
    installed=True,
    version=PackageVersion("2.9.1+cu128"),
    build="cuda",
    cuda_version=CudaVersion(12, 8),
    missing_libraries=(),
    conda_build="",
)
INCOMPATIBLE = (
    "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 10, 2) but found runtime version "
    "(8, 9, 7)."
)
OTHER_CUDNN = Toolkit(
    library_path_libraries=(
        SharedLibrary(soname="libcudart.so.12", path="/usr/local/cuda/lib64/libcudart.so.12"),
        SharedLibrary(soname="libcudnn.so.9", path="/usr/local/cuda/lib64/libcudnn.so.9"),
    )
)


def wheels(**versions: str) -> Python:
    return Python(
        packages=tuple(
            Package(name=name.replace("_", "-"), version=PackageVersion(version)) for name, version in versions.items()
        )
    )


def works(version: int) -> TorchRuntime:
    return TorchRuntime(import_error="", cudnn_version=version, cudnn_error="", warnings=())


@pytest.mark.parametrize(
    ("runtime", "fact"),
    [
        pytest.param(TorchRuntime(cudnn_error=INCOMPATIBLE), "torch_runtime.cudnn_error", id="PyTorch refuses it"),
        pytest.param(
            TorchRuntime(import_error="ImportError: libcudnn.so.9: cannot open shared object file"),
            "torch_runtime.import_error",
            id="the import needs it",
        ),
        pytest.param(
            TorchRuntime(
                precision_results=(
                    PrecisionResult(
                        device="cuda:0", precision="fp32", error="CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
                    ),
                )
            ),
            "torch_runtime.precision_results[0].error",
            id="its parts differ",
        ),
    ],
)
def test_it_fails(runtime: TorchRuntime, fact: str) -> None:
    (finding,) = run_check("cudnn-missing-or-mismatch", torch=CU128, torch_runtime=runtime).findings
    assert (finding.severity, finding.facts) == (Severity.ERROR, (fact,))
    assert finding.remedies[0].commands[0].endswith("torch==2.9.1+cu128")


def test_the_library_path_is_named_and_removed() -> None:
    (finding,) = run_check(
        "cudnn-missing-or-mismatch",
        torch=CU128,
        torch_runtime=TorchRuntime(cudnn_error=INCOMPATIBLE),
        toolkit=OTHER_CUDNN,
    ).findings
    assert finding.summary.endswith("and LD_LIBRARY_PATH leads to /usr/local/cuda/lib64/libcudnn.so.9")
    assert finding.facts[-1] == "toolkit.library_path_libraries[1].path"
    assert finding.remedies[0].commands[0] == "unset LD_LIBRARY_PATH"


@pytest.mark.parametrize(
    ("runtime", "severity"),
    [
        pytest.param(TorchRuntime(), Severity.ERROR, id="not imported"),
        pytest.param(works(91002), Severity.WARNING, id="the import works"),
    ],
)
def test_the_library_is_not_on_disk(runtime: TorchRuntime, severity: Severity) -> None:
    torch = Torch(**{**vars(CU128), "missing_libraries": ("libcudnn.so.9",)})
    (finding,) = run_check("cudnn-missing-or-mismatch", torch=torch, torch_runtime=runtime).findings
    assert (finding.severity, finding.summary) == (
        severity,
        "PyTorch needs libcudnn.so.9, which the loader cannot find",
    )


@pytest.mark.parametrize(
    ("number", "packages", "severity"),
    [
        pytest.param(91002, {"nvidia_cudnn_cu12": "9.10.2.21"}, None, id="that of the wheel"),
        pytest.param(91300, {"nvidia_cudnn_cu12": "9.10.2.21"}, Severity.INFO, id="another that works"),
        pytest.param(8902, {"nvidia_cudnn_cu12": "8.9.2.26"}, None, id="version 8 is coded otherwise"),
        pytest.param(
            91002, {"nvidia_cudnn_cu12": "9.10.2.21", "nvidia_cudnn_cu13": "9.20.0.48"}, None, id="wheels of two majors"
        ),
        pytest.param(91002, {}, None, id="no wheel"),
    ],
)
def test_the_version_loaded(number: int, packages: dict[str, str], severity: Severity | None) -> None:
    result = run_check("cudnn-missing-or-mismatch", torch=CU128, torch_runtime=works(number), python=wheels(**packages))
    assert [finding.severity for finding in result.findings] == ([] if severity is None else [severity])


def test_both_versions_are_in_the_advice() -> None:
    python = wheels(nvidia_cudnn_cu12="9.10.2.21")
    (finding,) = run_check("cudnn-missing-or-mismatch", torch=CU128, torch_runtime=works(91300), python=python).findings
    assert (finding.severity, finding.facts[0]) == (Severity.INFO, "torch_runtime.cudnn_version")


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": CU128}, "torch_runtime.cudnn_error is unknown", id="not asked"),
        pytest.param({"torch": Torch(installed=True, build="rocm")}, "PyTorch is not built for CUDA", id="ROCm"),
        pytest.param({"torch": Torch(installed=False)}, "PyTorch is not installed", id="none"),
        pytest.param(
            {"torch": Torch(installed=True, build="cuda", missing_libraries=("libcudnn.so.9", "libcublas.so.12"))},
            "other libraries of PyTorch are missing too",
            id="more is missing",
        ),
    ],
)
def test_skipped(sections: dict[str, Any], reason: str) -> None:
    result = run_check("cudnn-missing-or-mismatch", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def told(kind: str, who: str = "torch", **names: str) -> Symptom:
    return Symptom(kind=kind, text="cuDNN", library=who, source="report.txt", names=names)


def test_a_message_is_enough_without_pytorch() -> None:
    message = told("cudnn-older-than-built", "tensorflow", built_with="8.9.4", loaded="8.2.4")
    (finding,) = run_check("cudnn-missing-or-mismatch", symptoms=(message,), torch=Torch(installed=False)).findings
    assert finding.summary == "The framework was built with cuDNN 8.9.4, but cuDNN 8.2.4 is loaded"
    assert finding.evidence[0].source == "report.txt"


def test_the_message_that_names_versions_comes_first() -> None:
    symptoms = (
        told("cudnn-not-loaded-by-jax", "jax"),
        told("cudnn-outdated-for-jax", "jax", built_with="91001", loaded="8907"),
    )
    (finding,) = run_check("cudnn-missing-or-mismatch", symptoms=symptoms).findings
    assert all(text in finding.summary for text in ("JAX", "9.10.1", "8.9.7"))


@pytest.mark.parametrize(
    ("torch", "command"),
    [
        pytest.param("2.3.1+cu121", "'nvidia-cudnn-cu12==8.*'", id="the one that PyTorch needs"),
        pytest.param("2.4.0+cu121", "'ctranslate2>=4.5.0'", id="PyTorch needs 9"),
    ],
)
def test_cudnn_8_is_installed_if_pytorch_needs_it_too(torch: str, command: str) -> None:
    installed = Torch(
        installed=True, version=PackageVersion(torch), build="cuda", cuda_version=CudaVersion(12, 1), conda_build=""
    )
    message = told("cudnn-not-found", "loader", library="libcudnn_ops_infer.so.8", major="8")
    (finding,) = run_check("cudnn-missing-or-mismatch", symptoms=(message,), torch=installed).findings
    assert command in finding.remedies[0].commands[0]


def test_a_status_that_a_full_memory_explains_is_no_finding() -> None:
    symptoms = (told("cudnn-failed-status", status="NOT_INITIALIZED"), told("torch-out-of-memory"))
    assert run_check("cudnn-missing-or-mismatch", symptoms=symptoms[:1]).findings[0].severity is Severity.WARNING
    assert run_check("cudnn-missing-or-mismatch", symptoms=symptoms).findings == ()
