"""Whether fp16 gives NaN or infinity, from the report and from GPUs known for it."""

from gpudoctor.data.capabilities import is_minor_turing
from gpudoctor.model import Devices, HalfPrecision, TorchRuntime
from gpudoctor.symptoms import Symptoms, first, of_kind

# Results caused by fp16 if half precision is used, or on a GPU known for it.
NAN = ("loss-nan", "nan-in-tensor", "probability-tensor-nan", "black-image")
# Results that mean NaN on a GPU known for it, and have many causes elsewhere.
NAN_ON_FAULTY = ("no-detections", "exclamation-marks")
IN_USE = ("half-precision-in-use", "fp16-gradient-overflow", "amp-by-default", "amp-check-failed")
FAULTY = ("gpu-named-gtx-16", "gpu-named-turing-minor")


def half_precision(torch_runtime: TorchRuntime, devices: Devices, symptoms: Symptoms) -> HalfPrecision:
    """Return the evidence that fp16 gives NaN, and the GPUs known for it. Without mixed precision there is none."""
    if of_kind(symptoms, "no-mixed-precision"):
        return HalfPrecision()
    faulty = _faulty(torch_runtime, devices)
    named = first(of_kind(symptoms, *FAULTY))
    in_use = first(of_kind(symptoms, *IN_USE))
    certain = of_kind(symptoms, "@fp16-to-blame")
    on_faulty = NAN_ON_FAULTY if faulty or named else ()
    likely = of_kind(symptoms, *NAN, *on_faulty) if faulty or named or in_use else ()
    nan = first(certain, likely)
    return HalfPrecision(faulty=faulty, named=named, nan=nan, certain=bool(certain), in_use=in_use)


def _faulty(torch_runtime: TorchRuntime, devices: Devices) -> dict[str, str]:
    names = torch_runtime.device_names or ()
    shown = {f"torch_runtime.device_names[{n}]": name for n, name in enumerate(names)} or {
        f"devices[{n}].name": device.name or "" for n, device in enumerate(devices or ())
    }
    return {fact: name for fact, name in shown.items() if is_minor_turing(name)}
