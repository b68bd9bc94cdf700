"""CuPy is there, and importing it or calling its libraries fails."""

from collections.abc import Iterator

from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    LibraryCall,
    Python,
    Remedy,
    Severity,
    System,
)
from gpudoctor.reasoning.usable_devices import present_gpu
from gpudoctor.registry import Skip, applies, check, known
from gpudoctor.remedies import install_cupy

# Without these nothing works in CuPy; without the others, only what they are for.
ESSENTIAL = ("nvrtc", "elementwise", "cublas")

# The calls are made in float64: 1e-10 is 450,000 times its unit roundoff of 2^-53, and they sum 64 terms at most.
LARGEST_ERROR = 1e-10


@check(family="cupy")
def cupy_unusable(
    cupy_runtime: CupyRuntime,
    cupy: Cupy | None = None,
    devices: tuple[Device, ...] | None = None,
    driver: Driver | None = None,
    system: System | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """CuPy is installed and a GPU is there, but importing CuPy or a call into one of its libraries fails.

    Why: CuPy compiles its kernels with NVRTC and calls cuBLAS, cuFFT, cuRAND, cuSOLVER and cuSPARSE, all of which its
    wheels leave to the CUDA toolkit or the extra [ctk]. Where gpudoctor knows the cause, that finding comes first.
    Exception: a library other than NVRTC and cuBLAS that fails is a warning, for programs may not use it.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    applies(cupy is None or cupy.distributions != (), "CuPy is not installed")
    error = known(cupy_runtime.import_error, "cupy_runtime.import_error")
    applies(not error.endswith("No module named 'cupy'"), "CuPy is not installed")
    applies(known(present_gpu(devices, driver, system), "devices"), "no NVIDIA GPU is there")
    remedies = (install_cupy(python=python, system=system, driver=driver, devices=devices, cupy=cupy),)
    subject = f"cupy {cupy_runtime.version}" if cupy_runtime.version else "cupy"
    if error or cupy_runtime.device_error:
        fact = "import_error" if error else "device_error"
        text = f"import cupy fails: {error}" if error else f"CuPy finds no device: {cupy_runtime.device_error}"
        yield Finding(
            severity=Severity.ERROR, summary=text, subject=subject, facts=(f"cupy_runtime.{fact}",), remedies=remedies
        )
        return
    yield from _failed_calls(known(cupy_runtime.calls, "cupy_runtime.calls"), subject, remedies)


def _failed_calls(calls: tuple[LibraryCall, ...], subject: str, remedies: tuple[Remedy, ...]) -> Iterator[Finding]:
    failed = {number: fault for number, call in enumerate(calls) if (fault := _fault(call))}
    if not failed:
        if any("OutOfMemory" in call.error for call in calls):
            raise Skip("the memory of the GPU is full")
        return
    essential = any(calls[number].library in ESSENTIAL or _is_wrong(calls[number]) for number in failed)
    first = min(failed, key=lambda number: calls[number].library not in ESSENTIAL)
    others = [calls[number].library for number in failed if number != first]
    also = f" ({', '.join(others)} too)" if others else ""
    yield Finding(
        severity=Severity.ERROR if essential else Severity.WARNING,
        summary=f"CuPy's call into {calls[first].library} {failed[first]}{also}",
        subject=subject,
        facts=tuple(f"cupy_runtime.calls[{n}].{'error' if calls[n].error else 'relative_error'}" for n in failed),
        remedies=remedies,
    )


def _fault(call: LibraryCall) -> str:
    """Return what is wrong with the call, as the end of a sentence; "" for nothing."""
    if "OutOfMemory" in call.error:
        return ""
    if call.error:
        return f"{'gives a wrong result' if _is_wrong(call) else 'fails'}: {call.error}"
    if _is_wrong(call):
        return f"gives a wrong result: relative error {call.relative_error:.1e}, rounding explains {LARGEST_ERROR:.0e}"
    return ""


def _is_wrong(call: LibraryCall) -> bool:
    """Return whether the call answered, but wrongly."""
    if call.error:
        return call.error.startswith(("not finite", "not uniform"))
    return call.relative_error is not None and call.relative_error > LARGEST_ERROR
