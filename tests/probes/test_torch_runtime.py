"""The worker that imports PyTorch: stand-ins that misbehave, the real PyTorch, and the section read from its answer."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from types import SimpleNamespace as S
from typing import Any, Protocol

import pytest

from gpudoctor.data.numerics import INNER_SIZE, error_bound
from gpudoctor.model import ComputeCapability, CudaVersion, PackageVersion, PrecisionResult
from gpudoctor.probes.host import Answer, ProbeContext
from gpudoctor.probes.local_host import LocalHost
from gpudoctor.probes.torch_build import parse_torch_runtime
from gpudoctor.probes.workers import torch_runtime as worker
from gpudoctor.probes.workers.asking import MAXIMUM_WARNINGS
from tests.environments import python_of
from tests.probes.asked import asked
from tests.stand_ins import facts_of

WORKER = Path(worker.__file__)


def ask(path: Path, timeout_seconds: float = 20.0) -> Answer:
    """Return the answer to the question in an environment whose modules lie in `path`."""
    setting = ProbeContext(
        environ={**os.environ, "PYTHONPATH": str(path)},
        directory=path,
        interpreter=sys.executable,
        timeout_seconds=timeout_seconds,
    )
    return LocalHost(setting).ask([asked("torch-runtime", setting)])()["torch-runtime"]


class AskStub(Protocol):
    def __call__(self, torch: str, timeout_seconds: float = 20.0) -> Answer: ...


@pytest.fixture
def ask_stub(tmp_path: Path) -> AskStub:
    """Return a function that asks the question where `torch` is the text of the module of that name."""

    def ask_stub(torch: str, timeout_seconds: float = 20.0) -> Answer:
        (tmp_path / "torch.py").write_text(torch)
        return ask(tmp_path, timeout_seconds)

    return ask_stub


def run_real(python: Path, script: str, options: tuple[str, ...] = (), **environ: str) -> Any:
    """Return the JSON that `script`, with the worker loaded as `worker`, prints under `python`."""
    load = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('worker', {str(WORKER)!r})\n"
        "worker = importlib.util.module_from_spec(spec); spec.loader.exec_module(worker)\n"
    )
    done = subprocess.run(
        [python, *options, "-c", load + script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environ},
    )
    return json.loads(done.stdout)


def test_without_torch_the_error_says_so(tmp_path: Path) -> None:
    runtime = parse_torch_runtime(ask(tmp_path).facts)
    assert runtime.import_error == "ModuleNotFoundError: No module named 'torch'"
    assert (runtime.available, runtime.version) == (None, None)


@pytest.mark.parametrize(
    ("torch", "error"),
    [
        pytest.param("raise ImportError('libc10.so: cannot open')", "ImportError: libc10.so: cannot open", id="raises"),
        pytest.param("import nowhere", "ModuleNotFoundError: No module named 'nowhere'", id="misses a module"),
        pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exits"),
        pytest.param("pass", "AttributeError: module 'torch' has no attribute '__version__'", id="another torch.py"),
    ],
)
def test_a_failing_import_is_named(ask_stub: AskStub, torch: str, error: str) -> None:
    answer = ask_stub(torch)
    assert (answer.state, answer.facts["import_error"]) == ("ok", error)
    assert "Traceback" in answer.facts["import_traceback"]


def test_a_folder_without_code_is_no_torch(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    assert "has no attribute '__version__'" in ask(tmp_path).facts["import_error"]


@pytest.mark.parametrize(
    ("torch", "state", "detail"),
    [
        pytest.param("import os; os.abort()", "failed", "killed by SIGABRT", id="aborts"),
        pytest.param(
            "import time; time.sleep(60)", "timed-out", "no answer in 1 s (--timeout sets the limit)", id="hangs"
        ),
    ],
)
def test_an_import_that_never_ends_well(ask_stub: AskStub, torch: str, state: str, detail: str) -> None:
    answer = ask_stub(torch, timeout_seconds=20.0 if state == "failed" else 1.0)
    assert (answer.state, answer.detail.partition("\n")[0]) == (state, detail)


def test_what_a_library_prints_or_replaces_does_not_spoil_the_answer(ask_stub: AskStub) -> None:
    torch = (
        "import os, sys, warnings\n"
        "__version__ = '2.13.0'\n"
        "print('banner'); os.system('echo child'); sys.stdout = None\n"
        "sys.modules['json'] = sys.modules['typing'] = None\n"
        "for number in range(100): warnings.warn(f'warning {number}')\n"
    )
    answer = ask_stub(torch)
    runtime = parse_torch_runtime(answer.facts)
    assert (answer.state, runtime.version) == ("ok", PackageVersion("2.13.0"))
    assert runtime.warnings == tuple(f"warning {number}" for number in range(MAXIMUM_WARNINGS))


CUDA_BUILD = """
import types, warnings
__version__ = '2.13.0+cu130'
version = types.SimpleNamespace(cuda='13.0', hip=None)
_C = types.SimpleNamespace(_cuda_getArchFlags=lambda: 'sm_75 sm_80 compute_90')
def is_available():
    warnings.warn('CUDA initialization: the driver is too old (found version 11040)')
    return AVAILABLE
