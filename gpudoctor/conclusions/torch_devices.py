"""The GPUs that PyTorch lists, and those that compute correctly."""

from collections.abc import Iterator

from gpudoctor.data.numerics import is_right, within
from gpudoctor.model import TorchDevice, TorchDevices, TorchRuntime

NEEDED = ("available", "precision_results", "device_capabilities")


def torch_devices(torch_runtime: TorchRuntime | None) -> TorchDevices:
    """Return the NVIDIA devices that PyTorch lists and those that compute correctly, or why there are none."""
    if torch_runtime is None:
        return TorchDevices(unknown="torch_runtime")
    listed = () if torch_runtime.hip_version else tuple(_listed(torch_runtime))
    if torch_runtime.available is False:
        return TorchDevices(listed=listed, reason="PyTorch can use no GPU here")
    if torch_runtime.hip_version and torch_runtime.available is not None:
        return TorchDevices(reason="PyTorch is built for ROCm")
    unknown = next((f"torch_runtime.{name}" for name in NEEDED if getattr(torch_runtime, name) is None), "")
    if unknown:
        return TorchDevices(listed=listed, unknown=unknown)
    results = torch_runtime.precision_results or ()
    # If a setting forces TF32, the float32 product is still usable.
    multiply = {result.device for result in results if result.precision == "fp32" and within(result, "tf32")}
    usable = tuple(device for device in listed if f"cuda:{device.cuda_index}" in multiply)
    reason = "" if usable else "PyTorch computed no correct float32 product on a GPU"
    return TorchDevices(listed=listed, usable=usable, reason=reason)


def _listed(runtime: TorchRuntime) -> Iterator[TorchDevice]:
    names = runtime.device_names or ()
    for index, capability in enumerate(runtime.device_capabilities or ()):
        device = f"cuda:{index}"
        results = {n: r for n, r in enumerate(runtime.precision_results or ()) if r.device == device}
        yield TorchDevice(
            cuda_index=index,
            name=names[index] if index < len(names) else device,
            capability=capability,
            right=frozenset(result.precision for result in results.values() if is_right(result)),
            errors={result.precision: result.relative_error for result in results.values()},
            error_facts={
                result.precision: f"torch_runtime.precision_results[{n}].relative_error"
                for n, result in results.items()
            },
        )
