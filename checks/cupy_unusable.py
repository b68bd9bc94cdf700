"""CuPy is there, and importing it or calling its libraries fails."""

from collections.abc import Iterator, Sequence

from gpudoctor.data.numerics import percent
from gpudoctor.data.packages import removed_from_cupy
from gpudoctor.model import Cupy, CupyRuntime, CupyStatus, Finding, Fix, Gpu, LibraryCall, Severity, Symptom
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

# Without these nothing works in CuPy; without the others, only what they are for.
ESSENTIAL = ("nvrtc", "elementwise", "cublas")

# The calls are made in float64: 1e-10 is 450,000 times its unit roundoff of 2^-53, and they sum 64 terms at most.
LARGEST_ERROR = 1e-10

# What only a GPU that answers can cause.
OF_A_GPU = ("cupy-own-status", "cupy-own-invalid-ptx")


@check(family="cupy")
def cupy_unusable(
    cupy_runtime: CupyRuntime, cupy_status: CupyStatus, gpu: Gpu, cupy: Cupy = Cupy(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CuPy is installed and the machine has a GPU, but importing CuPy or a call into one of its libraries fails.

    Why: CuPy compiles its kernels with NVRTC and calls cuBLAS, cuFFT, cuRAND, cuSOLVER and cuSPARSE. Its wheels contain
    none of them: the CUDA toolkit or the extra [ctk] provides them. The message "module 'cupy' has no attribute
    'ndarray'" means that files of its version are missing. "no attribute 'util'" means that the program was written for
    an older CuPy.
    If gpudoctor knows the cause, that finding is first.
    Exception: if only a library other than NVRTC and cuBLAS fails, this is a warning, because programs may not use it.
    CUDA errors count only if the machine is known to have a GPU.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    skip_unless(cupy_status.installed is not False and not cupy_status.absent, "CuPy is not installed")
    error = known(cupy_runtime.import_error, "cupy_runtime.import_error")
    of_a_gpu = [symptom for symptom in of_kind(symptoms, *OF_A_GPU) if symptom.fact == cupy_runtime.first_error]
    if not error and not of_a_gpu:
        known(gpu.present, "devices")
    skip_unless(gpu.present != "", "there is no NVIDIA GPU")
    subject = f"cupy {cupy_runtime.version}" if cupy_runtime.version else "cupy"
    if error or cupy_runtime.device_error:
        summary = _summary(cupy_runtime, cupy_status, of_a_gpu)
        facts = (f"cupy_runtime.{'import_error' if error else 'device_error'}",)
        yield Finding.error(subject, summary, facts, *_fixes(cupy_status, of_a_gpu, bool(cupy.distributions)))
        return
    yield from _failed_calls(known(cupy_runtime.calls, "cupy_runtime.calls"), subject, symptoms)


def _summary(runtime: CupyRuntime, status: CupyStatus, of_a_gpu: Sequence[Symptom]) -> str:
    error = runtime.import_error or runtime.device_error
    part = removed_from_cupy(status.removed_part)
    if part is not None:
        return f"The program uses {part.name}, which CuPy no longer has since version {part.last + 1}: {error}"
    if status.incomplete:
        return f"The CuPy folder lacks files of its version: {error}"
    if runtime.import_error:
        return f"import cupy fails: {error}"
    return f"CuPy {'cannot compute' if of_a_gpu else 'cannot use a GPU'}: {error}"


def _fixes(status: CupyStatus, of_a_gpu: Sequence[Symptom], listed: bool) -> Iterator[Fix]:
    if status.removed_part:
        yield Fix("install-older-cupy", part=status.removed_part)
        return
    if of_kind(of_a_gpu, "cupy-own-status"):
        yield Fix("free-memory-for-libraries")
    if of_kind(of_a_gpu, "cupy-own-invalid-ptx"):
        yield Fix("update-driver", needed=None)
    yield Fix("reinstall-cupy" if status.incomplete or not listed else "install-cupy")


def _failed_calls(calls: tuple[LibraryCall, ...], subject: str, symptoms: Symptoms) -> Iterator[Finding]:
    out_of_memory = {symptom.fact for symptom in of_kind(symptoms, "cupy-own-out-of-memory")}
    answered = {n: call for n, call in enumerate(calls) if f"cupy_runtime.calls[{n}].error" not in out_of_memory}
    failed = {n: fault for n, call in answered.items() if (fault := _fault(call))}
    if not failed:
        if out_of_memory:
            raise Skip("the GPU memory is full")
        return
    essential = any(calls[n].library in ESSENTIAL or _is_wrong(calls[n]) for n in failed)
    first = min(failed, key=lambda n: calls[n].library not in ESSENTIAL)
    others = [calls[n].library for n in failed if n != first]
    also = f" ({', '.join(others)} too)" if others else ""
    summary = f"CuPy's call into {calls[first].library} {failed[first]}{also}"
    facts = (f"cupy_runtime.calls[{n}].{'error' if calls[n].error else 'relative_error'}" for n in failed)
    yield Finding.of(Severity.ERROR if essential else Severity.WARNING, subject, summary, facts, Fix("install-cupy"))


def _fault(call: LibraryCall) -> str:
    """Return what is wrong with the call, as the end of a sentence; "" for nothing."""
    if call.error:
        return f"{'gives a wrong result' if _is_wrong(call) else 'fails'}: {call.error}"
    if call.relative_error is not None and _is_wrong(call):
        return f"gives a wrong result: an error of {percent(call.relative_error)}, which rounding does not explain"
    return ""


def _is_wrong(call: LibraryCall) -> bool:
    return call.is_invalid or (call.relative_error is not None and call.relative_error > LARGEST_ERROR)
