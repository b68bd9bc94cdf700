"""The worker that imports CuPy: stand-ins, the real CuPy without a GPU, and the section read from its answer."""

import io
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model import CupyRuntime, LibraryCall, PackageVersion
from gpudoctor.probes.cupy_build import parse_cupy_runtime
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.workers import cupy_runtime as worker
from tests.environments import python_of
from tests.probes.asked import asked
from tests.stand_ins import facts_of

# CuPy whose arrays are NumPy's: SLOTS are replaced by what one test wants to go wrong.
NUMPY_AS_CUPY = """
import types, numpy
__version__ = '14.2.0'
shapes = set()
class Array(numpy.ndarray):
    def get(self):
        shapes.add(self.shape)
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
        return answering(lambda x, y: (x * y + 1) * (1 + INEXACT[Device.current]))(x, y)
    return kernel
asarray = answering(numpy.asarray)
matmul = answering(lambda x, y: MATMUL)
fft = types.SimpleNamespace(fft=answering(numpy.fft.fft))
linalg = types.SimpleNamespace(solve=answering(numpy.linalg.solve))
arange, full = numpy.arange, numpy.full
def csr_matrix(parts, shape):
    values, columns, rows = parts
    assert (len(values), len(columns), len(rows)) == (shape[0], shape[0], shape[0] + 1)
    dense = numpy.zeros(shape)
    for row in range(shape[0]):
        dense[row, columns[rows[row]:rows[row + 1]]] = values[rows[row]:rows[row + 1]]
    return types.SimpleNamespace(dot=answering(dense.dot))
random = types.SimpleNamespace(
    RandomState=lambda seed: types.SimpleNamespace(random_sample=lambda size: answering(numpy.resize)(RANDOM, size))
)
def no_nvrtc(): raise ImportError('libnvrtc.so.12: cannot open shared object file')
cuda = types.SimpleNamespace(
    Device=Device,
    nvrtc=types.SimpleNamespace(getVersion=NVRTC, getSupportedArchs=lambda: [75, 90]),
    driver=types.SimpleNamespace(get_build_version=lambda: 12090),
    runtime=types.SimpleNamespace(
        is_hip=HIP, getDeviceCount=lambda: COUNT, runtimeGetVersion=lambda: 13010, driverGetVersion=lambda: DRIVER
    ),
)
"""
SLOTS = {"BROKEN_DEVICE": "None", "INEXACT": "[0, 0]", "MATMUL": "x @ y", "RANDOM": "[0, 0, 1, 1]", "HIP": "False"}
SLOTS |= {"NVRTC": "lambda: (12, 9)", "COUNT": "2", "DRIVER": "12020"}


def ask(python: str | Path, path: Path, **environ: str) -> CupyRuntime:
    """Return the section under `python`, for which the modules in `path` come first."""
    return parse_cupy_runtime(facts_of("cupy_runtime", {"PYTHONPATH": str(path), **environ}, interpreter=python))


def ask_stub(folder: Path, cupy: str) -> CupyRuntime:
    """Return the section where `cupy` is the text of the module of that name."""
    (folder / "cupy.py").write_text(cupy)
    return ask(sys.executable, folder)


@pytest.fixture
def numpy_as_cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts NumPy in CuPy's place in this process, and returns the module."""
    pytest.importorskip("numpy")
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")

    def replace(**slots: str) -> Any:
        text = NUMPY_AS_CUPY
        for slot, value in {**SLOTS, **slots}.items():
            text = text.replace(slot, value)
        module = ModuleType("cupy")
        exec(text, module.__dict__)
        monkeypatch.setitem(sys.modules, "cupy", module)
        monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", module)
        return module

    return replace


def call_of(runtime: CupyRuntime, library: str) -> LibraryCall:
    return next(call for call in runtime.calls or () if call.library == library)


def test_the_question_is_asked_in_a_process_started_again(tmp_path: Path) -> None:
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


NAMES = ["elementwise", "cublas", "cufft", "curand", "cusolver", "cusparse"]
EXACT = [{"library": name} if name == "curand" else {"library": name, "relative_error": 0.0} for name in NAMES]
VERSIONS = {"build_cuda_version": "12.9", "runtime_cuda_version": "13.1", "driver_cuda_version": "12.2"}
NVRTC = {"nvrtc_version": "12.9", "nvrtc_architectures": ["sm_75", "sm_90"]}
FACTS = {"import_error": "", "version": "14.2.0", "device_count": 2, "device_error": "", "warnings": []}


