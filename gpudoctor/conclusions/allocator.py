"""What is wrong with the environment variables that configure PyTorch's allocator."""

import re
from collections.abc import Callable

from gpudoctor.model import Allocator, AllocatorVariable, Environment, Torch

# The first that is set wins. Source: c10/core/AllocatorConfig.h.
NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
FIRST_RELEASE_WITH_NEW_NAME = (2, 9)


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
    return "" if value.startswith("[") or (value.isdecimal() and int(value).bit_count() == 1) else "is not a power of 2"


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


def allocator(environment: Environment | None, torch: Torch | None) -> Allocator:
    """Return the variables that are set, and what is wrong with each."""
    version = torch.version if torch is not None else None
    values = {name: environment.get(name) for name in NAMES} if environment is not None else {}
    variables = tuple(_variable(name, value) for name, value in values.items() if value)
    return Allocator(
        variables=variables if environment is not None else None,
        supported=torch is None or torch.build in (None, "cuda", "rocm"),
        too_old=version if version is not None and version.release[:2] < FIRST_RELEASE_WITH_NEW_NAME else None,
    )


def _variable(name: str, value: str) -> AllocatorVariable:
    problems = tuple(filter(None, map(_problem, _settings(value))))
    corrected = _corrected(value) if problems else ""
    if corrected == value or any(map(_problem, _settings(corrected))):
        corrected = ""
    pairs = dict(setting.partition(":")[::2] for setting in _settings(value))
    ignored = [key for key in NATIVE_ONLY if key in pairs and pairs[key] != "False"]
    if pairs.get("backend") != "cudaMallocAsync":
        ignored = []
    return AllocatorVariable(name=name, value=value, problems=problems, corrected=corrected, ignored=tuple(ignored))


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
        return f"{key} is not a key that PyTorch knows"
    problem = KEYS[key](value)
    return problem and f"{setting} {problem}"


def _corrected(value: str) -> str:
    """Return `value` without slips that leave no doubt: quotes, "=", ";" and how True and False are written."""
    plain = re.sub(r"[\s'\"]", "", value).replace("=", ":").replace(";", ",")
    plain = ",".join(setting for setting in _settings(plain) if setting)
    for pattern, word in ((r":(true|TRUE|1|on)(?=,|$)", ":True"), (r":(false|FALSE|0|off)(?=,|$)", ":False")):
        plain = ",".join(
            re.sub(pattern, word, part) if KEYS.get(part.partition(":")[0]) is _flag else part
            for part in _settings(plain)
        )
    return plain
