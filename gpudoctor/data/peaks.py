"""Peak rates of devices, to say what share of them a program reaches."""

import functools
from collections.abc import Mapping

from gpudoctor.data.tables import load_table
from gpudoctor.model.record import record


@record
class DevicePeak:
    """Peak rates of one product; a rate that is not verified is left out, or None.

    tflops: precision ("fp32", "tf32", "bf16", "fp16") → dense TFLOPS, with fp32 accumulation.
    bandwidth_gb_s: of the device's memory, in 10⁹ bytes per second.
    """

    tflops: Mapping[str, float]
    bandwidth_gb_s: float | None


def device_peak(name: str) -> DevicePeak | None:
    """Return the peak rates of the device that NVML calls `name`; None for other devices and MIG slices."""
    return _peaks().get(name.removeprefix("NVIDIA "))


@functools.cache
def _peaks() -> Mapping[str, DevicePeak]:
    table = load_table("peaks")
    peaks = {}
    for row in table["devices"]:
        tflops = {key: float(row[key]) for key in ("fp32", "tf32", "bf16", "fp16") if row[key] is not None}
        peak = DevicePeak(tflops=tflops, bandwidth_gb_s=row["bandwidth_gb_s"])
        # Older drivers print the names without "NVIDIA".
        peaks.update({name.removeprefix("NVIDIA "): peak for name in row["names"]})
    return peaks
