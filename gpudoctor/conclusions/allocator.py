"""Errors in the environment variables that configure PyTorch's allocator."""

import re

from gpudoctor.data.environment_variables import allocator_keys
from gpudoctor.model import Allocator, AllocatorVariable, Environment, PackageVersion, Torch

# The first one that is set wins. Source: c10/core/AllocatorConfig.h.
NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
FIRST_RELEASE_WITH_NEW_NAME = (2, 9)
# This release reads expandable_segments from the old names only: https://github.com/pytorch/pytorch/issues/183387
RELEASE_WITHOUT_SEGMENTS = (2, 9)
BACKENDS = ("native", "cudaMallocAsync", "hipMallocAsync")


# Source: the message "backend:cudaMallocAsync ignores ..." in libc10_cuda.so of PyTorch 2.14.1.
NATIVE_ONLY = ("max_split_size_mb", "roundup_power2_divisions", "garbage_collection_threshold", "expandable_segments")


def allocator(environment: Environment | None, torch: Torch) -> Allocator:
    """Return the variables that are set, and the errors in each."""
    version = torch.version
    values = {name: environment.get(name) for name in NAMES} if environment is not None else {}
    variables = tuple(_variable(name, value) for name, value in values.items() if value)
    return Allocator(
        variables=variables if environment is not None else None,
        supported=torch.build in (None, "cuda", "rocm"),
        too_old=version if version is not None and _needs_old_name(version, values.get(NAMES[0]) or "") else None,
    )


def _needs_old_name(version: PackageVersion, value: str) -> bool:
    release = version.release[:2]
    segments = "expandable_segments:True" in _settings(value)
    return release < FIRST_RELEASE_WITH_NEW_NAME or (release == RELEASE_WITHOUT_SEGMENTS and segments)


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
    """Return the settings in `value`, split at commas outside brackets. PyTorch ignores one comma at the end."""
    parts, depth = [""], 0
    for character in value:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append("")
        elif not character.isspace():
            parts[-1] += character
    return parts if parts[-1] else parts[:-1]


def _problem(setting: str) -> str:
    """Return the error in one "key:value", "" without an error."""
    key, colon, value = setting.partition(":")
    if not setting:
        return "a setting is empty"
    if not colon:
        return f"{setting} is not of the form key:value"
    if key not in allocator_keys():
        return f"{key} is not a key that PyTorch knows"
    problem = _fault(value, **allocator_keys()[key])
    return problem and f"{setting} {problem}"


def _fault(value: str, takes: str, least: int) -> str:
    """Return the error in a value of this kind, "" without an error. least: smallest valid number of MiB."""
    number = float(value) if re.fullmatch(r"\d{1,9}(\.\d{0,18})?|\.\d{1,18}", value) else -1.0
    if takes == "flag":
        return "" if value in ("True", "False") else "is not True or False"
    if takes == "MiB":
        digits = re.match(r"\d{1,18}", value)
        if digits is None:
            return "is not a number of MiB"
        return "" if int(digits[0]) >= least else f"is less than {least} MiB"
    if takes == "share":
        return "" if 0 < number < 1 else "is not between 0 and 1"
    if takes == "share or all":
        return "" if 0 <= number <= 1 else "is not from 0 to 1"
    if takes == "power of 2":
        is_one = value.startswith("[") or (value.isdecimal() and int(value).bit_count() == 1)
        return "" if is_one else "is not a power of 2"
    if takes == "backend":
        return "" if value in BACKENDS else "is not native or cudaMallocAsync"
    return "" if value else "has no value"


def _corrected(value: str) -> str:
    """Return `value` with unambiguous typing errors corrected: quotes, "=", ";" and the spelling of True and False."""
    plain = re.sub(r"[\s'\"]", "", value).replace("=", ":").replace(";", ",")
    plain, keys = ",".join(setting for setting in _settings(plain) if setting), allocator_keys()
    for pattern, word in ((r":(true|TRUE|1|on)(?=,|$)", ":True"), (r":(false|FALSE|0|off)(?=,|$)", ":False")):
        plain = ",".join(
            re.sub(pattern, word, part) if keys.get(part.partition(":")[0], {}).get("takes") == "flag" else part
            for part in _settings(plain)
        )
    return plain
