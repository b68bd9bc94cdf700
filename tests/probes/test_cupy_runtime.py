"""The worker that imports CuPy: stand-ins, the real CuPy without a GPU, and the section read from its answer."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import CudaVersion, CupyRuntime, LibraryCall, PackageVersion
from gpudoctor.probes.cupy_build import parse_cupy_runtime
from gpudoctor.probes.host import ProbeContext
from tests.environments import python_of
from tests.probes.asked import asked
from tests.stand_ins import facts_of

# CuPy whose arrays are NumPy's: SLOTS are replaced by what one test wants to go wrong.
NUMPY_AS_CUPY = """
import types, numpy
__version__ = '14.2.0'
class Array(numpy.ndarray):
    def get(self):
        return numpy.asarray(self)
def answering(function):
    return lambda *arguments: numpy.asarray(function(*arguments)).view(Array)
class Device:
    current = 0
    def __init__(self, index): self.index = index
    def __enter__(self): Device.current = self.index
    def __exit__(self, *error): Device.current = 0
def ElementwiseKernel(*description):
    def kernel(x, y):
        if Device.current == BROKEN_DEVICE:
            raise RuntimeError('CUDA_ERROR_NO_BINARY_FOR_GPU')
        return answering(lambda x, y: x * y + 1)(x, y)
    return kernel