@pytest.mark.parametrize(
    ("slots", "calls", "expected"),
    [
        ({}, True, {**FACTS, **VERSIONS, **NVRTC, "calls": [{"library": "nvrtc"}, *EXACT]}),
        ({}, False, {**FACTS, **VERSIONS, **NVRTC, "calls": [{"library": "nvrtc"}]}),
        ({"COUNT": "0"}, True, {**FACTS, **VERSIONS, **NVRTC, "device_count": 0, "calls": [{"library": "nvrtc"}]}),
        ({"HIP": "True"}, True, {**FACTS, "calls": [{"library": "nvrtc"}, *EXACT]}),
    ],
    ids=["all", "no calls", "no device", "ROCm has no version of CUDA"],
)
def test_every_library_is_called_and_compared(
    numpy_as_cupy: Any, slots: dict[str, str], calls: bool, expected: dict[str, Any]
) -> None:
    shapes = numpy_as_cupy(**slots).shapes
    assert worker.collect({} if calls else {"calls": False}) == expected
    called = len(expected["calls"]) > 1
    assert shapes == ({(64, 64), (64,), (4096,)} if called else set())
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == str(int(called)), "a kernel of the cache tells nothing of the compiler"


def test_without_a_driver_its_version_is_unknown(numpy_as_cupy: Any) -> None:
    assert "driver_cuda_version" not in worker._versions(numpy_as_cupy(DRIVER="0"))


@pytest.mark.parametrize(
    ("slots", "call"),
    [
        ({"NVRTC": "no_nvrtc"}, {"error": "ImportError: libnvrtc.so.12: cannot open shared object file"}),
        ({"BROKEN_DEVICE": "1"}, {"error": "device 1: RuntimeError: CUDA_ERROR_NO_BINARY_FOR_GPU"}),
        ({"INEXACT": "[0, 0.25]"}, {"relative_error": 0.25}),
        ({"INEXACT": "[0.5, 0.25]"}, {"relative_error": 0.5}),
        ({"MATMUL": "x @ y * float('nan')"}, {"error": "not finite"}),
        ({"MATMUL": "x @ y * 1.5"}, {"relative_error": 0.5}),
        ({"RANDOM": "[0.9]"}, {"error": "not uniform: mean 0.9, from 0.9 to 0.9"}),
        ({"RANDOM": "[-0.5, 1, 1, 0.5]"}, {"error": "not uniform: mean 0.5, from -0.5 to 1"}),
        ({"RANDOM": "[1.5, 0, 0, 0.5]"}, {"error": "not uniform: mean 0.5, from 0 to 1.5"}),
        ({"RANDOM": "lost"}, {"error": "NameError: name 'lost' is not defined"}),
    ],
)
def test_a_failing_library_is_named_and_the_others_are_called(
    numpy_as_cupy: Any, slots: dict[str, str], call: dict[str, Any]
) -> None:
    library = {"NVRTC": "nvrtc", "MATMUL": "cublas", "RANDOM": "curand"}.get(next(iter(slots)), "elementwise")
    numpy_as_cupy(**slots)
    expected = [{"library": "nvrtc"}, *EXACT]
    assert worker.collect({})["calls"] == [
        {"library": library, **call} if other["library"] == library else other for other in expected
    ]


class Nvrtc:
    """libnvrtc: how many architectures it counts, and the codes of its two functions."""

    def __init__(self, count: int, codes: tuple[int, int] = (0, 0)) -> None:
        self.count = count
        self.codes = codes

    def nvrtcGetNumSupportedArchs(self, count: Any) -> int:  # noqa: N802 - the library's name
        count._obj.value = self.count
        return self.codes[0]

    def nvrtcGetSupportedArchs(self, numbers: Any) -> int:  # noqa: N802
        numbers[:] = range(50, 50 + len(numbers))
        return self.codes[1]


