"""conda: the names of its package records, and its environment files.

An environment.yml is read line by line and not as YAML, which would need another dependency: the form that conda writes
and documents, a list under "dependencies:" with one list under "- pip:" in it, is all that is understood.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gpudoctor.model import Requirement
from gpudoctor.parsers.requirements_files import normalise, parse_requirement

_RECORD = r"([a-z0-9_][a-z0-9_.-]{0,98}?)-([A-Za-z0-9.!+_]{1,64})-([A-Za-z0-9._+]{1,100})"


class CondaRecord(NamedTuple):
    """A package that conda installed, with the build string that says its variant."""

    name: str
    version: str
    build: str


def parse_conda_record(text: str) -> CondaRecord | None:
    """Return the record in "pytorch-2.5.1-cuda126_py312h_0"; None if the text is not a record.

    Source: conda's distribution strings; neither version nor build may hold a hyphen.
    """
    match = re.fullmatch(_RECORD, text)
    return CondaRecord(match[1], match[2], match[3]) if match else None


def torch_record(records: Iterable[CondaRecord]) -> CondaRecord | None:
    """Return conda's PyTorch package; None if it is not installed."""
    return next((record for record in records if record.name == "pytorch"), None)


def is_cpu_only(records: Iterable[CondaRecord]) -> bool:
    """Return whether `cpuonly` or a mutex that chooses the CPU build is among the packages.

    The channel pytorch uses pytorch-mutex (build "cpu"), defaults _pytorch_select (build "cpu_0") and conda-forge
    pytorch-cpu. At first cpuonly was named cpu-only.
    """
    return any(
        record.name in ("cpuonly", "cpu-only", "pytorch-cpu")
        or (record.name in ("pytorch-mutex", "_pytorch_select") and record.build.startswith("cpu"))
        for record in records
    )


def cuda_major(records: Iterable[CondaRecord]) -> int | None:
    """Return the CUDA major version of conda's packages; None if no package shows it."""
    versions = {record.name: record.version for record in records}
    text = versions.get("cuda-version") or versions.get("cudatoolkit") or ""
    match = re.match(r"(\d{1,2})(?:\.|$)", text)
    return int(match[1]) if match else None


# conda's name for the package that installs the Python distribution of another name
_DISTRIBUTIONS = {"pytorch": "torch", "pytorch-gpu": "torch"}
_NOT_DISTRIBUTIONS = ("python", "pip")
_SPEC = r"(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)\s*(.*)"
_VERSION = r"\d[\w.!+]*(?:\.\*|\*)?"


def parse_conda_environment(text: str, source: str, platform: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the packages that the file names, those of conda with the name of their Python distribution.

    source: name of the file. platform: as for requirements files, for the lines under "pip:".
    """
    found: list[Requirement | None] = []
    pip_indent: int | None = None
    for number, indent, item in _dependencies(text):
        if pip_indent is not None and indent <= pip_indent:
            pip_indent = None
        if item.rstrip() == "pip:":
            pip_indent = indent
        elif pip_indent is None:
            found.append(parse_match_spec(item, f"{source} line {number}"))
        elif not item.startswith("-"):
            found.append(parse_requirement(item, f"{source} line {number}", platform))
    return tuple(requirement for requirement in found if requirement)


def parse_match_spec(spec: str, source: str) -> Requirement | None:
    """Return what conda's "conda-forge::pytorch=2.1=*cuda*" asks for; None if the text is not such a spec."""
    match = re.fullmatch(_SPEC, re.sub(r"\[.*\]$", "", spec.strip()))
    name = normalise(match[1]) if match else ""
    if match is None or name in _NOT_DISTRIBUTIONS:
        return None
    return Requirement(name=_DISTRIBUTIONS.get(name, name), specifier=_specifier(match[2].strip()), source=source)


def _specifier(version: str) -> str:
    """Return conda's version constraint as a specifier; "" for any version and for a form that has none."""
    fuzzy = re.fullmatch(rf"=\s*({_VERSION})(?:=\S+)?|({_VERSION})(?:\s+\S+)?", version)
    if fuzzy:
        number = (fuzzy[1] or fuzzy[2]).rstrip("*").rstrip(".")
        return f"=={number}.*" if fuzzy[1] or "*" in version.split(maxsplit=1)[0] else f"=={number}"
    exact = re.fullmatch(rf"==\s*({_VERSION})(?:=\S+)?", version)
    if exact:
        return f"=={exact[1]}"
    parts = [part.strip() for part in version.split(",")]
    if version and all(re.fullmatch(rf"(?:>=|<=|>|<|!=|==|~=)\s*{_VERSION}", part) for part in parts):
        return ",".join(part.replace(" ", "") for part in parts)
    return ""


def _dependencies(text: str) -> Iterator[tuple[int, int, str]]:
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        content = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if not content:
            continue
        item = re.fullmatch(r"(\s*)-\s+(.*)", content)
        if item is None:
            inside = content.startswith("dependencies:")
        elif inside:
            yield number, len(item[1]), item[2].strip("\"'")
