"""Which GPUs are there, and on which of them PyTorch computes."""

from __future__ import annotations

from collections.abc import Iterable

from gpudoctor.conclusions.devices import has_tensor_cores
from gpudoctor.conclusions.error_codes import gpu_name, nvidia_gpus
from gpudoctor.conclusions.numerics import is_right, within
from gpudoctor.data import features
from gpudoctor.model import ComputeCapability, Device, Driver, PrecisionResult, System, TorchRuntime
from gpudoctor.model.record import record
from gpudoctor.registry import known, skip_unless


@record
class TorchDevice:
    """A CUDA device of PyTorch, by its number there, with its results by precision and their place in the section."""

    cuda_index: int
    name: str
    capability: ComputeCapability
    results: dict[str, tuple[int, PrecisionResult]]

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability})"

    def computes(self, precision: str) -> bool:
        """Return whether the product in `precision` was right."""
        return precision in self.results and is_right(self.results[precision][1])

    @property
    def capability_fact(self) -> str:
        """The name of the fact that gives its compute capability."""
        return f"torch_runtime.device_capabilities[{self.cuda_index}]"

    def error_fact(self, precision: str) -> str:
        """Return the name of the fact that gives the error of its product."""
        return f"torch_runtime.precision_results[{self.results[precision][0]}].relative_error"


def usable_devices(runtime: TorchRuntime) -> tuple[TorchDevice, ...]:
    """Return the NVIDIA devices on which PyTorch computes, at least one.

    Raises:
        Skip: there is none, or that is not known.
    """
    skip_unless(known(runtime.available, "torch_runtime.available"), "PyTorch can use no GPU here")
    skip_unless(not runtime.hip_version, "PyTorch is built for ROCm")
    known(runtime.precision_results, "torch_runtime.precision_results")
    known(runtime.device_capabilities, "torch_runtime.device_capabilities")
    usable = tuple(device for device in torch_devices(runtime) if _multiplies(device))
    skip_unless(usable, "no float32 product of PyTorch came out right on a GPU")
    return usable


def torch_devices(runtime: TorchRuntime) -> tuple[TorchDevice, ...]:
    """Return the NVIDIA devices that PyTorch lists, whether it computes on them or not."""
    names = runtime.device_names or ()
    results = tuple(enumerate(runtime.precision_results or ()))
    return tuple(
        TorchDevice(
            cuda_index=index,
            name=names[index] if index < len(names) else f"cuda:{index}",
            capability=capability,
            results={result.precision: (n, result) for n, result in results if result.device == f"cuda:{index}"},
        )
        for index, capability in enumerate(runtime.device_capabilities or ())
    )


def _multiplies(device: TorchDevice) -> bool:
    """Return whether the float32 product is right, be it by TF32 that something forced."""
    return "fp32" in device.results and within(device.results["fp32"][1], "tf32")


def described(devices: Iterable[object]) -> str:
    """Return the devices for a sentence, equal ones once: "2 x NVIDIA L4 (compute capability 8.9)"."""
    texts = [str(device) for device in devices]
    counts = {text: texts.count(text) for text in texts}
    return " and ".join(f"{count} x {text}" if count > 1 else text for text, count in counts.items())


def is_minor_turing(name: str) -> bool:
    """Return whether the device is a TU116 or TU117, Turing without tensor cores: GTX 16 series, T600, ..."""
    turing = ComputeCapability(7, 5)
    return has_tensor_cores(Device(nvml_index=0, name=name, compute_capability=turing), features(turing)) is False


def present_gpu(devices: tuple[Device, ...] | None, driver: Driver | None, system: System | None) -> str | None:
    """Return the name of an NVIDIA GPU of this machine, "" where there is none, None where that is not known."""
    on_bus = nvidia_gpus(system)
    if devices:  # of one that it cannot reach NVML tells no name
        alone = on_bus is not None and len(on_bus) == len(devices) == 1
        return devices[0].name or (gpu_name(on_bus[0]) if on_bus and alone else "an NVIDIA GPU")
    if on_bus:
        return gpu_name(on_bus[0])
    if driver is not None and driver.cuda_device_count:
        return "a CUDA device"
    return None if devices is None and on_bus is None else ""
