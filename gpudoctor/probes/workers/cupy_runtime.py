"""Import CuPy and ask it what it can do here; if there is a device, compare a call of each library with NumPy.

Standard library, CuPy and the NumPy it needs, from Python 3.8 and CuPy 8 on. A value that is left out is unknown.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import warnings
from functools import partial
from operator import itemgetter
from typing import Any, Callable, Dict, List, Mapping, Tuple

from gpudoctor.probes.workers.asking import ask, attempt, error_text, put_known, traceback_text, warning_texts

SIZE = 64  # rows and columns of the matrices

Facts = Dict[str, Any]


def collect(arguments: Mapping[str, Any]) -> Facts:
    """Return the facts of section cupy_runtime. `{"calls": false}` leaves the calls on devices out."""
    with warnings.catch_warnings(record=True) as caught:
        facts, cupy = _import_cupy()
        if cupy is not None:
            facts.update(_versions(cupy), **_devices(cupy))
            facts["calls"] = [_nvrtc(cupy, facts)]
            if arguments.get("calls", True) and facts["device_count"]:
                facts["calls"] += _calls(cupy, facts["device_count"])
    facts["warnings"] = warning_texts(caught)
    return facts


def _import_cupy() -> Tuple[Facts, Any]:
    """Return the facts about the import, and the module: None if it failed.

    CuPy wraps what the loader said in a page of advice; the exception that it names as the cause says what is missing.
    """
    try:
        import cupy

        version = str(cupy.__version__)  # a folder of that name that an uninstallation left behind has none
    except BaseException as error:  # an import may raise SystemExit too
        facts = {"import_error": error_text(_cause(error)), "import_message": error_text(error)}
        return {**facts, "import_traceback": traceback_text()}, None
    return {"import_error": "", "version": version}, cupy


def _cause(error: BaseException) -> BaseException:
    """Return the exception that `error` was raised from in the end, `error` itself if there is none."""
    seen = {id(error)}
    while error.__cause__ is not None and id(error.__cause__) not in seen:
        error = error.__cause__
        seen.add(id(error))
    return error


def _versions(cupy: Any) -> Facts:
    """Return the versions of CUDA that CuPy was built with, loaded and sees; a HIP version is not a CUDA version."""
    facts: Facts = {}
    if _is_hip(cupy):
        return facts
    put_known(facts, "build_cuda_version", lambda: _cuda_version(cupy.cuda.driver.get_build_version()))
    put_known(facts, "runtime_cuda_version", lambda: _cuda_version(cupy.cuda.runtime.runtimeGetVersion()))
    put_known(facts, "driver_cuda_version", lambda: _cuda_version(cupy.cuda.runtime.driverGetVersion()))
    return facts


def _cuda_version(number: int) -> Any:
    """Return "12.9" for 12090; None for 0, which means no driver."""
    return "{}.{}".format(number // 1000, number % 1000 // 10) if number else None


def _is_hip(cupy: Any) -> bool:
    return bool(ask(lambda: cupy.cuda.runtime.is_hip))


def _devices(cupy: Any) -> Facts:
    count, error = attempt(lambda: int(cupy.cuda.runtime.getDeviceCount()))
    return {"device_count": count or 0, "device_error": error}


def _nvrtc(cupy: Any, facts: Facts) -> Facts:
    """Ask the compiler for its version, which needs no device, and put what it knows into `facts`."""
    call: Facts = {"library": "nvrtc"}
    version, error = attempt(lambda: [int(part) for part in cupy.cuda.nvrtc.getVersion()])
    if error:
        return {**call, "error": error}
    if not _is_hip(cupy):
        facts["nvrtc_version"] = ".".join(str(part) for part in version)
        numbers = ask(lambda: list(cupy.cuda.nvrtc.getSupportedArchs())) or ask(_loaded_nvrtc_architectures)
        if numbers:
            facts["nvrtc_architectures"] = ["sm_{}".format(int(number)) for number in numbers]
    return call


def _loaded_nvrtc_architectures() -> List[int]:
    """Return what the NVRTC in this process compiles for: older CuPy versions do not ask it. From CUDA 11.2 on."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = (line.split(None, 5)[5].strip() for line in maps if "libnvrtc.so" in line)
        nvrtc = ctypes.CDLL(next(paths))
    count = ctypes.c_int()
    if nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) or not 0 < count.value < 1000:
        return []
    numbers = (ctypes.c_int * count.value)()
    return [] if nvrtc.nvrtcGetSupportedArchs(numbers) else list(numbers)


