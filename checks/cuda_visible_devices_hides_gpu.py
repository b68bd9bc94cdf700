"""The variables that choose which GPUs a program sees."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import DeviceChoice, Devices, Finding, Fix, Gpu, Origin, Pytorch, Symptom, VisibleDevices
from gpudoctor.registry import CUDA_FAILS, Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code
from gpudoctor.symptoms.answers import answers

NVIDIA = "CUDA_VISIBLE_DEVICES"
UNSET = Fix("unset-variable", name=NVIDIA, summary=f"Remove {NVIDIA}: programs then see every GPU")

NAME_ONE = (
    "Name a GPU that exists: the numbers start at 0. If the variable is set for good (~/.bashrc), change it there"
)


@check(family="cuda", explains=(*CUDA_FAILS, "wrong-python-environment"))
def cuda_visible_devices_hides_gpu(
    origin: Origin,
    visible_devices: VisibleDevices,
    pytorch: Pytorch,
    gpu: Gpu,
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides every GPU, or names one that does not exist.

    Why: CUDA ignores an entry that names no device, and everything after it. With an empty value, -1 or a wrong first
    entry no device is left, and programs say "no CUDA-capable device is detected". A device named twice also leaves
    none. For AMD, ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES do the same.
    Exception: showing only some devices, such as "0" of four, is a choice, and so is a -1 at the end.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    if not visible_devices.known and not symptoms:
        raise Skip("environment is unknown")
    if answered := answers(symptoms, "cuda-visible-devices-hides-gpu"):
        yield answered[0]
        return
    skip_unless(not origin.is_report or pytorch.build != "cpu", "PyTorch is built without CUDA and looks for no GPU")
    if pytorch.build == "rocm":
        if visible_devices.amd is not None:
            skip_unless(known(visible_devices.amd.count, "system.amd_gfx_targets"), "there is no AMD GPU to hide")
            yield _all_hidden(visible_devices.amd)
        return
    choice = visible_devices.nvidia
    found = _hidden(choice, visible_devices, gpu, is_report=origin.is_report) if choice is not None else None
    if found is not None:
        own = (Fix("start-program-with-own-gpus"),) if of_kind(symptoms, "tried-unset") else ()
        yield replace(found, fixes=(*own, *found.fixes))
        return
    said = first(with_code(symptoms, "cuda-101"))
    # Which number a MIG device has is for mig-misconfigured; and if CUDA cannot be used at all no number would do.
    partitioned = any(device.mig_enabled or "MIG" in (device.name or "") for device in devices or ())
    wrong_number = said is not None and not partitioned and pytorch.available is not False
    if said is not None and wrong_number:
        yield _wrong_number(said, choice, len(devices or ()))
    if choice is None and visible_devices.seen_elsewhere:
        yield _seen_elsewhere(visible_devices)
    elif origin.is_report and choice is None and not wrong_number:
        raise Skip("the report does not show CUDA_VISIBLE_DEVICES")


def _hidden(choice: DeviceChoice, devices: VisibleDevices, gpu: Gpu, *, is_report: bool) -> Finding | None:
    """Return what the variable hides. Raises Skip: there is no NVIDIA GPU to hide, or that is unknown."""
    if is_report and not devices.misses and not devices.too_few:
        # A report may show only some of the devices.
        skip_unless(choice.hides_all, "nothing in the report fails because a device is missing")
    if not choice.bad and choice.visible:
        # The number of devices is often not in a report. With driver and GPU in order, a device that is not there
        # is what leaves none; the first device is there wherever one is.
        if devices.misses and choice.count is None and choice.visible[0] != "0":
            return _all_hidden(choice, f"CUDA finds no device {choice.visible[0]}")
        return None
    if choice.visible:
        return _some_hidden(choice) if choice.after or choice.reason != "ends the list" else None
    if devices.finds_some:
        return None
    name = "a GPU" if gpu.name is None and devices.finds_none else gpu.name
    skip_unless(known(name, "devices"), "there is no NVIDIA GPU to hide")
    return _all_hidden(choice)


def _all_hidden(choice: DeviceChoice, because: str = "") -> Finding:
    count = choice.count
    gpus = "every GPU" if count is None else f"all {count} GPUs" if count > 1 else "the only GPU"
    if not because and choice.reason not in ("", "ends the list"):
        because = f"{choice.bad} {choice.reason}"
    return Finding.error(
        choice.name,
        f'{choice.name}="{choice.value}" hides {gpus}{f": {because}" if because else ""}',
        (f"environment.{choice.name}",),
        # Slurm sets this value for a job that asked for no GPU. Source: https://slurm.schedmd.com/gres.html
        *((Fix("ask-batch-system-for-hidden-gpu"),) if choice.value == "NoDevFiles" else ()),
        Fix("show-hidden-gpus", name=choice.name),
        Fix("set-variable", name=choice.name, value="0", summary=NAME_ONE),
    )


def _some_hidden(choice: DeviceChoice) -> Finding:
    hidden = f", and hides {', '.join(choice.after)} after it" if choice.after else ""
    reason = "names no GPU" if choice.reason == "ends the list" else choice.reason
    value = ",".join(choice.visible)
    return Finding.warning(
        NVIDIA,
        f'{choice.bad} in {NVIDIA}="{choice.value}" {reason}{hidden}',
        (f"environment.{NVIDIA}",),
        Fix("set-variable", name=NVIDIA, value=value, summary="Name only GPUs that exist"),
        UNSET,
    )


def _wrong_number(said: Symptom, choice: DeviceChoice | None, count: int) -> Finding:
    shown = f' with {NVIDIA}="{choice.value}"' if choice is not None and choice.value else ""
    there = f"; the machine has {f'GPUs 0 to {count - 1}' if count > 1 else 'only GPU 0'}" if count else ""
    summary = f"A program asks for a CUDA device whose number is not among the visible ones{shown}{there}"
    facts = (said.fact, f"environment.{NVIDIA}" if choice is not None else "")
    return Finding.error("device number", summary, facts, Fix("ask-for-visible-devices"), UNSET)


def _seen_elsewhere(devices: VisibleDevices) -> Finding:
    remove = f"Remove {NVIDIA}: programs then see every GPU"
    return Finding.error(
        NVIDIA,
        f"{devices.seen_elsewhere}, but this program finds none, probably because of {NVIDIA}",
        devices.seen_elsewhere_facts,
        Fix("look-for-variable-in-program"),
        Fix("unset-variable", name=NVIDIA, summary=remove),
        certain=False,
    )
