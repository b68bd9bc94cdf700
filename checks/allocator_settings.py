"""The environment variables that configure PyTorch's allocator."""

import re
from collections.abc import Callable, Iterator

from gpudoctor.model import Environment, Finding, Remedy, Severity, System, Torch
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import set_variable, unset_variable

NEW_NAME = "PYTORCH_ALLOC_CONF"
# The first that is set wins. Source: c10/core/AllocatorConfig.h.
NAMES = (NEW_NAME, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
FIRST_RELEASE_WITH_NEW_NAME = (2, 9)
REFERENCE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf"


def _flag(value: str) -> str:
    return "" if value in ("True", "False") else "is not True or False"


def _mebibytes(least: int) -> Callable[[str], str]:
    def problem(value: str) -> str:
        digits = re.match(r"\d{1,18}", value)
        if digits is None:
            return "is not a number of MiB"
        return "" if int(digits[0]) >= least else f"is less than {least} MiB"

    return problem


def _fraction(value: str) -> str:
    return "" if _number(value) is not None and 0 < float(value) < 1 else "is not between 0 and 1"


def _fraction_or_all(value: str) -> str:
    return "" if _number(value) is not None and 0 <= float(value) <= 1 else "is not from 0 to 1"


def _number(value: str) -> float | None:
    return float(value) if re.fullmatch(r"\d{1,9}(\.\d{0,18})?|\.\d{1,18}", value) else None


def _power_of_two(value: str) -> str:
    return "" if value.startswith("[") or (value.isdecimal() and int(value).bit_count() == 1) else "is no power of 2"


def _backend(value: str) -> str:
    known = ("native", "cudaMallocAsync", "hipMallocAsync")
    return "" if value in known else "is not native or cudaMallocAsync"


def _anything(value: str) -> str:
    return "" if value else "has no value"


# Source: keys and messages in libc10.so and libc10_cuda.so of PyTorch 2.14.1; limits measured with PyTorch 2.13.0.
KEYS: dict[str, Callable[[str], str]] = {
    "backend": _backend,
    "expandable_segments": _flag,
    "expandable_segments_handle_type": _anything,
    "garbage_collection_threshold": _fraction,
    "graph_capture_record_stream_reuse": _flag,
    "large_segment_size_mb": _mebibytes(11),
    "max_non_split_rounding_mb": _mebibytes(20),
    "max_split_size_mb": _mebibytes(20),
    "per_process_memory_fraction": _fraction_or_all,
    "pinned_free_catch_all": _anything,
    "pinned_max_cached_size_mb": _mebibytes(0),
    "pinned_max_round_threshold_mb": _mebibytes(0),
    "pinned_num_register_threads": _power_of_two,
    "pinned_reserve_segment_size_mb": _mebibytes(1),
    "pinned_use_background_threads": _flag,
    "pinned_use_cuda_host_register": _flag,
    "pinned_use_hip_host_register": _flag,
    "release_lock_on_cudamalloc": _flag,
    "release_lock_on_hipmalloc": _flag,
    "roundup_power2_divisions": _power_of_two,
    "throw_on_cudamalloc_oom": _flag,
}
# Source: the message "backend:cudaMallocAsync ignores ..." in libc10_cuda.so of PyTorch 2.14.1.
NATIVE_ONLY = ("max_split_size_mb", "roundup_power2_divisions", "garbage_collection_threshold", "expandable_segments")


@check(family="memory")
def allocator_settings(
    environment: Environment, torch: Torch | None = None, system: System | None = None
) -> Iterator[Finding]:
    """The settings of PyTorch's allocator in the environment are malformed, unknown or contradict each other.

    Why: PyTorch reads them at the first CUDA call, so that one ends in "Unrecognized key", "Expected 'True' or 'False'"
    or an index error in ConfigTokenizer, and a setting that is not read helps against no fragmentation.
    Exception: both names of the variable are read by current releases, so the old one passes.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
    """
    skip_unless(torch is None or torch.build in (None, "cuda", "rocm"), "PyTorch is not built for a GPU")
    values = {name: environment.get(name) for name in NAMES}
    present = {name: value for name, value in values.items() if value}
    skip_unless(present, "no setting of the allocator is in the environment")
    for name, value in present.items():
        yield from _malformed(name, value, system)
        yield from _ignored_by_backend(name, value)
    yield from _two_values(present, system)
    yield from _name_not_read(present, torch, system)


def _malformed(name: str, value: str, system: System | None) -> Iterator[Finding]:
    problems = [problem for problem in map(_problem, _settings(value)) if problem]
    if not problems:
        return
    corrected = _corrected(value)
    remedies = [unset_variable(system=system, name=name)]
    if corrected != value and not any(map(_problem, _settings(corrected))):
        remedies.insert(0, set_variable(system=system, name=name, value=corrected))
    yield Finding(
        severity=Severity.WARNING,
        summary=f"In {name}, {' and '.join(problems)}",
        subject=name,
        facts=(f"environment.{name}",),
        remedies=tuple(remedies),
    )


def _settings(value: str) -> list[str]:
    """Return the settings in `value`, split at commas outside brackets. PyTorch passes over one comma at the end."""
    parts, depth = [""], 0
    for character in value:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append("")
        elif not character.isspace():
            parts[-1] += character
    return parts if parts[-1] else parts[:-1]


def _problem(setting: str) -> str:
    """Return what is wrong with one "key:value", "" for nothing."""
    key, colon, value = setting.partition(":")
    if not setting:
        return "a setting is empty"
    if not colon:
        return f"{setting} is not of the form key:value"
    if key not in KEYS:
        return f"{key} is no key that PyTorch knows"
    problem = KEYS[key](value)
    return problem and f"{setting} {problem}"


def _corrected(value: str) -> str:
    """Return `value` with the slips mended that leave no doubt: quotes, "=", ";" and how True and False are written."""
    plain = re.sub(r"[\s'\"]", "", value).replace("=", ":").replace(";", ",")
    plain = ",".join(setting for setting in _settings(plain) if setting)
    for pattern, word in ((r":(true|TRUE|1|on)(?=,|$)", ":True"), (r":(false|FALSE|0|off)(?=,|$)", ":False")):
        plain = ",".join(
            re.sub(pattern, word, part) if KEYS.get(part.partition(":")[0]) is _flag else part
            for part in _settings(plain)
        )
    return plain


def _ignored_by_backend(name: str, value: str) -> Iterator[Finding]:
    pairs = dict(setting.partition(":")[::2] for setting in _settings(value))
    ignored = [key for key in NATIVE_ONLY if key in pairs and pairs[key] != "False"]
    if pairs.get("backend") == "cudaMallocAsync" and ignored:
        yield Finding(
            severity=Severity.INFO,
            summary=f"In {name}, backend:cudaMallocAsync ignores {' and '.join(ignored)}",
            subject=name,
            facts=(f"environment.{name}",),
            remedies=(Remedy(summary="Keep the backend or the other settings, not both", reference=REFERENCE),),
        )


def _two_values(present: dict[str, str], system: System | None) -> Iterator[Finding]:
    first, *others = present
    for other in others:
        if present[other] != present[first]:
            yield Finding(
                severity=Severity.INFO,
                summary=f"{first} is {present[first]} and {other} is {present[other]}, of which only the first is read",
                subject=other,
                facts=(f"environment.{first}", f"environment.{other}"),
                remedies=(unset_variable(system=system, name=other),),
            )


def _name_not_read(present: dict[str, str], torch: Torch | None, system: System | None) -> Iterator[Finding]:
    release = torch.version.release[:2] if torch is not None and torch.version is not None else ()
    if release and release < FIRST_RELEASE_WITH_NEW_NAME and list(present) == [NEW_NAME]:
        yield Finding(
            severity=Severity.WARNING,
            summary=f"{NEW_NAME} is set, and PyTorch {torch.version if torch else ''} reads only {NAMES[1]}",
            subject=NEW_NAME,
            facts=(f"environment.{NEW_NAME}", "torch.version"),
            remedies=(set_variable(system=system, name=NAMES[1], value=present[NEW_NAME]),),
        )