def init():
    raise RuntimeError('The NVIDIA driver on your system is too old (found version 11040)')
cuda = types.SimpleNamespace(
    is_available=is_available, init=init, device_count=lambda: 1
)
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=VERSION))
"""


def cuda_build(available: bool = False, cudnn: str = "lambda: 91002") -> str:
    return CUDA_BUILD.replace("AVAILABLE", str(available)).replace("VERSION", cudnn)


@pytest.mark.parametrize("available", [False, True], ids=["is_available() is False", "init() fails after all"])
def test_the_error_that_is_available_swallows(ask_stub: AskStub, available: bool) -> None:
    runtime = parse_torch_runtime(ask_stub(cuda_build(available)).facts)
    assert runtime.available is available
    assert runtime.availability_error == (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)"
    )
    assert runtime.warnings == ("CUDA initialization: the driver is too old (found version 11040)",)
    assert (runtime.cuda_version, runtime.hip_version) == (CudaVersion(13, 0), "")
    assert runtime.architectures == ("sm_75", "sm_80", "compute_90")
    assert runtime.precision_results == ()
    assert runtime.device_names is None


def test_a_cudnn_that_cannot_be_loaded_keeps_its_error(ask_stub: AskStub) -> None:
    runtime = parse_torch_runtime(ask_stub(cuda_build(cudnn="lambda: [][0]")).facts)
    assert (runtime.cudnn_version, runtime.cudnn_error) == (None, "IndexError: list index out of range")


@pytest.mark.parametrize(
    ("matmul", "above", "tf32"),
    [
        pytest.param("allow_tf32=True", "", True, id="older releases, on"),
        pytest.param("allow_tf32=False", "", False, id="older releases, off"),
        pytest.param("fp32_precision='ieee', allow_tf32=True", "", False, id="the newer switch counts"),
        pytest.param("fp32_precision='none'", "fp32_precision='tf32'", True, id="inherited where not resolved"),
        pytest.param("fp32_precision='none'", "fp32_precision='none'", False, id="set nowhere"),
        pytest.param("", "", None, id="neither: before 1.7"),
    ],
)
def test_switches_of_other_releases(ask_stub: AskStub, matmul: str, above: str, tf32: bool | None) -> None:
    torch = (
        f"from types import SimpleNamespace as S\n__version__ = '1'\nbackends = S(cuda=S(matmul=S({matmul})), {above})"
    )
    runtime = parse_torch_runtime(ask_stub(torch).facts)
    assert runtime.matmul_tf32 is tf32


def test_a_module_that_is_hardly_torch_leaves_the_rest_unknown(ask_stub: AskStub) -> None:
    runtime = parse_torch_runtime(ask_stub("__version__ = '0'").facts)
    assert (runtime.import_error, runtime.available) == ("", False)
    assert (runtime.matmul_tf32, runtime.device_count, runtime.mps_built) == (None, None, False)


@pytest.mark.environments
def test_the_cpu_build() -> None:
    runtime = parse_torch_runtime(facts_of("torch_runtime", interpreter=python_of("torch-cpu")))
    assert (runtime.import_error, runtime.version) == ("", PackageVersion("2.13.0+cpu"))
    assert (runtime.available, runtime.availability_error, runtime.device_count) == (False, "", 0)
    assert (runtime.cuda_version, runtime.hip_version) == (None, "")
    assert (runtime.cudnn_version, runtime.cudnn_error, runtime.architectures) == (0, "", ())
    assert (runtime.matmul_tf32, runtime.cudnn_benchmark) == (False, False)
    assert (runtime.mps_built, runtime.mps_available) == (False, False)
    assert (runtime.warnings, runtime.precision_results) == ((), ())


@pytest.mark.environments
def test_a_build_with_a_library_missing() -> None:
    runtime = parse_torch_runtime(facts_of("torch_runtime", interpreter=python_of("torch-broken")))
    assert runtime.import_error == (
        "ImportError: libtorch_cpu.so: cannot open shared object file: No such file or directory"
    )


READ_SWITCHES = """
import torch
def state():
    found = []
    for read in (
        lambda: torch.backends.cuda.matmul.fp32_precision, lambda: torch.backends.cuda.matmul.allow_tf32,
        lambda: torch.backends.cudnn.conv.fp32_precision, lambda: torch.backends.cudnn.rnn.fp32_precision,
        lambda: torch.backends.cudnn.fp32_precision, lambda: torch.backends.cudnn.allow_tf32,
        lambda: torch.backends.fp32_precision, torch.get_float32_matmul_precision,
        lambda: torch.backends.cudnn.benchmark, torch.get_num_threads, torch.get_default_dtype,
    ):
        try:
            found.append(str(read()))
        except RuntimeError as error:
            found.append(str(error))
    return found
{set}
before = state()
facts = [worker.collect({{}}) for _ in range(2)]
assert facts[0] == facts[1], facts
assert state() == before, (before, state())
print(json.dumps(facts[0]))
"""


@pytest.mark.environments
@pytest.mark.parametrize(
    ("statement", "environ", "matmul"),
    [
        pytest.param("", {}, False, id="defaults"),
        pytest.param("torch.backends.cuda.matmul.allow_tf32 = True", {}, True, id="older switch"),
        pytest.param("torch.set_float32_matmul_precision('high')", {}, True, id="high"),
        pytest.param("torch.backends.cuda.matmul.fp32_precision = 'tf32'", {}, True, id="newer switch"),
        pytest.param("torch.backends.cuda.matmul.fp32_precision = 'ieee'", {}, False, id="newer switch off"),
        pytest.param("torch.backends.fp32_precision = 'tf32'", {}, True, id="inherited"),
        pytest.param("", {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}, True, id="forced by a variable"),
    ],
)
def test_reading_the_switches_changes_nothing_and_never_warns(
    statement: str, environ: Mapping[str, str], matmul: bool
) -> None:
    script = READ_SWITCHES.format(set=statement)
    facts = run_real(python_of("torch-cpu"), script, ("-W", "error"), **environ)
    assert (facts["matmul_tf32"], facts["warnings"]) == (matmul, [])


@pytest.mark.environments
def test_products_on_the_cpu_are_within_the_bounds() -> None:
    script = "import torch\nprint(json.dumps(worker._products(torch, {'cpu': ['fp32', 'fp16', 'bf16', 'fp8']})))"
    results = {result["precision"]: result["relative_error"] for result in run_real(python_of("torch-cpu"), script)}
    assert results.pop("fp8") == results["fp32"], "an unknown precision is computed as it comes"
    assert all(0 < error <= error_bound(precision) for precision, error in results.items())
    assert results["fp32"] < error_bound("fp32") < results["fp16"] < error_bound("fp16") < error_bound("bf16")


@pytest.mark.environments
def test_an_overflow_and_a_failing_device_are_distinguished() -> None:
    script = (
        "import torch\n"
        "torch.randn = lambda *size, generator, dtype: torch.full(size, 3e4, dtype=dtype)\n"
        "print(json.dumps(worker._products(torch, {'cpu': ['fp16'], 'cuda:0': ['fp32']})))"
    )
    overflow, no_device = run_real(python_of("torch-cpu"), script)
    assert overflow == {"device": "cpu", "precision": "fp16", "error": "not finite: 65536 of 65536 values"}
    assert no_device["error"].startswith("AssertionError: Torch not compiled with CUDA enabled")


@pytest.mark.environments
def test_a_failure_on_the_cpu_takes_no_other_fact_with_it() -> None:
    script = (
        "import torch\n"
        "torch.mm = lambda *factors: 1 / 0\n"
        "print(json.dumps(worker._products(torch, {'cpu': ['fp32'], 'cuda:0': ['fp32']})))"
    )
    assert [result["error"][:17] for result in run_real(python_of("torch-cpu"), script)] == ["ZeroDivisionError"] * 2


ERRORS = {"float64": 0.0, "float32": 1e-7, "tf32": 5e-4, "float16": 2e-3, "bfloat16": 3e-2}


class Value:
    """A tensor of one number."""

    def __init__(self, number: float, dtype: str = "float32", device: str = "cpu") -> None:
        self.number = number
        self.dtype = dtype
        self.device = device

    def to(self, target: str) -> "Value":
        if target in ERRORS:
            return Value(self.number, target, self.device)
        return Value(self.number, self.dtype, target)

    def double(self) -> "Value":
        return self.to("float64")

    def mul(self, factor: float) -> "Value":
        return Value(self.number * factor, self.dtype, self.device)

    def cpu(self) -> "Value":
        return self

    abs = max = sum = cpu

    def numel(self) -> int:
        return 1

    def __sub__(self, other: "Value") -> "Value":
        return Value(self.number - other.number)

    def __truediv__(self, other: "Value") -> "Value":
        return Value(self.number / other.number)

    def __invert__(self) -> "Value":
        return Value(1 - self.number)

    def __float__(self) -> float:
        return self.number

    def __int__(self) -> int:
        return int(self.number)

    float = cpu


class Newer:
    """The switch for TF32 once the newer one was set: the older one raises."""

    fp32_precision = "none"

    @property
    def allow_tf32(self) -> bool:
        raise RuntimeError("mix of the legacy and new APIs")


def torch_stub(matmul: Any = None, wrong: float = 1.0, **changes: Any) -> Any:
    """Return a module torch with two devices, one with TF32, whose products are off by ERRORS."""
    matmul = matmul or S(allow_tf32=True)

    def mm(left: Value, right: Value) -> Value:
        precision = left.dtype
        allowed = isinstance(matmul, S) and matmul.allow_tf32
        if (
            precision == "float32"
            and left.device != "mps"
            and (allowed or getattr(matmul, "fp32_precision", "") == "tf32")
        ):
            precision = "tf32"
        return Value(left.number * right.number * (1 + ERRORS[precision]) * (1 if precision == "float64" else wrong))

    module: Any = ModuleType("torch")
    vars(module).update({name: name for name in ERRORS}, mm=mm, threads=[], __version__="2.13.0+cu130")
    module.set_num_threads = module.threads.append
    module.Generator = lambda: S(manual_seed=lambda seed: None)
    module.randn = lambda *_, **__: Value(1.0)
    module.isfinite = lambda value: Value(int(value.number * 0 == 0))
    module.version = S(cuda="13.0", hip=None)
    module._C = S(_cuda_getArchFlags=lambda: "sm_80 compute_90")
    module.cuda = S(
        is_available=lambda: True,
        init=lambda: None,
        device_count=lambda: 2,
        get_device_name=lambda index: f"GPU {index}",
        get_device_capability=lambda index: ((8, 0), (7, 5))[index],
        get_arch_list=lambda: ["gfx90a"],
    )
    module.backends = S(
        cuda=S(matmul=matmul),
        cudnn=S(version=lambda: 91002, benchmark=True),
        mps=S(is_built=lambda: True, is_available=lambda: False),
    )
    vars(module).update(changes)
    return module


def product(device: str, precision: str) -> dict[str, Any]:
    error = ERRORS[{"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}.get(precision, precision)]
    return {"device": device, "precision": precision, "relative_error": error}


PRODUCTS = [product("cuda:0", name) for name in ("fp32", "tf32", "fp16", "bf16")]
PRODUCTS += [product("cuda:1", name) for name in ("fp32", "fp16", "bf16")]
ON_MPS = [product("mps", name) for name in ("fp32", "fp16", "bf16")]
CUDA_FACTS = {
    "import_error": "",
    "version": "2.13.0+cu130",
    "cuda_version": "13.0",
    "hip_version": "",
    "available": True,
    "availability_error": "",
    "device_count": 2,
    "device_names": ["GPU 0", "GPU 1"],
    "device_capabilities": ["8.0", "7.5"],
    "architectures": ["sm_80", "compute_90"],
    "cudnn_version": 91002,
    "cudnn_error": "",
    "matmul_tf32": True,
    "cudnn_benchmark": True,
    "mps_built": True,
    "mps_available": False,
    "warnings": [],
    "precision_results": PRODUCTS,
}
WITHOUT_DEVICE = {name: CUDA_FACTS[name] for name in CUDA_FACTS if not name.startswith("device_")}
OF_ROCM = {**CUDA_FACTS, "hip_version": "6.4", "architectures": ["gfx90a"]}
OF_ROCM["precision_results"] = [product(f"cuda:{n}", name) for n in range(2) for name in ("fp32", "fp16", "bf16")]
NO_GPU = {"available": False, "architectures": [], "hip_version": "", "device_count": 0, "precision_results": []}
NONE = S(is_available=lambda: False, device_count=lambda: 0)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, CUDA_FACTS, id="CUDA"),
        pytest.param(
            {"version": S(cuda=None, hip="6.4"), "_C": None},
            {name: OF_ROCM[name] for name in OF_ROCM if name not in ("cuda_version", "device_capabilities")},
            id="ROCm",
        ),
        pytest.param(
            {"version": S(cuda=None, hip=None), "cuda": NONE},
            {name: value for name, value in {**WITHOUT_DEVICE, **NO_GPU}.items() if name != "cuda_version"},
            id="CPU",
        ),
        pytest.param(
            {"version": S(cuda=None, hip=None), "cuda": NONE, "backends": S(mps=S(is_available=lambda: True))},
            {
                **{name: CUDA_FACTS[name] for name in ("import_error", "version", "availability_error", "warnings")},
                **NO_GPU,
                "cudnn_error": "AttributeError: 'types.SimpleNamespace' object has no attribute 'cudnn'",
                "mps_available": True,
                "precision_results": ON_MPS,
            },
            id="MPS",
        ),
        pytest.param(
            {"cuda": S(is_available=lambda: False, init=lambda: int("no"), device_count=lambda: 2)},
            {
                **WITHOUT_DEVICE,
                "available": False,
                "availability_error": "ValueError: invalid literal for int() with base 10: 'no'",
                "device_count": 2,
                "precision_results": [],
            },
            id="CUDA that does not start",
        ),
    ],
)
def test_the_whole_answer(changes: dict[str, Any], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_stub(**changes)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert worker.collect({"products": False}) == {
        name: value for name, value in expected.items() if name != "precision_results"
    }
    assert torch.threads == []
    assert worker.collect({}) == expected
    assert torch.threads == [1][: len(expected["precision_results"])]


@pytest.mark.parametrize(
    ("torch", "device", "precision", "expected"),
    [
        pytest.param(torch_stub(Newer()), "cuda:0", "tf32", product("cuda:0", "tf32"), id="newer switch on"),
        pytest.param(torch_stub(Newer()), "cuda:0", "fp32", product("cuda:0", "fp32"), id="newer switch off"),
        pytest.param(torch_stub(object()), "cuda:0", "fp32", product("cuda:0", "fp32"), id="no switch, off"),
        pytest.param(torch_stub(wrong=float("nan")), "mps", "fp16", {"error": "not finite: 1 of 1 values"}, id="NaN"),
        pytest.param(torch_stub(wrong=1.5), "mps", "fp16", {"relative_error": 0.503}, id="wrong"),
    ],
)
def test_a_product(torch: Any, device: str, precision: str, expected: dict[str, Any]) -> None:
    place = {"device": device, "precision": precision}
    assert worker._product(torch, device, precision, (Value(1.0), Value(1.0))) == {**place, **expected}


def test_before_there_was_a_switch_tf32_is_an_error() -> None:
    answer = worker._product(torch_stub(object()), "cuda:0", "tf32", (Value(1.0), Value(1.0)))
    assert answer["error"].startswith("AttributeError: 'object' object has no attribute 'allow_tf32'")


def test_the_switch_is_left_alone_if_it_decides_nothing() -> None:
    torch = torch_stub()
    for device, precision in (("mps", "fp32"), ("cuda:0", "fp16")):
        worker._product(torch, device, precision, (Value(1.0), Value(1.0)))
    assert torch.backends.cuda.matmul.allow_tf32 is True


AVAILABLE = {"available": True, "availability_error": "", "device_count": 1}


@pytest.mark.parametrize(
    ("facts", "devices"),
    [
        pytest.param({"available": False, "availability_error": "", "device_count": 1}, {}, id="not available"),
        pytest.param({**AVAILABLE, "availability_error": "RuntimeError: ..."}, {}, id="not initialised"),
        pytest.param(
            {**AVAILABLE, "device_capabilities": ["7.5"]}, {"cuda:0": ["fp32", "fp16", "bf16"]}, id="no TF32 on Turing"
        ),
        pytest.param(
            {**AVAILABLE, "device_count": 2, "device_capabilities": ["8.0", "12.0"]},
            {f"cuda:{n}": ["fp32", "tf32", "fp16", "bf16"] for n in range(2)},
            id="TF32 from 8.0 on",
        ),
        pytest.param(AVAILABLE, {"cuda:0": ["fp32", "fp16", "bf16"]}, id="no capability, as on ROCm"),
        pytest.param(
            {"available": False, "availability_error": "", "mps_available": True},
            {"mps": ["fp32", "fp16", "bf16"]},
            id="MPS",
        ),
    ],
)
def test_devices_to_try(facts: dict[str, Any], devices: dict[str, list[str]]) -> None:
    assert worker._devices(facts) == devices


@pytest.mark.parametrize("name", ["torch_runtime.py", "cupy_runtime.py", "run.py", "../../worker.py"])
def test_the_worker_is_python_3_8(name: str) -> None:
    ast.parse((WORKER.parent / name).read_text(), feature_version=(3, 8))


def test_the_bounds_are_for_the_size_of_the_products() -> None:
    assert worker.SIZE == INNER_SIZE


def test_the_section_holds_every_fact() -> None:
    runtime = parse_torch_runtime(
        {
            "import_error": "",
            "version": "2.13.0+cu130",
            "cuda_version": "13.0",
            "available": True,
            "device_capabilities": ["9.0"],
            "precision_results": [{"device": "cuda:0", "precision": "bf16", "relative_error": 4e-3}],
            "import_traceback": "kept for the recording, no part of the section",
        }
    )
    assert runtime.cuda_version == CudaVersion(13, 0)
    assert runtime.device_capabilities == (ComputeCapability(9, 0),)
    assert runtime.precision_results == (PrecisionResult(device="cuda:0", precision="bf16", relative_error=4e-3),)


def test_texts_are_bounded_and_free_of_control_characters() -> None:
    runtime = parse_torch_runtime(
        {"import_error": "ImportError:\n\x1b[31m bad\x07  \u202elib", "warnings": ["w" * 9999] * 9999}
    )
    assert runtime.import_error == "ImportError: [31m bad lib"
    assert runtime.warnings is not None
    assert len(runtime.warnings) == 256
    assert max(map(len, runtime.warnings)) == 1000


@pytest.mark.parametrize(
    ("fact", "value"),
    [("cuda_version", "thirteen"), ("available", "yes"), ("device_capabilities", "9.0"), ("device_count", True)],
)
def test_a_value_that_is_none_is_refused(fact: str, value: Any) -> None:
    with pytest.raises(ValueError, match=fact):
        parse_torch_runtime({"import_error": "", fact: value})
