"""The fabric manager of NVSwitch machines."""

from collections.abc import Iterator, Sequence

from gpudoctor.model import Device, Devices, Driver, Finding, Fix, Place, Severity
from gpudoctor.registry import CUDA_FAILS, Skip, check
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

NO_SWITCH = "The fabric manager does not run because it finds no NVSwitch"
# Source: https://github.com/NVIDIA/nccl/issues/976.
NO_NVLS = "NCCL cannot use NVLink SHARP: the fabric manager does not run, or was restarted while programs used the GPUs"
RESET = (
    "If it was restarted while programs used the GPUs, reboot or reset all GPUs. Until then NCCL_NVLS_ENABLE=0 lets "
    "NCCL work without NVLink SHARP"
)
WAITING = ("in-progress", "not-started")


@check(family="multi-gpu", explains=(*CUDA_FAILS, "nccl-p2p-problem"))
def fabric_manager_not_running(
    place: Place, driver: Driver = Driver(), devices: Devices = None, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The fabric manager of this NVSwitch machine does not run, or its version differs from the driver's.

    Why: on machines with NVSwitches (HGX, DGX) CUDA waits for the GPUs to join the NVLink fabric. Until then it fails
    with error 802, "system not yet initialized". The fabric manager must have exactly the driver's version.
    Exception: machines without NVSwitches need no fabric manager. Inside a container its process is not visible, so
    only CUDA's error and the fabric's state count there. If CUDA works, an incomplete fabric is a warning.
    Reference: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    """
    gpus = devices or ()
    not_ready = first(with_code(symptoms, "cuda-802"))
    said = not_ready or first(of_kind(symptoms, "fabric-manager-*"))
    waiting = [number for number, device in enumerate(gpus) if device.fabric_state in WAITING]
    here = Driver() if place.in_container else driver
    differs = here.has_other_fabric_manager
    down = said is not None or bool(waiting) or _is_down(here, gpus)
    if not down and not differs:
        if all(gpu.fabric_state is None for gpu in gpus) and driver.nvswitches is None and driver.cuda_init_code != 0:
            raise Skip("driver.nvswitches is unknown")
        return
    # It found no NVSwitch, and nothing else says that there are some.
    needless = bool(of_kind(symptoms, "nvswitch-not-found")) and not waiting
    needless = needless and not of_kind(symptoms, "nvswitch-named", "cuda-system-not-ready")
    nvls = bool(of_kind(symptoms, "fabric-manager-nvls-refused")) and not_ready is None
    summary = NO_SWITCH if needless else NO_NVLS if nvls else _by_version(here) or _by_state(here, gpus, waiting)
    if not summary:
        summary = "CUDA fails with error 802, system not yet initialized: the GPUs have not joined the NVLink fabric"
    elif not_ready is not None and summary.startswith("The fabric manager") and not (needless or differs):
        summary += "; CUDA fails with error 802"
    yield Finding.of(
        Severity.ERROR if down and driver.cuda_init_code != 0 and not needless else Severity.WARNING,
        "fabric manager",
        summary,
        (
            said.fact if said else "",
            *(f"devices[{number}].fabric_state" for number in waiting[:1]),
            "driver.fabric_manager" if here.fabric_manager else "",
            *(("driver.fabric_manager_version", "driver.version") if differs else ()),
        ),
        Fix("leave-fabric-manager") if needless else None,
        Fix("start-fabric-manager"),
        Fix("reboot", summary=RESET) if nvls else None,
    )


def _is_down(driver: Driver, devices: Sequence[Device]) -> bool:
    """Return whether NVSwitches are there, their manager does not run, and nothing shows that it is not needed."""
    if not driver.nvswitches or driver.cuda_init_code == 0:
        return False
    joined = any(device.fabric_state == "completed" for device in devices)
    return driver.fabric_manager in ("not-running", "not-installed") and not joined


def _by_version(driver: Driver) -> str:
    if not driver.has_other_fabric_manager:
        return ""
    state = " and does not run" if driver.fabric_manager == "not-running" else ""
    installed = driver.fabric_manager_version
    return f"The fabric manager is version {installed}{state}, but the driver is version {driver.version}"


def _by_state(driver: Driver, devices: Sequence[Device], waiting: list[int]) -> str:
    """Return what the fabric manager, or the fabric, does not do; "" if neither is known."""
    state = {"not-running": "does not run", "not-installed": "is not installed"}.get(driver.fabric_manager or "")
    switches = f" on a machine with {driver.nvswitches} NVSwitches" if driver.nvswitches else ""
    if state and (switches or not waiting):
        return f"The fabric manager {state}{switches}"
    if not waiting:
        return ""
    device = devices[waiting[0]]
    which = f"{len(waiting)} of {len(devices)} GPUs" if len(devices) > 1 else "A GPU"
    return (
        f"{which} {'has' if len(waiting) == 1 else 'have'} not joined the NVLink fabric: "
        f"the state of {device.name or f'device {device.nvml_index}'} is {device.fabric_state}"
    )