@pytest.mark.parametrize(
    ("nvrtc", "architectures"),
    [
        (Nvrtc(1), ["sm_50"]),
        (Nvrtc(999), [f"sm_{number}" for number in range(50, 1049)]),
        (Nvrtc(0), None),
        (Nvrtc(1000), None),
        (Nvrtc(2, (1, 0)), None),
        (Nvrtc(2, (0, 1)), None),
    ],
    ids=["one", "most", "none", "too many", "cannot count", "cannot tell"],
)
def test_an_older_cupy_leaves_the_question_to_the_nvrtc_that_is_loaded(
    numpy_as_cupy: Any, monkeypatch: pytest.MonkeyPatch, nvrtc: Nvrtc, architectures: list[str] | None
) -> None:
    cupy = numpy_as_cupy()
    del cupy.cuda.nvrtc.getSupportedArchs
    maps = "7f00-7f01 r-xp 0 08:01 1 /lib/libc.so.6\n7f02-7f03 r-xp 0 08:01 2 /my cuda/libnvrtc.so.12\n"
    monkeypatch.setattr(worker, "open", lambda *_, **__: io.StringIO(maps), raising=False)
    monkeypatch.setattr("ctypes.CDLL", {"/my cuda/libnvrtc.so.12": nvrtc}.get)
    facts: dict[str, Any] = {}
    assert worker._nvrtc(cupy, facts) == {"library": "nvrtc"}
    assert facts.get("nvrtc_architectures") == architectures


def test_the_first_cause_of_an_error_is_named() -> None:
    first, second, third = (ValueError(number) for number in range(3))
    assert worker._cause(first) is first
    first.__cause__, second.__cause__ = second, third
    assert worker._cause(first) is third
    third.__cause__ = second
    assert worker._cause(first) is third


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


def cupy_of(*, is_hip: bool, **more: Any) -> Any:
    numbers = {"runtimeGetVersion": lambda: 12_080, "driverGetVersion": lambda: 0}
    runtime = SimpleNamespace(is_hip=is_hip, **numbers)
    driver = SimpleNamespace(get_build_version=lambda: 11_020)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime, driver=driver, **more))


@pytest.mark.parametrize(
    ("is_hip", "facts"), [(False, {"build_cuda_version": "11.2", "runtime_cuda_version": "12.8"}), (True, {})]
)
def test_a_hip_version_is_none_of_cuda(is_hip: bool, facts: dict[str, str]) -> None:
    assert worker._versions(cupy_of(is_hip=is_hip)) == facts


@pytest.mark.parametrize(
    ("is_hip", "asked_of_cupy", "loaded", "facts"),
    [
        (False, [75, 90], [80], {"nvrtc_version": "12.9", "nvrtc_architectures": ["sm_75", "sm_90"]}),
        (False, [], [80], {"nvrtc_version": "12.9", "nvrtc_architectures": ["sm_80"]}),
        (False, [], [], {"nvrtc_version": "12.9"}),
        (True, [75], [80], {}),
    ],
)
def test_what_the_compiler_compiles_for(
    monkeypatch: pytest.MonkeyPatch,
    is_hip: bool,
    asked_of_cupy: list[int],
    loaded: list[int],
    facts: dict[str, Any],
) -> None:
    nvrtc = SimpleNamespace(getVersion=lambda: (12, 9), getSupportedArchs=lambda: asked_of_cupy)
    monkeypatch.setattr(worker, "_loaded_nvrtc_architectures", lambda: loaded)
    found: dict[str, Any] = {}
    assert worker._nvrtc(cupy_of(is_hip=is_hip, nvrtc=nvrtc), found) == {"library": "nvrtc"}
    assert found == facts


@pytest.mark.parametrize(
    ("low", "mean", "high", "error"),
    [
        (0.0, 0.5, 1.0, None),
        (0.0, 0.451, 1.0, None),
        (0.0, 0.549, 1.0, None),
        (0.0, 0.45, 1.0, "not uniform: mean 0.45, from 0 to 1"),
        (0.0, 0.55, 1.0, "not uniform: mean 0.55, from 0 to 1"),
        (-0.5, 0.5, 1.0, "not uniform: mean 0.5, from -0.5 to 1"),
        (0.0, 0.5, 1.5, "not uniform: mean 0.5, from 0 to 1.5"),
        (0.0, 0.4, 1.0, "not uniform: mean 0.4, from 0 to 1"),
        (0.0, 0.6, 1.0, "not uniform: mean 0.6, from 0 to 1"),
    ],
)
def test_which_random_numbers_are_uniform(low: float, mean: float, high: float, error: str | None) -> None:
    numbers = SimpleNamespace(min=lambda: low, mean=lambda: mean, max=lambda: high)
    state = SimpleNamespace(random_sample=lambda size: SimpleNamespace(get=lambda: numbers))
    cupy = SimpleNamespace(random=SimpleNamespace(RandomState=lambda seed: state))
    assert worker._random_numbers(cupy) == {"library": "curand", **({"error": error} if error else {})}
