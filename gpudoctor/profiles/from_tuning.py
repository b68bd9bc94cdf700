"""What tuning recommends, as a profile, with the variables that the user asked for."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from gpudoctor.errors import UsageError
from gpudoctor.model import DriverVersion, fingerprint_memory, fingerprint_value
from gpudoctor.model.profile import ALLOCATOR_VARIABLES, Profile
from gpudoctor.model.tuning import Recommendation, TunedDevice, Tuning
from gpudoctor.parsers import profile_variables
from gpudoctor.profiles.env_file import is_name

# PyTorch 2.9 names PYTORCH_ALLOC_CONF in its messages and passes over expandable_segments in it; 2.11 reads it.
# Source: https://github.com/pytorch/pytorch/issues/183387, https://github.com/karpathy/autoresearch/pull/588
FIRST_RELEASE_WITH_NEW_ALLOCATOR_VARIABLE = (2, 11)

DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""What PyTorch and NumPy call the type of a precision; complex64 and complex128 are called so themselves."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_TEMPLATE_FIELDS: dict[str, Callable[[Profile, TunedDevice], str]] = {
    "dtype": lambda profile, _: DTYPES.get(profile.precision, profile.precision),
    "device_name": lambda _, device: profile_variables.allowed(device.name),
}


def profile_of(tuning: Tuning, assignments: Sequence[str] = (), created_at: str | None = None) -> Profile:
    """Return the profile of what `tuning` recommends.

    assignments: of the user's own, "NAME=text with {field}".
    created_at: UTC time in ISO 8601; now by default.

    Raises:
        UsageError: an assignment is wrong, or tuning recommends nothing.
    """
    templates = check_assignments(assignments)
    if tuning.recommendation is None:
        raise UsageError("no setting is recommended, so there is no profile to write")
    profile = _recommended(tuning, tuning.recommendation, created_at)
    own = {name: _filled(template, profile, tuning.device) for name, template in templates.items()}
    return replace(profile, own=own)


def _recommended(tuning: Tuning, advice: Recommendation, created_at: str | None) -> Profile:
    device, settings = tuning.device, advice.settings
    return Profile(
        device=f"cuda:{device.index}" if device.kind == "cuda" else device.kind,
        precision=advice.precision,
        batch_size=advice.batch_size,
        max_batch_size=advice.max_batch_size,
        workload=profile_variables.allowed(tuning.workload.name),
        mode=profile_variables.allowed(tuning.workload.mode),
        fingerprint=fingerprint_of(device),
        created_at=created_at or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        throughput=round(advice.throughput, 3),
        unit=profile_variables.allowed(advice.unit),
        physical_device=device.visible,
        accumulation_steps=advice.accumulation_steps,
        search="cut-short" if tuning.interrupted else "",
        channels_last=settings.channels_last,
        cudnn_benchmark=settings.cudnn_benchmark,
        compile=settings.compile,
        pinned_memory=settings.pin_memory,
        non_blocking=settings.non_blocking,
        workers=settings.loader_workers,
        frameworks=_framework_variables(advice, device.torch_version),
        warnings=(*tuning.warnings, *advice.warnings, *_left_out(advice)),
    )


def fingerprint_of(device: TunedDevice) -> str:
    """Return the device and versions that a profile was measured with, as one readable value.

        device:NVIDIA_H200,memory:140.4GiB,driver:550.54.15,torch:2.13.0+cu130,cupy:13.6.0

    A part that is unknown or absent is left out. gpudoctor/conclusions/fingerprint.py compares it with a machine.
    """
    cuda = device.kind == "cuda"
    memory, driver = device.memory_total_bytes, device.driver_version
    with suppress(ValueError):
        driver = str(DriverVersion.parse(driver)) if driver else None  # "535.54.03", never "535.54.3"
    parts = {
        "device": device.name if cuda else device.kind,
        "memory": fingerprint_memory(memory) if cuda and memory else None,
        "driver": driver if cuda else None,
        "torch": device.torch_version,
        "cupy": device.cupy_version,
    }
    return ",".join(f"{name}:{fingerprint_value(text)}" for name, text in parts.items() if text)


def _left_out(advice: Recommendation) -> Iterator[str]:
    """Yield what the file cannot contain."""
    if not profile_variables.is_allowed(advice.settings.allocator):
        new = ALLOCATOR_VARIABLES[0]
        yield f"set {new}={advice.settings.allocator} yourself: an env file cannot contain all of its characters"


def _framework_variables(advice: Recommendation, torch_version: str | None) -> dict[str, str]:
    """Return the variables that PyTorch reads, so that a program needs no change for them."""
    variables = {}
    if profile_variables.is_allowed(advice.settings.allocator) and advice.settings.allocator:
        match = re.match(r"(\d{1,4})\.(\d{1,4})", torch_version or "")
        is_new = match and (int(match[1]), int(match[2])) >= FIRST_RELEASE_WITH_NEW_ALLOCATOR_VARIABLE
        new, old = ALLOCATOR_VARIABLES  # every release reads the old one, some with a warning
        variables[new if is_new else old] = advice.settings.allocator
    if advice.settings.threads:
        variables[profile_variables.THREADS_VARIABLE] = str(advice.settings.threads)
    if advice.precision == "tf32":
        variables[profile_variables.TF32_VARIABLE] = "1"
    return variables


def check_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Return the template of each name. For before the tuning: what is wrong with one is known without its result.

    Raises:
        UsageError: an assignment is wrong; the message says which and what would do.
    """
    templates: dict[str, str] = {}
    for assignment in assignments:
        name, sign, template = assignment.partition("=")
        problem = _problem(name, sign, template, templates)
        if problem:
            raise UsageError(f"--set {assignment}: {problem}")
        templates[name] = template
    return templates


def _problem(name: str, sign: str, template: str, before: dict[str, str]) -> str:
    if not sign or not is_name(name):
        return "not of the form NAME=value"
    if name in before:
        return f"{name} is set twice"
    if name.startswith(profile_variables.PREFIX) or name in profile_variables.FRAMEWORK_VARIABLES:
        return f"{name} is set by the profile itself"
    known = (*profile_variables.FIELDS, *_TEMPLATE_FIELDS)
    unknown = next((field for field in _PLACEHOLDER.findall(template) if field not in known), None)
    if unknown is not None:
        return f"there is no {{{unknown}}}; there are {', '.join(known)}"
    return (
        ""
        if profile_variables.is_allowed(_PLACEHOLDER.sub("", template))
        else f"a value may contain only {profile_variables.ALLOWED} and {{fields}}"
    )


def _filled(template: str, profile: Profile, device: TunedDevice) -> str:
    def text(match: re.Match[str]) -> str:
        special = _TEMPLATE_FIELDS.get(match[1])
        return special(profile, device) if special else profile_variables.field_text(profile, match[1])

    return _PLACEHOLDER.sub(text, template)
