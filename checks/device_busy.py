"""Devices that let no further program compute."""

from collections.abc import Iterator

from gpudoctor.model import Devices, DriverState, Finding, Fix, Origin
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, with_code

PROHIBITED = "prohibited"


@check(family="device", explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-no-device", "runs-on-cpu"))
def device_busy(
    origin: Origin, driver_state: DriverState, devices: Devices = None, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The device is busy or unavailable because of its compute mode or a process that hangs.

    Why: in the compute mode exclusive-process the first program has the device for itself; in the mode prohibited no
    program can use it. The next program fails with error 46, "CUDA-capable device(s) is/are busy or unavailable". In
    the default mode a process that hangs in the driver has the same effect.
    Exception: an exclusive device without a failed program is a choice, as in batch systems. Error 46 on a device in
    MIG mode is `mig-misconfigured`.
    Reference: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes
    """
    said = first(with_code(symptoms, "cuda-46"))
    prohibited = bool(devices) and all(device.compute_mode == PROHIBITED for device in devices or ())
    if said is None and not prohibited:
        skip_unless(not origin.is_report, "no message reports this problem")
        if devices is None and not driver_state.asked:
            raise Skip("devices is unknown")
        return
    if any(device.mig_enabled for device in devices or ()):
        return
    facts = (said.fact,) if said is not None else ()
    mode, end = Fix("set-compute-mode-to-default"), Fix("end-process-on-device")
    for number, device in enumerate(devices or ()):
        if device.compute_mode not in (None, "default"):
            allows = "no program" if device.compute_mode == PROHIBITED else "one program at a time"
            summary = f"{device.label} is in the compute mode {device.compute_mode}, which lets {allows} compute"
            yield Finding.error(device.label, summary, (*facts, f"devices[{number}].compute_mode"), mode, end)
            return
    yield Finding.error("GPU", "CUDA says that the device is busy or unavailable (error 46)", facts, end, mode)
