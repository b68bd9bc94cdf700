"""CUDA's initialisation fails without saying why."""

from collections.abc import Iterator

from gpudoctor.model import Driver, DriverState, Finding, Fix, Origin, Place
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

ERRORS = {"cuda-999": "error 999, unknown", "cuda-304": "error 304, an operating system call failed"}


@check(family="driver", explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-no-device", "runs-on-cpu"))
def cuda_init_unknown_error_999(
    origin: Origin, place: Place, driver_state: DriverState, driver: Driver = Driver(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """CUDA fails to initialise with the unknown error 999.

    Why: CUDA needs the kernel module nvidia_uvm, which manages its memory. The module is not loaded, has no device node
    or did not survive a suspend. nvidia-smi does not use it and works anyway. PyTorch calls it "CUDA unknown error".
    Error 304, a failed operating system call, has the same causes.
    Exception: other results of cuInit, such as 803 or 100, have their own checks.
    Reference: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
    """
    said = first(*(with_code(symptoms, code) for code in ERRORS))
    if said is None:
        skip_unless(not origin.is_report, "no message reports this problem")
        if not driver_state.asked:
            raise Skip("driver.cuda_init_code is unknown")
        return
    reason, facts = _reason(driver) if not place.in_wsl else ("", ())
    slept = of_kind(symptoms, "cuda-lost-after-suspend", "cuda-fails-beside-suspend")
    failed = (
        "CUDA fails after the machine was suspended" if slept else f"CUDA cannot be initialised: {ERRORS[said.code]}"
    )
    yield Finding.error("cuInit", f"{failed}{reason}", (said.fact, *facts), Fix("reload-uvm"))


def _reason(driver: Driver) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with nvidia-uvm, as the end of a sentence, and the facts that say so."""
    if driver.uvm_loaded is False:
        return "; the kernel module nvidia_uvm is not loaded", ("driver.uvm_loaded",)
    for number, node in enumerate(driver.device_files or ()):
        if node.path == "/dev/nvidia-uvm":
            if node.accessible is False:
                return f"; {node.path} cannot be opened", (f"driver.device_files[{number}].error",)
            return "", ()
    if driver.device_files:
        return "; the device node /dev/nvidia-uvm is missing", ("driver.device_files",)
    return "", ()