asarray = answering(numpy.asarray)
matmul = answering(lambda x, y: MATMUL)
fft = types.SimpleNamespace(fft=answering(numpy.fft.fft))
linalg = types.SimpleNamespace(solve=answering(numpy.linalg.solve))
arange, full = numpy.arange, numpy.full
random = types.SimpleNamespace(
    RandomState=lambda seed: types.SimpleNamespace(random_sample=lambda size: answering(numpy.full)(size, RANDOM))
)
def no_nvrtc(): raise ImportError('libnvrtc.so.12: cannot open shared object file')
cuda = types.SimpleNamespace(
    Device=Device,
    get_cuda_path=lambda: None,
    cufft=types.SimpleNamespace(getVersion=lambda: 11400),
    cusolver=types.SimpleNamespace(_getVersion=lambda: (11, 7, 1)),
    nvrtc=types.SimpleNamespace(getVersion=NVRTC, getSupportedArchs=lambda: [75, 90]),
    driver=types.SimpleNamespace(get_build_version=lambda: 12090),
    runtime=types.SimpleNamespace(
        is_hip=False, getDeviceCount=lambda: 2, runtimeGetVersion=lambda: 12090, driverGetVersion=lambda: 12020
    ),
)
"""


def ask(python: str | Path, path: Path, **environ: str) -> CupyRuntime:
    """Return the section under `python`, for which the modules in `path` come first."""
    return parse_cupy_runtime(facts_of("cupy_runtime", {"PYTHONPATH": str(path), **environ}, interpreter=python))


def ask_stub(folder: Path, cupy: str) -> CupyRuntime:
    """Return the section where `cupy` is the text of the module of that name."""
    (folder / "cupy.py").write_text(cupy)
    return ask(sys.executable, folder)


def ask_numpy(folder: Path, **slots: str) -> CupyRuntime:
    """Return the section where NumPy stands in for CuPy."""
    text = NUMPY_AS_CUPY
    defaults = {"BROKEN_DEVICE": "None", "MATMUL": "x @ y", "RANDOM": "0.5", "NVRTC": "lambda: (12, 9)"}
    for slot, value in {**defaults, **slots}.items():
        text = text.replace(slot, value)
    (folder / "cupy.py").write_text(text)
    return ask(python_of("torch-cpu"), folder)


def call_of(runtime: CupyRuntime, library: str) -> LibraryCall:
    return next(call for call in runtime.calls or () if call.library == library)


def test_the_question_is_asked_in_a_process_started_anew(tmp_path: Path) -> None:
    question = asked("cupy-runtime", ProbeContext(environ={}, directory=tmp_path))
    assert (question.name, question.worker, question.in_environment) == ("cupy-runtime", "cupy_runtime", True)


def test_without_cupy_the_error_says_so(tmp_path: Path) -> None:
    runtime = ask(sys.executable, tmp_path)
    assert runtime.import_error == "ModuleNotFoundError: No module named 'cupy'"
    assert (runtime.calls, runtime.device_count) == (None, None)


@pytest.mark.parametrize(
    ("cupy", "error"),
    [
        pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exits"),
        pytest.param("pass", "AttributeError: module 'cupy' has no attribute '__version__'", id="another cupy.py"),
        pytest.param(
            "import numpy_of_old", "ModuleNotFoundError: No module named 'numpy_of_old'", id="misses a module"
        ),
        pytest.param(
            "try:\n    raise ImportError('libcublas.so.12: cannot open shared object file')\n"
            "except ImportError as error:\n"
            "    raise ImportError('=====\\nFailed to import CuPy.\\nMake sure that ...\\n=====') from error",
            "ImportError: libcublas.so.12: cannot open shared object file",
            id="CuPy's page of advice",
        ),
    ],
)
def test_a_failing_import_names_its_cause(tmp_path: Path, cupy: str, error: str) -> None:
    assert ask_stub(tmp_path, cupy).import_error == error


def test_a_module_that_is_hardly_cupy_leaves_the_rest_unknown(tmp_path: Path) -> None:
    runtime = ask_stub(tmp_path, "import warnings\nprint('banner'); warnings.warn('careful\\n'); __version__ = '0'")
    assert (runtime.import_error, runtime.version, runtime.warnings) == ("", PackageVersion("0"), ("careful",))
    assert (runtime.device_count, runtime.build_cuda_version) == (0, None)
    assert runtime.device_error == "AttributeError: module 'cupy' has no attribute 'cuda'"


@pytest.mark.environments
def test_every_library_is_called_and_compared(tmp_path: Path) -> None:
    runtime = ask_numpy(tmp_path)
    assert (runtime.device_count, runtime.device_error) == (2, "")
    assert (runtime.build_cuda_version, runtime.driver_cuda_version) == (CudaVersion(12, 9), CudaVersion(12, 2))
    assert (runtime.nvrtc_version, runtime.nvrtc_architectures) == (CudaVersion(12, 9), ("sm_75", "sm_90"))
    libraries = ["nvrtc", "elementwise", "cublas", "cufft", "curand", "cusolver", "cusparse"]
    assert [call.library for call in runtime.calls or ()] == libraries
    assert [call.relative_error for call in runtime.calls or ()] == [None, 0.0, 0.0, 0.0, None, 0.0, None]
    assert call_of(runtime, "cusparse").error.startswith("ModuleNotFoundError: No module named 'cupyx'")


@pytest.mark.environments
@pytest.mark.parametrize(
    ("slots", "library", "error"),
    [
        pytest.param({"NVRTC": "no_nvrtc"}, "nvrtc", "ImportError: libnvrtc.so.12: cannot open", id="no NVRTC"),
        pytest.param(
            {"BROKEN_DEVICE": "1"},
            "elementwise",
            "device 1: RuntimeError: CUDA_ERROR_NO_BINARY_FOR_GPU",
            id="one device of two has no code",
        ),
        pytest.param({"MATMUL": "x @ y * float('nan')"}, "cublas", "not finite", id="NaN"),
        pytest.param({"RANDOM": "0.9"}, "curand", "not uniform: mean 0.9, from 0.9 to 0.9", id="random"),
    ],
)
def test_a_failing_library_is_named_and_the_others_are_called(
    tmp_path: Path, slots: dict[str, str], library: str, error: str
) -> None:
    runtime = ask_numpy(tmp_path, **slots)
    failed = {call.library for call in runtime.calls or () if call.error} - {"cusparse"}
    assert failed == {library}
    assert call_of(runtime, library).error.startswith(error)


@pytest.mark.environments
def test_a_wrong_result_is_measured(tmp_path: Path) -> None:
    assert call_of(ask_numpy(tmp_path, MATMUL="x @ y * 1.5"), "cublas").relative_error == 0.5


@pytest.mark.environments
def test_two_cupy_packages_warn(tmp_path: Path) -> None:
    runtime = ask(python_of("cupy-twice"), tmp_path)
    assert runtime.import_error == "ModuleNotFoundError: No module named 'cuda'"
    assert runtime.warnings is not None
    assert "multiple CuPy packages are installed in your environment: cupy-cuda12x, cupy-cuda13x" in runtime.warnings[0]


PATHFINDER_WITHOUT_LIBRARIES = """
class DynamicLibNotFoundError(RuntimeError): pass
def load_nvidia_dynamic_lib(name): raise DynamicLibNotFoundError(f'no {name} here')
def find_nvidia_binary_utility(name): return None
def find_nvidia_header_directory(name): return None
"""


@pytest.mark.environments
def test_the_real_cupy_without_a_device_and_without_cuda_libraries(tmp_path: Path) -> None:
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "pathfinder.py").write_text(PATHFINDER_WITHOUT_LIBRARIES)
    runtime = ask(python_of("cupy-twice"), tmp_path, CUDA_VISIBLE_DEVICES="-1")
    assert (runtime.import_error, runtime.version) == ("", PackageVersion("14.2.0"))
    assert runtime.build_cuda_version is not None
    assert (runtime.device_count, runtime.nvrtc_version) == (0, None)
    assert "CUDARuntimeError: cudaError" in (runtime.device_error or "")
    assert [call.library for call in runtime.calls or ()] == ["nvrtc"]
    assert "no nvrtc here" in call_of(runtime, "nvrtc").error


@pytest.mark.parametrize(
    ("fact", "value"), [("nvrtc_version", "new"), ("calls", [{"version": "12"}]), ("device_count", "two")]
)
def test_a_value_that_is_none_is_refused(fact: str, value: Any) -> None:
    with pytest.raises(ValueError, match=fact):
        parse_cupy_runtime({"import_error": "", fact: value})