def _calls(cupy: Any, devices: int) -> List[Facts]:
    """Return how a call into each library went: a kernel on every device, the other libraries on the first."""
    # A kernel from the cache on disk would say nothing about the compiler, and asking shall leave nothing there.
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    numpy = importlib.import_module("numpy")
    random = numpy.random.RandomState(0)
    left, right = random.standard_normal((2, SIZE, SIZE))
    square = left + SIZE * numpy.eye(SIZE)  # diagonally dominant: the system can be solved accurately
    column = right[0].copy()

    def compare(library: str, run: Callable[[], Any], expected: Any) -> Facts:
        return {"library": library, **_difference(run, expected)}

    return [
        _elementwise(cupy, devices, left, right),
        compare("cublas", lambda: cupy.matmul(cupy.asarray(left), cupy.asarray(right)), left @ right),
        compare("cufft", lambda: cupy.fft.fft(cupy.asarray(left)), numpy.fft.fft(left)),
        _random_numbers(cupy),
        compare(
            "cusolver",
            lambda: cupy.linalg.solve(cupy.asarray(square), cupy.asarray(column)),
            numpy.linalg.solve(square, column),
        ),
        compare("cusparse", lambda: _sparse_product(cupy, column), 2 * column),
    ]


def _elementwise(cupy: Any, devices: int, left: Any, right: Any) -> Facts:
    """Compile a kernel and run it on every device. The answer is that of the first one that fails, or the worst."""
    results: List[Facts] = []
    for index in range(devices):
        result = _difference(partial(_kernel, cupy, index, left, right), left * right + 1)
        if "error" in result:
            return {"library": "elementwise", "error": "device {}: {}".format(index, result["error"])}
        results.append(result)
    return {"library": "elementwise", **max(results, key=itemgetter("relative_error"))}


def _kernel(cupy: Any, index: int, left: Any, right: Any) -> Any:
    with cupy.cuda.Device(index):
        kernel = cupy.ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x * y + 1", "gpudoctor_probe")
        return kernel(cupy.asarray(left), cupy.asarray(right))


def _sparse_product(cupy: Any, column: Any) -> Any:
    sparse = importlib.import_module("cupyx.scipy.sparse")
    rows = cupy.arange(SIZE + 1, dtype="int32")
    twice = sparse.csr_matrix((cupy.full(SIZE, 2.0), rows[:-1], rows), shape=(SIZE, SIZE))
    return twice.dot(cupy.asarray(column))


def _random_numbers(cupy: Any) -> Facts:
    """Ask for uniform numbers, which NumPy draws otherwise: their range and mean show whether they are uniform."""
    call: Facts = {"library": "curand"}
    numbers, error = attempt(lambda: cupy.random.RandomState(0).random_sample(SIZE * SIZE).get())
    if error:
        return {**call, "error": error}
    low, mean, high = float(numbers.min()), float(numbers.mean()), float(numbers.max())
    # The mean of 4096 uniform numbers has a standard deviation of 0.0045; 0.05 is eleven of them.
    if low >= 0 and high <= 1 and 0.45 < mean < 0.55:
        return call
    return {**call, "error": "not uniform: mean {:.3g}, from {:.3g} to {:.3g}".format(mean, low, high)}


def _difference(run: Callable[[], Any], expected: Any) -> Facts:
    """Return how far the result of `run` on the device is from `expected`."""
    actual, error = attempt(lambda: run().get())  # copying to the CPU waits for the device
    if error:
        return {"error": error}
    difference = float(abs(actual - expected).max() / abs(expected).max())
    if not math.isfinite(difference):
        return {"error": "not finite"}
    return {"relative_error": float("{:.3e}".format(difference))}
