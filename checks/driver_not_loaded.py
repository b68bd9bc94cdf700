"""A driver that is installed, and a kernel that has not loaded it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpudoctor.model import Driver, DriverState, Finding, Fix, Place, Symptom, System
from gpudoctor.registry import CUDA_FAILS, Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code
from gpudoctor.symptoms.answers import answers

# Those that say why, the most informative first.
PRINTED = (
    *("nvrm-legacy-gpu", "nvrm-gpu-not-in-release", "kernel-module-key-rejected", "nvidia-device-node-missing"),
    "prime-intel-selected",
)
# Words that say why nvidia-smi fails, in addition to those that only say that it fails.
SECURE_BOOT = "secure-boot-mentioned"
NEW_KERNEL = "kernel-upgrade-reported"
# Words that count if no driver works.
BY_PERSON = ("nouveau-reported", "kernel-module-refusal-suspected")

BUILD, ENROL, LOAD = Fix("build-kernel-module"), Fix("enrol-module-key"), Fix("load-driver")
OTHER_NVML = Fix("find-other-nvml")
NOUVEAU, REINSTALL, RESTART = (
    Fix("keep-nouveau-out"),
    Fix("reinstall-driver"),
    Fix("reboot", summary="Restart the machine, so that the driver and its kernel module are loaded together"),
)


class _Reason(NamedTuple):
    """Why the module is not loaded, as the end of a sentence, the fact that says so, and what helps."""

    text: str
    fact: str
    fixes: tuple[Fix, ...]


@check(
    family="driver",
    explains=(
        *CUDA_FAILS,
        "device-permissions-missing",
        "fabric-manager-not-running",
        "cuda-visible-devices-hides-gpu",
    ),
)
def driver_not_loaded(
    place: Place,
    driver_state: DriverState,
    driver: Driver = Driver(),
    system: System = System(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The NVIDIA driver is installed, but its kernel module is not loaded.

    Why: libcuda talks to the GPU through the kernel module nvidia; without it nvidia-smi "couldn't communicate with
    the NVIDIA driver". The usual reasons: nouveau uses the GPU, Secure Boot refuses an unsigned module, or no module
    was built for a kernel that was upgraded.
    Exception: driver libraries on a machine without an NVIDIA GPU pass, as do containers and WSL, because the host
    loads the module.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    other = first(with_code(symptoms, "nvml-9"))
    if other is not None and other.fact == "driver.nvml_code" and driver_state.works:
        summary = "NVML says that the driver is not loaded, but CUDA works: a libnvidia-ml from elsewhere answers"
        yield Finding.warning("libnvidia-ml.so.1", summary, (other.fact, "driver.cuda_init_code"), OTHER_NVML)
        return
    skip_unless(not place.in_container, "the host of a container loads the kernel module")
    skip_unless(not place.in_wsl, "WSL has no NVIDIA kernel module")
    said = first(with_code(symptoms, "nvml-9")) or _refused(symptoms, driver_state, driver)
    by_message = said is not None and said.fact.startswith("symptoms")
    if (driver.installed is False and not by_message) or system.nvidia_gpus == ():
        return
    if not by_message and driver_state.works:
        return
    if said is None:
        if driver.module_loaded is None and driver.nvml_code is None:
            raise Skip("driver.module_loaded is unknown")
        if driver.module_loaded is not False or not (driver.installed or driver.library_version):
            return
    reason = _reason(driver, system, symptoms)
    version = driver.library_version or driver.version
    by_person = said is not None and said.kind in BY_PERSON
    name = f"The NVIDIA driver{f' {version}' if version else ''}"
    summary = (
        f"{name} does not answer, although its kernel module is loaded{reason.text}"
        if driver.module_loaded
        else f"{name} is {'probably ' if by_person else ''}installed, but its kernel module is not loaded{reason.text}"
    )
    facts = (said.fact if said else "", "driver.module_loaded", reason.fact)
    finding = Finding.error("kernel module nvidia", summary, facts, *reason.fixes, no_usable_gpu=True)
    yield replace(finding, certain=not by_person and not driver.module_loaded)


def _refused(symptoms: Symptoms, state: DriverState, driver: Driver) -> Symptom | None:
    """Return the message by which the kernel has no module of the driver, although the rest of it is there."""
    fails = of_kind(symptoms, "nvidia-smi-failure-reported") if of_kind(symptoms, SECURE_BOOT, NEW_KERNEL) else ()
    # If libcuda is missing too there is no driver at all.
    answers = state.works and driver.module_loaded
    not_running = () if state.not_found or answers else of_kind(symptoms, "kernel-driver-not-running")
    reported = () if state.works else of_kind(symptoms, *BY_PERSON)
    return first(of_kind(symptoms, "@kernel-module-refused"), fails, not_running, reported)


def _reason(driver: Driver, system: System, symptoms: Symptoms) -> _Reason:
    if system.os == "windows":
        return _Reason("", "", (REINSTALL,))
    every_usual_one = _Reason(
        "", "", (RESTART, REINSTALL) if driver.module_loaded else (LOAD, BUILD, NOUVEAU, ENROL, REINSTALL)
    )
    found = _said(symptoms, *PRINTED) or _read(driver, system, symptoms) or _said(symptoms, SECURE_BOOT, NEW_KERNEL)
    return found or every_usual_one


def _said(symptoms: Symptoms, *kinds: str) -> _Reason | None:
    """Return the reason by the first of these kinds of messages: their rows have the end of the sentence."""
    said = first(*(of_kind(symptoms, kind) for kind in kinds))
    if said is None:
        return None
    (found,) = answers((said,), "driver-not-loaded")
    return _Reason(found.summary, said.fact, found.fixes)


def _read(driver: Driver, system: System, symptoms: Symptoms) -> _Reason | None:
    """Return the reason by the state of the bus, the kernel and its modules."""
    bound = {gpu.bound_driver for gpu in system.nvidia_gpus or ()}
    if bound == {"vfio-pci"}:
        return _Reason(": vfio-pci reserves the GPU for a virtual machine", "system.pci_gpus", (Fix("unbind-vfio"),))
    if driver.module_built_for_kernel is False:
        kernel = f" {system.kernel}" if system.kernel else ""
        fact = "driver.module_built_for_kernel"
        return _Reason(f": none is built for the running kernel{kernel}", fact, (BUILD, REINSTALL))
    if "nouveau" in bound:
        return _Reason(": nouveau uses the GPU", "system.pci_gpus", (NOUVEAU,))
    for said in of_kind(symptoms, "nvrm-probe-not-called"):
        return _Reason(": another driver, such as nouveau or nova, uses the GPU", said.fact, (NOUVEAU, LOAD))
    if driver.nouveau_loaded:
        enrol = () if system.secure_boot is False else (ENROL,)
        return _Reason(": nouveau is loaded instead", "driver.nouveau_loaded", (NOUVEAU, *enrol, BUILD))
    if system.secure_boot:
        text = ", and Secure Boot is on, which refuses an unsigned module"
        return _Reason(text, "system.secure_boot", (ENROL, LOAD))
    if driver.module_built_for_kernel and driver.nouveau_loaded is False:
        return _Reason("", "", (LOAD,))
    return None
