"""What shows that fp16 gives NaN."""

import pytest

from gpudoctor.conclusions.half_precision import half_precision
from gpudoctor.model import Device, Symptom, TorchRuntime
from tests.torch_runtimes import GTX_1660, L4, working

GTX_16 = (Device(nvml_index=0, name=GTX_1660[0]),)


def said(*kinds: str) -> tuple[Symptom, ...]:
    return tuple(Symptom(kind=kind, text="as printed") for kind in kinds)


@pytest.mark.parametrize(
    ("devices", "kinds", "nan", "certain"),
    [
        pytest.param((), ("fp16-nan-tensor",), "fp16-nan-tensor", True, id="the message names fp16"),
        pytest.param((), ("loss-nan",), None, False, id="NaN alone has other causes"),
        pytest.param((), ("loss-nan", "half-precision-in-use"), "loss-nan", False, id="half precision is used"),
        pytest.param(GTX_16, ("loss-nan",), "loss-nan", False, id="a GPU that is known for it"),
        pytest.param((), ("loss-nan", "gpu-named-gtx-16"), "loss-nan", False, id="such a GPU is named"),
        pytest.param(GTX_16, ("no-detections",), "no-detections", False, id="no results, on such a GPU"),
        pytest.param((), ("no-detections", "half-precision-in-use"), None, False, id="no results elsewhere"),
        pytest.param(
            (),
            ("loss-nan", "half-precision-in-use", "fp16-nan-reported"),
            "fp16-nan-reported",
            True,
            id="certain comes first",
        ),
        pytest.param((), ("half-precision-in-use",), None, False, id="no NaN"),
    ],
)
def test_nan(devices: tuple[Device, ...], kinds: tuple[str, ...], nan: str | None, certain: bool) -> None:
    found = half_precision(TorchRuntime(), devices, said(*kinds))
    assert (found.nan.kind if found.nan else None, found.certain) == (nan, certain)


def test_gpus_that_are_known_for_it() -> None:
    assert half_precision(TorchRuntime(), GTX_16, None).faulty == {"devices[0].name": GTX_1660[0]}
    assert half_precision(working(L4, GTX_1660), GTX_16, None).faulty == {"torch_runtime.device_names[1]": GTX_1660[0]}
    assert half_precision(working(L4), GTX_16, None).faulty == {}


@pytest.mark.parametrize("kind", ["loss-nan", "nan-in-tensor", "probability-tensor-nan", "black-image"])
@pytest.mark.parametrize(
    "use", ["half-precision-in-use", "fp16-gradient-overflow", "amp-by-default", "amp-check-failed"]
)
def test_nan_if_half_precision_is_in_use(kind: str, use: str) -> None:
    found = half_precision(TorchRuntime(), (), said(kind, use))
    assert (found.nan, found.in_use, found.named) == (*said(kind, use), None)


@pytest.mark.parametrize("kind", ["no-detections", "exclamation-marks", "black-image"])
@pytest.mark.parametrize("gpu", ["gpu-named-gtx-16", "gpu-named-turing-minor"])
def test_a_bad_result_on_a_gpu_that_is_named(kind: str, gpu: str) -> None:
    found = half_precision(TorchRuntime(), (), said(kind, gpu))
    assert (found.nan, found.named, found.in_use) == (*said(kind, gpu), None)


def test_without_mixed_precision_it_is_not_to_blame() -> None:
    known = said("fp16-nan-reported", "half-precision-in-use")
    assert half_precision(TorchRuntime(), None, known).nan is not None
    assert half_precision(TorchRuntime(), None, (*known, *said("no-mixed-precision"))).nan is None
