"""A profile as variables, and back.

A field of the profile is the variable GPUDOCTOR_<FIELD>. Values hold only characters that `docker run --env-file`,
compose, systemd and a shell read the same way, without quotes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from gpudoctor.model.profile import ALLOCATOR_VARIABLES, SCHEMA, Profile

PREFIX = "GPUDOCTOR_"
SCHEMA_VARIABLE = "GPUDOCTOR_SCHEMA"
THREADS_VARIABLE = "OMP_NUM_THREADS"
TF32_VARIABLE = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
FRAMEWORK_VARIABLES = frozenset((*ALLOCATOR_VARIABLES, THREADS_VARIABLE, TF32_VARIABLE))

ALLOWED = "A-Z a-z 0-9 _ . , : / + -"
_NOT_ALLOWED = r"[^A-Za-z0-9_.,:/+-]"
_LARGEST = 10**12  # a larger number is not a batch size, and a number of any length is slow to read


def allowed(text: str) -> str:
    """Return `text` with "_" for each character that a value must not contain: "NVIDIA_H200"."""
    return re.sub(_NOT_ALLOWED, "_", text)


def is_allowed(text: str) -> bool:
    """Return whether `text` is a valid value."""
    return re.search(_NOT_ALLOWED, text) is None


def _number(text: str, least: int = 1) -> int:
    if not re.fullmatch(r"[0-9]{1,13}", text) or not least <= int(text) <= _LARGEST:
        raise ValueError(f"a whole number from {least} on")
    return int(text)


def _matching(pattern: str, meaning: str, read: Callable[[str], Any] = str) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        if not re.fullmatch(pattern, text):
            raise ValueError(meaning)
        return read(text)

    return checked


_flag = _matching("[01]", "0 or 1", lambda text: text == "1")


def _precision(text: str) -> str:
    from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS  # slow, and a check needs none of it

    known = (*PRECISIONS, *COMPLEX_PRECISIONS)
    if text not in known:
        raise ValueError(f"one of {', '.join(known)}")
    return text


def _write(value: Any) -> str:
    """Return a field's value as a variable has it: no limit is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:.3f}" if isinstance(value, float) else allowed(str(value))


# Field → how it is read; the first ones must be there.
_FIELDS: Mapping[str, Callable[[str], Any]] = {
    "device": _matching(r"cuda:[0-9]{1,3}|cpu|mps", "cuda:N, cpu or mps"),
    "precision": _precision,
    "batch_size": _number,
    "max_batch_size": lambda text: None if text == "" else _number(text),
    "workload": str,
    "fingerprint": str,
    "mode": str,
    "created_at": str,
    "throughput": _matching(r"[0-9]{1,15}(\.[0-9]{1,9})?", "a decimal number", float),
    "unit": str,
    "physical_device": _matching(r"[A-Za-z0-9-]{0,64}", "a number or a UUID"),
    "accumulation_steps": _number,
    "search": _matching("cut-short|", "cut-short or nothing"),
    "channels_last": _flag,
    "cudnn_benchmark": _flag,
    "compile": _flag,
    "pinned_memory": _flag,
    "non_blocking": _flag,
    "workers": lambda text: _number(text, least=0),
}
FIELDS = tuple(_FIELDS)
_REQUIRED = FIELDS[: FIELDS.index("mode")]


def variable_of(field: str) -> str:
    """Return the name of the variable of a field: "GPUDOCTOR_BATCH_SIZE"."""
    return PREFIX + field.upper()


def field_text(profile: Profile, field: str) -> str:
    """Return the value of a field's variable; empty for no limit and for what was not measured."""
    return _write(getattr(profile, field))


def gpudoctor_variables(profile: Profile) -> dict[str, str]:
    """Return gpudoctor's own variables: all required ones, and the others if they are known."""
    variables = {SCHEMA_VARIABLE: SCHEMA}
    for name in FIELDS:
        if name in _REQUIRED or getattr(profile, name) not in (None, ""):
            variables[variable_of(name)] = field_text(profile, name)
    return variables


def all_variables(profile: Profile) -> dict[str, str]:
    """Return every variable of the profile, in the order of the file."""
    return {**gpudoctor_variables(profile), **profile.frameworks, **profile.own}


class BadVariable(ValueError):
    """A variable that is missing or does not fit; `name` is the variable's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def profile_from(variables: Mapping[str, str]) -> Profile:
    """Return the profile in the variables. Variables of gpudoctor that this version does not know are skipped.

    Raises:
        BadVariable: one is missing, has a value that does not fit, or is of a schema that this version does not know.
    """
    _check_schema(variables)
    values: dict[str, Any] = {}
    for name, read in _FIELDS.items():
        variable = variable_of(name)
        if variable in variables:
            values[name] = _checked(read, variable, variables[variable])
        elif name in _REQUIRED:
            raise BadVariable(variable, f"{variable} is missing")
    others = {name: value for name, value in variables.items() if not name.startswith(PREFIX)}
    frameworks = {name: value for name, value in others.items() if name in FRAMEWORK_VARIABLES}
    if THREADS_VARIABLE in frameworks:
        _checked(_number, THREADS_VARIABLE, frameworks[THREADS_VARIABLE])
    own = {name: value for name, value in others.items() if name not in FRAMEWORK_VARIABLES}
    return Profile(**values, frameworks=frameworks, own=own)


def _check_schema(variables: Mapping[str, str]) -> None:
    schema = variables.get(SCHEMA_VARIABLE)
    if schema is None:
        raise BadVariable(SCHEMA_VARIABLE, f"{SCHEMA_VARIABLE} is missing: this is not a gpudoctor profile")
    if schema != SCHEMA:
        raise BadVariable(SCHEMA_VARIABLE, f"its schema is {schema[:80]!r}, this gpudoctor reads {SCHEMA}")


def _checked(read: Callable[[str], Any], variable: str, value: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise BadVariable(variable, f"{variable} is {value[:80]!r}, not {error}") from None
