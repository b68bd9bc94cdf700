"""The products that PyTorch computed on the GPU against float64."""

from collections.abc import Iterator

from gpudoctor.data.numerics import NOT_FINITE, error_bound, has_tf32_error, is_right
from gpudoctor.model import Finding, PrecisionResult, Python, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import python_command, reinstall_torch

MULTIPLY = "import torch; a = torch.randn(256, 256, device='{device}'); print((a @ a).sum().item())"


@check(family="torch")
def torch_wrong_results(
    torch_runtime: TorchRuntime,
    torch: Torch | None = None,
    python: Python | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """A small matrix product on the GPU is wrong, or fails.

    Why: nothing that is computed on this device can be trusted. Wrong numbers point to hardware, overclocking or a
    damaged library; an exception says that PyTorch cannot run its kernels there.
    Exception: each precision has its own bound, from its unit roundoff; an error of the size of TF32 in float32 is
    tf32-precision-surprise, overflow in fp16 alone is fp16-nan, and only float32 may not raise an exception.
    Reference: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """
    results = known(torch_runtime.precision_results, "torch_runtime.precision_results")
    skip_unless(results, "PyTorch has no GPU to compute on")
    wrong = {n: fault for n, result in enumerate(results) if (fault := _fault(result, results))}
    full = [result.device for result in results if _out_of_memory(result)]
    if not wrong and full:
        raise Skip(f"the memory of {full[0]} is full")
    for device in dict.fromkeys(results[number].device for number in wrong):
        numbers = [number for number in wrong if results[number].device == device]
        first = numbers[0]
        yield Finding(
            severity=Severity.ERROR,
            summary=f"The {' and the '.join(results[number].precision for number in numbers)} product on "
            f"{_name(torch_runtime, device)} {wrong[first]}",
            subject=device,
            facts=tuple(_fact(number, results[number]) for number in numbers),
            remedies=_remedies(results[first], torch, python, system),
        )


def _fault(result: PrecisionResult, results: tuple[PrecisionResult, ...]) -> str:
    """Return what is wrong with the product, as the end of a sentence; "" for nothing."""
    if is_right(result) or has_tf32_error(result) or _out_of_memory(result):
        return ""
    if result.error.startswith(NOT_FINITE):
        return "" if _overflows_in_fp16(result, results) else f"is {result.error}"
    if result.error:
        return f"fails: {result.error}" if result.precision == "fp32" else ""
    if result.relative_error is None:
        return ""
    bound = error_bound(result.precision)
    return f"is wrong: its relative error is {result.relative_error:.1e}, rounding explains {bound:.1e}"


def _overflows_in_fp16(result: PrecisionResult, results: tuple[PrecisionResult, ...]) -> bool:
    others = (other for other in results if other.device == result.device and other.precision == "fp32")
    return result.precision == "fp16" and any(is_right(other) or has_tf32_error(other) for other in others)


def _out_of_memory(result: PrecisionResult) -> bool:
    return "out of memory" in result.error.lower()


def _name(torch_runtime: TorchRuntime, device: str) -> str:
    """Return the device for a sentence: "cuda:0 (NVIDIA L4)"."""
    names = torch_runtime.device_names or ()
    index = device.removeprefix("cuda:")
    named = device.startswith("cuda:") and index.isascii() and index.isdigit() and int(index) < len(names)
    return f"{device} ({names[int(index)]})" if named else device


def _fact(number: int, result: PrecisionResult) -> str:
    return f"torch_runtime.precision_results[{number}].{'error' if result.error else 'relative_error'}"


def _remedies(
    result: PrecisionResult, torch: Torch | None, python: Python | None, system: System | None
) -> tuple[Remedy, ...]:
    reinstall = reinstall_torch(python=python, system=system, pytorch=torch)
    again = Remedy(
        summary="Multiply once more, with kernels that report their errors where they happen",
        commands=(python_command(python, "-c", MULTIPLY.format(device=result.device)),),
    )
    if not result.device.startswith("cuda"):
        return (again, reinstall)
    if result.error and not result.error.startswith(NOT_FINITE):
        return (reinstall, again)
    hardware = Remedy(
        summary="Take back any overclocking, then look for memory errors, and for Xid errors in the kernel log",
        commands=("nvidia-smi -q -d ECC,TEMPERATURE", *_kernel_log(system)),
        needs=("root",) if _kernel_log(system) else (),
        reference="https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html",
    )
    return (hardware, reinstall, again)


def _kernel_log(system: System | None) -> tuple[str, ...]:
    linux = system is None or system.os in (None, "linux")
    return ("sudo dmesg | grep -iE 'NVRM|Xid'",) if linux else ()
