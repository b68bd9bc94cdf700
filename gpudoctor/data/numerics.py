"""How exact the products of the worker torch_runtime must be."""

import math

from gpudoctor.model import PrecisionResult

INNER_SIZE = 256  # terms of each sum: SIZE in probes/workers/torch_runtime.py

# Half the distance between 1 and the next number: 2^-(bits of the significand).
# Source: IEEE 754-2019 table 3.5; NVIDIA A100 whitepaper for TF32 (10 stored bits) and bf16 (7).
UNIT_ROUNDOFF = {"fp32": 2.0**-24, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}

# How many times the largest value of the product its terms' magnitudes sum up to, for the worker's two matrices of
# normally distributed numbers: 3.2, computed with PyTorch 2.13.0; 4 leaves room.
_GROWTH = 4

NOT_FINITE = "not finite"
"""Beginning of the error of a product that contains NaN or infinity."""


def error_bound(precision: str) -> float:
    """Return the largest relative error of a right product.

    Both factors and the result are rounded once to `precision`, and INNER_SIZE terms are summed in fp32, which adds at
    most one unit roundoff for each term (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Some
    libraries sum fp16 and bf16 in that precision: their roundings then grow like the root of the number of terms.
    """
    roundings = _GROWTH * 3 + (math.sqrt(INNER_SIZE) if precision in ("fp16", "bf16") else 0)
    return roundings * UNIT_ROUNDOFF[precision] + INNER_SIZE * UNIT_ROUNDOFF["fp32"]


def percent(share: float) -> str:
    """Return a share or a relative error with two significant digits: "0.47 %"."""
    if not math.isfinite(share):
        return "not finite"
    digits = max(0, 1 - math.floor(math.log10(share * 100))) if share else 0
    return f"{share * 100:.{digits}f} %"


def is_right(result: PrecisionResult) -> bool:
    """Return whether the product came back, as exact as its precision allows."""
    return within(result, result.precision)


def within(result: PrecisionResult, precision: str) -> bool:
    """Return whether the product came back, as exact as `precision` allows. Of an unknown precision none is right."""
    error = result.relative_error
    if result.error or error is None or precision not in UNIT_ROUNDOFF:
        return False
    return error <= error_bound(precision)


def has_tf32_error(result: PrecisionResult) -> bool:
    """Return whether a product asked for in fp32 is only as exact as TF32."""
    return result.precision == "fp32" and within(result, "tf32") and not is_right(result)
