"""The bounds that tell a right product from a wrong one."""

import pytest

from gpudoctor.data.numerics import error_bound, has_tf32_error, is_right
from gpudoctor.model import PrecisionResult
from tests.torch_runtimes import TYPICAL_ERRORS


@pytest.mark.parametrize("precision", TYPICAL_ERRORS)
def test_the_bound_leaves_room_above_a_typical_error_and_none_for_nonsense(precision: str) -> None:
    assert 5 * TYPICAL_ERRORS[precision] < error_bound(precision) < 0.2


def test_float32_and_tf32_cannot_be_confused() -> None:
    assert error_bound("fp32") * 5 < TYPICAL_ERRORS["tf32"]


@pytest.mark.parametrize(
    ("precision", "relative_error", "right", "tf32"),
    [
        pytest.param("fp32", 3e-7, True, False, id="float32"),
        pytest.param("fp32", error_bound("fp32"), True, False, id="at the bound"),
        pytest.param("fp32", 3e-4, False, True, id="float32 by TF32"),
        pytest.param("fp32", 0.5, False, False, id="nonsense"),
        pytest.param("tf32", 3e-4, True, False, id="TF32 that was asked for"),
        pytest.param("fp16", 6e-3, True, False, id="fp16 summed in fp16"),
        pytest.param("bf16", 0.5, False, False, id="bf16 nonsense"),
        pytest.param("fp32", None, False, False, id="no result"),
        pytest.param("fp6", 0.0, False, False, id="a precision that nobody knows"),
    ],
)
def test_which_results_are_right(precision: str, relative_error: float | None, right: bool, tf32: bool) -> None:
    result = PrecisionResult(device="cuda:0", precision=precision, relative_error=relative_error)
    assert (is_right(result), has_tf32_error(result)) == (right, tf32)


def test_an_exception_is_no_result() -> None:
    assert not is_right(
        PrecisionResult(device="cuda:0", precision="fp32", relative_error=0.0, error="RuntimeError: no")
    )
