"""torch-import-failed."""

import pytest

from gpudoctor.model import Environment, Outcome, PackageVersion, Python, Severity, System, Torch, TorchRuntime
from gpudoctor.testing import run_check

CHECK = "torch-import-failed"
TORCH = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda")
LINUX = System(os="linux", container="")
PYTHON = Python(executable="/env/bin/python", environment="venv", prefix="/env")
MISSING_LIBRARY = "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory"


def failed(error: str) -> TorchRuntime:
    return TorchRuntime(import_error=error)


@pytest.mark.parametrize(
    ("runtime", "torch", "outcome", "reason"),
    [
        pytest.param(failed(MISSING_LIBRARY), TORCH, Outcome.FOUND, "", id="a library is missing"),
        pytest.param(failed("SystemExit: 1"), None, Outcome.FOUND, "", id="package on disk not looked at"),
        pytest.param(failed(""), TORCH, Outcome.PASSED, "", id="it works"),
        pytest.param(
            failed("ModuleNotFoundError: No module named 'torch'"),
            None,
            Outcome.SKIPPED,
            "PyTorch is not installed",
            id="not installed, by the error",
        ),
        pytest.param(
            failed("ModuleNotFoundError: No module named 'torch'"),
            Torch(installed=False),
            Outcome.SKIPPED,
            "PyTorch is not installed",
            id="not installed, by the disk",
        ),
        pytest.param(
            TorchRuntime(), TORCH, Outcome.SKIPPED, "torch_runtime.import_error is unknown", id="import not tried"
        ),
    ],
)
def test_outcome(runtime: TorchRuntime, torch: Torch | None, outcome: Outcome, reason: str) -> None:
    result = run_check(CHECK, torch_runtime=runtime, torch=torch)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_without_the_section_it_is_skipped() -> None:
    assert run_check(CHECK, torch=TORCH).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (MISSING_LIBRARY, "the library libcudart.so.13 is missing"),
        ("ImportError: libcuda.so.1: cannot open shared object file", "the driver's library libcuda.so.1 is missing"),
        (
            "OSError: [WinError 126] The specified module could not be found. Error loading c10.dll",
            "a DLL that PyTorch",
        ),
        (
            "ImportError: /env/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1",
            "a library of another version",
        ),
        (
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found",
            "the C or C++ library here lacks GLIBCXX",
        ),
        (
            "ImportError: /env/libgomp.so.1: cannot allocate memory in static TLS block",
            "/env/libgomp.so.1 was loaded too",
        ),
        ("ImportError: /env/torch/lib/libc10.so: file too short", "a file of PyTorch is damaged"),
        ("ModuleNotFoundError: No module named 'typing_extensions'", "the module typing_extensions is missing"),
        ("AttributeError: module 'torch' has no attribute '__version__'", "something else named torch is imported"),
        ("SystemExit: 3", "import torch fails (SystemExit: 3)"),
    ],
)
def test_the_cause_is_named(error: str, meaning: str) -> None:
    finding = run_check(CHECK, torch_runtime=failed(error), torch=TORCH, system=LINUX).findings[0]
    assert finding.severity is Severity.ERROR
    assert meaning in finding.summary
    assert error in finding.summary
    assert finding.facts == ("torch_runtime.import_error",)


def commands(error: str, environment: Environment | None = None, python: Python = PYTHON) -> list[str]:
    result = run_check(
        CHECK,
        torch_runtime=failed(error),
        torch=TORCH,
        python=python,
        system=LINUX,
        environment=environment or Environment(),
    )
    return [command for remedy in result.findings[0].remedies for command in remedy.commands]


def test_a_missing_library_is_installed_again_into_this_environment() -> None:
    first, verify = commands(MISSING_LIBRARY)
    assert first.startswith("/env/bin/python -m pip install --force-reinstall")
    assert "torch==2.13.0+cu130" in first
    assert verify.startswith("/env/bin/python -c")


def test_a_missing_requirement_is_installed_by_its_name() -> None:
    assert commands("ModuleNotFoundError: No module named 'sympy.core'")[0] == "/env/bin/python -m pip install sympy"


def test_an_unknown_module_is_never_taken_for_a_package() -> None:
    assert "nowhere" not in " ".join(commands("ModuleNotFoundError: No module named 'nowhere'"))


def test_the_library_path_is_blamed_only_if_it_is_set() -> None:
    error = "ImportError: libtorch_cuda.so: undefined symbol: cublasLtGetEnvironmentMode"
    assert commands(error, Environment(variables={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}))[0] == (
        "unset LD_LIBRARY_PATH"
    )
    assert not any("LD_LIBRARY_PATH" in command for command in commands(error))


def test_conda_brings_its_own_cpp_library_but_never_glibc() -> None:
    conda = Python(executable="/opt/conda/bin/python", environment="conda", prefix="/opt/conda")
    newer_cpp = "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.30' not found"
    assert commands(newer_cpp, python=conda)[0] == (
        "conda install --yes --prefix /opt/conda --channel conda-forge libstdcxx-ng"
    )
    assert commands(newer_cpp) == []
    assert commands("ImportError: libm.so.6: version `GLIBC_2.34' not found", python=conda) == []


def test_a_library_loaded_too_late_is_preloaded() -> None:
    error = "ImportError: /env/lib/libgomp-d22.so.1: cannot allocate memory in static TLS block"
    assert commands(error)[0] == "export LD_PRELOAD=/env/lib/libgomp-d22.so.1"


def test_a_file_that_hides_torch_is_named() -> None:
    python = Python(executable="/env/bin/python", shadowed_modules=("/work/torch.py",))
    error = "AttributeError: module 'torch' has no attribute '__version__'"
    finding = run_check(CHECK, torch_runtime=failed(error), torch=TORCH, python=python).findings[0]
    assert finding.facts == ("torch_runtime.import_error", "python.shadowed_modules")
    assert "/work/torch.py" in finding.remedies[0].summary
