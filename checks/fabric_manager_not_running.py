"""The fabric manager of NVSwitch machines."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import SYSTEM_NOT_READY, cuda_error, in_container
from gpudoctor.conclusions.messages import reported as told_messages
from gpudoctor.model import CupyRuntime, Device, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check
from gpudoctor.remedies import reboot

NO_SWITCH = "The fabric manager does not run, for it finds no NVSwitch"
# Source: https://github.com/NVIDIA/nccl/issues/976.
NO_NVLS = "NCCL is refused NVLink SHARP: the fabric manager does not run, or was restarted while programs held the GPUs"
GUIDE = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"


@check(
    family="multi-gpu",
    explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999", "nccl-p2p-problem"),
)
def fabric_manager_not_running(
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The fabric manager of this NVSwitch machine does not run, or is of another version than the driver.

    Why: on machines with NVSwitches (HGX, DGX) CUDA waits for the GPUs to join the NVLink fabric: until then it fails
    with error 802, "system not yet initialized". The fabric manager must be of exactly the driver's version.
    Exception: machines without NVSwitches need none. Inside a container its process is not visible, so that only
    CUDA's error and the fabric's state count there. Where CUDA works, a fabric that is not complete is a warning.
    Reference: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
    """
    not_ready = cuda_error(SYSTEM_NOT_READY, driver, torch_runtime, cupy_runtime, symptoms)
    reported = not_ready or _ended(symptoms)
    waiting = [
        number for number, device in enumerate(devices or ()) if device.fabric_state in ("in-progress", "not-started")
    ]
    here = None if in_container(system) or driver is None else driver
    down = bool(reported or waiting or _is_down(here, devices))
    if not down and not _is_of_another_version(here):
        _skip_unknown(driver, devices)
        return
    works = driver is not None and driver.cuda_init_code == 0
    needless = _needless(symptoms) and not waiting
    nvls = told_messages(symptoms, "fabric-manager-nvls-refused") and not not_ready
    yield Finding(
        severity=Severity.ERROR if down and not works and not needless else Severity.WARNING,
        summary=NO_SWITCH
        if needless
        else NO_NVLS
        if nvls
        else _summary(here, not_ready is not None, waiting, devices or ()),
        subject="fabric manager",
        facts=(
            *((reported,) if reported else ()),
            *(f"devices[{number}].fabric_state" for number in waiting[:1]),
            *(("driver.fabric_manager",) if here is not None and here.fabric_manager else ()),
            *(("driver.fabric_manager_version", "driver.version") if _is_of_another_version(here) else ()),
        ),
        remedies=(
            *((_leave(),) if needless else ()),
            _remedy(here, system),
            *((_begin_anew(system),) if nvls else ()),
        ),
    )


def _ended(symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the message that says that the fabric manager does not run, None where nothing says so."""
    return next((fact for fact, _ in told_messages(symptoms, "fabric-manager-*")), None)


def _needless(symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether the fabric manager found no NVSwitch, and nothing else says that there are some."""
    none = told_messages(symptoms, "nvswitch-not-found")
    return bool(none) and not told_messages(symptoms, "nvswitch-named", "cuda-system-not-ready")


def _is_down(driver: Driver | None, devices: tuple[Device, ...] | None) -> bool:
    """Return whether NVSwitches are there, their manager does not run, and nothing shows that it is not needed."""
    if driver is None or not driver.nvswitches or driver.cuda_init_code == 0:
        return False
    joined = any(device.fabric_state == "completed" for device in devices or ())
    return driver.fabric_manager in ("not-running", "not-installed") and not joined


def _is_of_another_version(driver: Driver | None) -> bool:
    if driver is None or driver.nvswitches == 0 or driver.fabric_manager == "not-installed":
        return False
    manager, version = driver.fabric_manager_version, driver.version
    return manager is not None and version is not None and manager != version


def _skip_unknown(driver: Driver | None, devices: tuple[Device, ...] | None) -> None:
    """Skip the check where nothing tells of NVSwitches and fabric.

    Raises:
        Skip: neither the NVSwitches nor the devices' fabric state is known.
    """
    states = [device.fabric_state for device in devices or () if device.fabric_state is not None]
    if not states and (driver is None or (driver.nvswitches is None and driver.cuda_init_code != 0)):
        raise Skip("driver.nvswitches is unknown")


def _summary(driver: Driver | None, not_ready: bool, waiting: list[int], devices: tuple[Device, ...]) -> str:
    if driver is not None and _is_of_another_version(driver):
        state = " and does not run" if driver.fabric_manager == "not-running" else ""
        installed = driver.fabric_manager_version
        return f"The fabric manager is of version {installed}{state}, the driver of version {driver.version}"
    state = {"not-running": "does not run", "not-installed": "is not installed"}.get(
        (driver.fabric_manager or "") if driver is not None else "", ""
    )
    switches = f" on a machine with {driver.nvswitches} NVSwitches" if driver is not None and driver.nvswitches else ""
    if state and (switches or not waiting):
        return f"The fabric manager {state}{switches}" + ("; CUDA fails with error 802" if not_ready else "")
    if waiting:
        device = devices[waiting[0]]
        return (
            f"{len(waiting)} of {len(devices)} GPUs have not joined the NVLink fabric: "
            f"the state of {device.name or f'device {device.nvml_index}'} is {device.fabric_state}"
        )
    return "CUDA fails with error 802, system not yet initialized: the GPUs have not joined the NVLink fabric"


def _begin_anew(system: System | None) -> Remedy:
    return reboot(
        system=system,
        summary="Where it was restarted while programs held the GPUs, reboot or reset all GPUs; NCCL_NVLS_ENABLE=0 "
        "does without NVLink SHARP until then",
    )


def _leave() -> Remedy:
    return Remedy(
        summary="Without NVSwitches (`lspci | grep -i nvswitch` shows them up to H200) turn the service off, nothing "
        "needs it; on B200 and newer load ib_umad and install the subnet manager (nvlsm), through which it finds them",
        commands=("sudo systemctl disable --now nvidia-fabricmanager",),
        needs=("root",),
        reference=GUIDE,
    )


def _remedy(driver: Driver | None, system: System | None) -> Remedy:
    if in_container(system):
        return Remedy(
            summary="On the container's host start the fabric manager, then start the container anew",
            commands=("sudo systemctl enable --now nvidia-fabricmanager", "nvidia-smi -q | grep -A 2 Fabric"),
            needs=("root", "restart"),
            reference=GUIDE,
        )
    missing = driver is not None and (driver.fabric_manager == "not-installed" or _is_of_another_version(driver))
    commands: tuple[str, ...] = ()
    summary = "Start the fabric manager, of the driver's version; on B200 and newer with its subnet manager (nvlsm) too"
    if missing and driver is not None and driver.version is not None:
        summary = f"Install the fabric manager of the driver's version {driver.version} and start it"
        if system is not None and system.distribution == "ubuntu":
            commands = (f"sudo apt-get install 'nvidia-fabricmanager-{driver.version.parts[0]}={driver.version}-*'",)
        elif system is not None and system.distribution in ("rhel", "rocky", "almalinux", "ol", "fedora", "amzn"):
            commands = (f"sudo dnf install nvidia-fabricmanager-{driver.version}",)
    return Remedy(
        summary=summary,
        commands=(*commands, "sudo systemctl enable --now nvidia-fabricmanager", "nvidia-smi -q | grep -A 2 Fabric"),
        needs=("root",),
        reference=GUIDE,
    )
