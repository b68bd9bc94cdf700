"""CuPy is there, and importing it or calling its libraries fails."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.cupy_errors import is_incomplete, removed_part
from gpudoctor.conclusions.gpu import gpu as present_gpu
from gpudoctor.data import RemovedPart
from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    Finding,
    LibraryCall,
    Package,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    System,
)
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_cupy, install_packages, update_driver

# Without these nothing works in CuPy; without the others, only what they are for.
ESSENTIAL = ("nvrtc", "elementwise", "cublas")

# The calls are made in float64: 1e-10 is 450,000 times its unit roundoff of 2^-53, and they sum 64 terms at most.
LARGEST_ERROR = 1e-10

# What only a GPU that answers can cause. Source: cublas_api.h, cusolver_common.h, cuda.h of CUDA 13.5.
STATUS = r"(?:CUBLAS|CUSOLVER|CUSPARSE|CURAND)_STATUS_|CUFFT_|CUDA_ERROR_INVALID_PTX"
# Distributions that people have; pip passes over those that are not installed.
USUAL = ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")


@record
class _Machine:
    """What the remedies depend on; None for unknown."""

    cupy: Cupy | None
    devices: tuple[Device, ...] | None
    driver: Driver | None
    system: System | None
    python: Python | None

    def version(self) -> PackageVersion | None:
        return self.cupy.version if self.cupy is not None else None

    def install(self, cupy: Cupy | None) -> Remedy:
        return install_cupy(python=self.python, system=self.system, driver=self.driver, devices=self.devices, cupy=cupy)


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
    wheels leave to the CUDA toolkit or the extra [ctk]. "module 'cupy' has no attribute 'ndarray'" tells of a folder
    that does not hold all of one version, "no attribute 'util'" of a program that was written for an older CuPy. Where
    gpudoctor knows the cause, that finding comes first.
    Exception: a library other than NVRTC and cuBLAS that fails is a warning, for programs may not use it. CUDA errors
    count only where a GPU is known to be there.
    Reference: https://docs.cupy.dev/en/stable/install.html
    """
    skip_unless(cupy is None or cupy.distributions != (), "CuPy is not installed")
    error = known(cupy_runtime.import_error, "cupy_runtime.import_error")
    skip_unless(not error.endswith("No module named 'cupy'"), "CuPy is not installed")
    device_error = cupy_runtime.device_error or ""
    gpu = present_gpu(devices, driver, system).present
    if not error and not re.match(STATUS, device_error):
        known(gpu, "devices")
    skip_unless(gpu != "", "no NVIDIA GPU is there")
    machine = _Machine(cupy=cupy, devices=devices, driver=driver, system=system, python=python)
    subject = f"cupy {cupy_runtime.version}" if cupy_runtime.version else "cupy"
    if error or device_error:
        yield Finding(
            severity=Severity.ERROR,
            summary=_summary(error, device_error, machine.version()),
            subject=subject,
            facts=(f"cupy_runtime.{'import_error' if error else 'device_error'}",),
            remedies=tuple(_remedies(error or device_error, machine)),
        )
        return
    yield from _failed_calls(known(cupy_runtime.calls, "cupy_runtime.calls"), subject, (machine.install(cupy),))


def _summary(error: str, device_error: str, version: PackageVersion | None) -> str:
    part = removed_part(error, version)
    if part is not None:
        return f"The program uses {part.name}, which CuPy has no longer since version {part.last + 1}: {error}"
    if is_incomplete(error, version):
        return f"The folder of CuPy does not hold all of one version: {error}"
    if error:
        return f"import cupy fails: {error}"
    return f"CuPy {'cannot compute' if re.match(STATUS, device_error) else 'finds no device'}: {device_error}"


def _remedies(error: str, machine: _Machine) -> Iterator[Remedy]:
    part = removed_part(error, machine.version())
    if part is not None:
        yield _older(part, machine)
        return
    if "_STATUS_" in error or error.startswith("CUFFT"):
        yield Remedy(
            summary="Look whether the GPU's memory is full, of which these libraries need some for themselves; end "
            "what holds it, or give back CuPy's with cupy.get_default_memory_pool().free_all_blocks()",
            commands=("nvidia-smi",),
        )
    if "INVALID_PTX" in error:
        yield update_driver(system=machine.system, needed=None, devices=machine.devices, driver=machine.driver)
    if is_incomplete(error, machine.version()) or not (machine.cupy and machine.cupy.distributions):
        yield _install_anew(machine)
        return
    yield machine.install(machine.cupy)


def _older(part: RemovedPart, machine: _Machine) -> Remedy:
    """Return how to install a CuPy that still has the part; who can change the program needs none."""
    installed = [package.name for package in (machine.cupy.distributions if machine.cupy else None) or ()]
    return install_packages(
        python=machine.python,
        requirements=(f"{part.package}<{part.last + 1}",),
        remove=installed,
        summary=f"Change the program to use {part.instead}, or update it; or install a CuPy before {part.last + 1} for "
        "the CUDA and the Python that are here (Chainer 7 needs CuPy 7)",
        verify="import cupy; print(cupy.__version__)",
    )


def _install_anew(machine: _Machine) -> Remedy:
    """Return how to remove every CuPy, installed with whatever name, and to install the one that fits."""
    known_ones = (machine.cupy.distributions if machine.cupy else None) or ()
    others = [name for name in USUAL if name not in {package.name for package in known_ones}]
    all_of_them = (*known_ones, *(Package(name=name, version=PackageVersion("")) for name in others))
    remedy = machine.install(replace(machine.cupy or Cupy(), distributions=all_of_them))
    return Remedy(
        summary="Uninstall every CuPy that pip list names, delete what is left of the folder cupy, then: "
        + remedy.summary,
        commands=remedy.commands,
        reference=remedy.reference,
    )


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
