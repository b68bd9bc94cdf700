"""`NAME OP VALUE` or a bare name, read from text."""

import re
from collections.abc import Sequence

from gpudoctor.configuration.requirement_names import Name, names
from gpudoctor.errors import UsageError
from gpudoctor.model.requirement import OPERATORS, MachineRequirement

UNMET = "requirement-unmet"
"""The check that judges the requirements."""

UNITS = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LONGEST = 200
_EXAMPLES = {"count": "1", "size": "24GiB", "version": "8.0"}
_EXPECTED = {
    "count": "a whole number such as 1",
    "size": "a size with its unit, such as 24GiB (2^30 bytes) or 24GB (10^9 bytes)",
    "version": "a version such as 12.4",
}


def sections_of(requirements: Sequence[MachineRequirement]) -> frozenset[str]:
    """Return the sections of the snapshot that must be probed."""
    return frozenset(section for requirement in requirements for section in names()[requirement.name].sections)


def parse_requirement(text: str, where: str = "--require") -> MachineRequirement:
    """Return the requirement in `text`.

    where: option, or file and key, for messages.

    Raises:
        UsageError: the name is not known, or the value does not fit it.
    """
    match = re.fullmatch(r"\s*([^\s<>=!~]+)\s*([<>=!~]*)\s*(.*?)\s*", text, re.DOTALL)
    if match is None or len(text) > _LONGEST:
        raise UsageError(f"{where}: {text[:_LONGEST]!r} is not a requirement: write a name, or NAME OP VALUE: gpu>=1")
    name, sign, value = _known_name(match[1], where), match[2], re.sub(r"\s+", "", match[3])
    shown = f"{name}{sign}{value}"
    problem = _problem(names()[name], name, sign, value)
    if problem:
        raise UsageError(f"{where}: {shown}: {problem}")
    return MachineRequirement(text=shown, name=name, operator=sign, value=_read(names()[name].value, value))


def _known_name(given: str, where: str) -> str:
    name = given.lower().replace("-", "_")
    if name in names():
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names())}"
    raise UsageError(f"{where}: there is no requirement {given!r}: {hint}")


def _problem(name: Name, word: str, sign: str, value: str) -> str:
    """Return what is wrong with operator and value, "" if nothing is."""
    if not sign and not value:
        return "" if name.bare else f"expected an operator and a value, as in {word}>={_EXAMPLES[name.value]}"
    if not name.value:
        return f"{word} takes no value: it is available or not"
    if sign not in OPERATORS:
        return f"the operator is one of {' '.join(OPERATORS)}{', as in ' + word + '==' + value if sign == '=' else ''}"
    if "," in value:
        return "only one comparison is allowed: give the second one as a separate requirement"
    if _read(name.value, value) is None or (name.value == "version" and not _is_specifier(sign, value)):
        return f"expected {_EXPECTED[name.value]}, not {value!r}" if value else f"expected {_EXPECTED[name.value]}"
    return ""


def _read(kind: str, value: str) -> int | str | None:
    """Return what the text of a value says; None if it does not fit the kind, or is empty."""
    if kind == "count":
        return int(value) if re.fullmatch(r"\d{1,4}", value, re.ASCII) else None
    if kind == "size":
        return _bytes(value)
    return value or None


def _bytes(value: str) -> int | None:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]{1,3})", value, re.ASCII)
    factor = UNITS.get(match[2].upper()) if match else None
    return round(float(match[1]) * factor) if match and factor else None


def _is_specifier(sign: str, value: str) -> bool:
    """Return whether PEP 440 knows the comparison: "==2.4.*" is one, ">=2.4.*" is not."""
    from packaging.specifiers import InvalidSpecifier, Specifier

    try:
        Specifier(f"{sign}{value}")
    except InvalidSpecifier:
        return False
    return True
