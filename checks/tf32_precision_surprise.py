"""TF32 where float32 was asked for."""

from collections.abc import Iterator

from gpudoctor.data.numerics import error_bound, percent
from gpudoctor.model import Finding, Fix, Severity, Tf32, Tf32Product, TorchRuntime
from gpudoctor.registry import check, known, skip_unless

USERS = {
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "PyTorch",
    "CUPY_TF32": "CuPy",
    "NVIDIA_TF32_OVERRIDE": "NVIDIA's libraries",
}


@check(family="precision")
def tf32_precision_surprise(tf32: Tf32, torch_runtime: TorchRuntime = TorchRuntime()) -> Iterator[Finding]:
    """Float32 matrix products run in TF32, although the program did not ask for it.

    Why: results differ from those of a CPU or an older GPU in the fourth digit, because TF32 rounds the factors to 10
    bits. PyTorch 1.7 to 1.11 use it by default on compute capability 8.0 and newer. Later releases use it if a setting
    says so.
    Exception: if somebody set a variable, this is advice. Convolutions use TF32 by default in every release. That is
    reported only if a report says that results differ, and mentions TF32 or what it compares with.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices
    """
    skip_unless(torch_runtime.available is not False, "PyTorch can use no GPU here")
    if not tf32.possible:
        return
    yield from (_measured(product, tf32) for product in tf32.products)
    if tf32.products or tf32.forbidden:
        return
    reported = tf32.differing if tf32.said and tf32.default_of is None else None
    if tf32.default_of is not None:
        severity = Severity.INFO if tf32.differing is None else Severity.WARNING
        where = "on compute capability 8.0 and newer"
        summary = f"PyTorch {tf32.default_of} runs float32 matrix products in TF32 by default {where}"
        facts = (tf32.default_fact,)
        yield Finding.of(
            severity, f"torch {tf32.default_of}", summary, facts, Fix("switch-tf32-off"), Fix("forbid-tf32")
        )
    elif reported is not None:
        named = (tf32.gpu,) if tf32.gpu is not None else ()
        summary = (
            "Float32 results differ on a GPU with TF32, which every release uses for convolutions by default"
            + "".join(f": {symptom.text}" for symptom in named)
        )
        facts = (reported.fact, *(symptom.fact for symptom in (*named, *tf32.said)))
        yield Finding.warning("TF32", summary, facts, Fix("switch-tf32-off"), Fix("forbid-tf32"))
    if tf32.variables:
        users = " and ".join(USERS[name] for name in tf32.variables)
        summary = f"{_set(tf32)}: {users} may run float32 matrix products in TF32"
        yield Finding.advice("environment", summary, (f"environment.{name}" for name in tf32.variables), *_unset(tf32))
    elif tf32.default_of is None and reported is None:
        known(torch_runtime.precision_results, "torch_runtime.precision_results")


def _measured(product: Tf32Product, tf32: Tf32) -> Finding:
    severity = Severity.INFO if tf32.variables else Severity.WARNING
    summary = (
        f"The float32 product on {product.device} has the error of TF32: {percent(product.relative_error)}, while "
        f"float32 gives at most {percent(error_bound('fp32'))}" + (f" ({_set(tf32)})" if tf32.variables else "")
    )
    facts = (product.fact, *(f"environment.{name}" for name in tf32.variables))
    return Finding.of(severity, product.device, summary, facts, *_unset(tf32), Fix("forbid-tf32"))


def _set(tf32: Tf32) -> str:
    return " and ".join(f"{name} is 1" for name in tf32.variables)


def _unset(tf32: Tf32) -> tuple[Fix, ...]:
    return tuple(Fix("unset-variable", name=name) for name in tf32.variables)
