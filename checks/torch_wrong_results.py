"""The products that PyTorch computed on the GPU against float64."""

from collections.abc import Iterator

from gpudoctor.data.numerics import NOT_FINITE, UNIT_ROUNDOFF, error_bound, has_tf32_error, is_right, percent
from gpudoctor.model import Finding, Fix, PrecisionResult, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers


@check(family="torch")
def torch_wrong_results(torch_runtime: TorchRuntime, symptoms: Symptoms = None) -> Iterator[Finding]:
    """A small matrix product on the GPU is wrong, or fails.

    Why: no result from this device can be trusted. Wrong numbers point to hardware, overclocking or a damaged library.
    An exception means that PyTorch cannot run its kernels there.
    Exception: each precision has its own error limit, from its unit roundoff. A float32 error of the size of TF32 is
    tf32-precision-surprise, and overflow in fp16 alone is fp16-nan. An exception counts in float32 only.
    Reference: https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """
    shown = answers(symptoms, "torch-wrong-results")
    if shown:
        yield from shown
        return
    results = known(torch_runtime.precision_results, "torch_runtime.precision_results")
    skip_unless(results, "PyTorch has no GPU to compute on")
    out_of_memory = {symptom.fact for symptom in of_kind(symptoms, "@torch-memory-full")}
    full = {number for number, result in enumerate(results) if _path(number, result) in out_of_memory}
    wrong = {n: fault for n, result in enumerate(results) if n not in full and (fault := _fault(result, results))}
    if not wrong and full:
        raise Skip(f"the memory of {results[min(full)].device} is full")
    for device in dict.fromkeys(results[number].device for number in wrong):
        numbers = [number for number in wrong if results[number].device == device]
        summary = (
            f"The {' and the '.join(results[number].precision for number in numbers)} product on "
            f"{_name(torch_runtime, device)} {wrong[numbers[0]]}"
        )
        facts = (_path(number, results[number]) for number in numbers)
        yield Finding.error(device, summary, facts, *_fixes(results[numbers[0]]))


def _path(number: int, result: PrecisionResult) -> str:
    return f"torch_runtime.precision_results[{number}].{'error' if result.error else 'relative_error'}"


def _fault(result: PrecisionResult, results: tuple[PrecisionResult, ...]) -> str:
    """Return what is wrong with the product, as the end of a sentence; "" for nothing."""
    if is_right(result) or has_tf32_error(result):
        return ""
    if result.error.startswith(NOT_FINITE):
        return "" if _overflows_in_fp16(result, results) else f"is {result.error}"
    if result.error:
        return f"fails: {result.error}" if result.precision == "fp32" else ""
    if result.relative_error is None or result.precision not in UNIT_ROUNDOFF:
        return ""
    bound = error_bound(result.precision)
    return f"is wrong: its error is {percent(result.relative_error)}, and rounding causes at most {percent(bound)}"


def _overflows_in_fp16(result: PrecisionResult, results: tuple[PrecisionResult, ...]) -> bool:
    others = (other for other in results if other.device == result.device and other.precision == "fp32")
    return result.precision == "fp16" and any(is_right(other) or has_tf32_error(other) for other in others)


def _name(torch_runtime: TorchRuntime, device: str) -> str:
    names = torch_runtime.device_names or ()
    index = device.removeprefix("cuda:")
    named = device.startswith("cuda:") and index.isascii() and index.isdigit() and int(index) < len(names)
    return f"{device} ({names[int(index)]})" if named else device


def _fixes(result: PrecisionResult) -> tuple[Fix, ...]:
    """Return what to do first: a wrong number points to the hardware, an exception to the installation."""
    again, reinstall = Fix("multiply-again", device=result.device), Fix("reinstall-torch")
    if not result.device.startswith("cuda"):
        return (again, reinstall)
    if result.error and not result.error.startswith(NOT_FINITE):
        return (reinstall, again)
    return (Fix("look-for-hardware-errors"), reinstall, again)
