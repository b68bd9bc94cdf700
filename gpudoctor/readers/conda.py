"""Output of conda, mamba and micromamba (package lists and `conda info`), and environment files."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import CudaVersion, Driver, Package, PackageVersion, Project, Python, Requirement, System, Torch
from gpudoctor.parsers.conda import (
    CondaRecord,
    cuda_major,
    is_cpu_only,
    parse_conda_environment,
    parse_match_spec,
    torch_record,
)
from gpudoctor.probes.workers.python_environment import CONDA_PACKAGES
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import bears_on_gpus, package, package_facts
from gpudoctor.readers.text import Text, name_table, regex

MOST_RECORDS = 2000

_CONDA_NAME = r"[a-z0-9_][a-z0-9_.-]{0,80}"
_CONDA_VERSION = r"\d[\w.!+]{0,40}"
# "py3.8_cpu_0", "py310h5764c6d_1", "hf484d3e_0", "cuda112py38hcad6c5c_1", "0", "cpu", "pypi_0", "<pip>"
_BUILD = r"(?:\w[\w.]{0,60}_\d{1,4}|\w{1,30}h[0-9a-f]{6,9}\S{0,8}|\d{1,3}|cpu|cuda|py\d{1,3}|py\d{2,3}_c\w{2,10}|<pip>)"
_FEATURES = r"(?:\s+\[[\w ,.-]{1,40}\])?"  # "[cpuonly]", which older versions of conda show behind the build
_CHANNEL = r"(?:\s+((?:[\w./:+-]|<|>){1,120}))?"
_ROW = regex(
    rf"^\s*(?:[-+*•]\s+)?({_CONDA_NAME})\s+({_CONDA_VERSION})\s+({_BUILD}){_FEATURES}{_CHANNEL}(?:\s+\S.{{0,60}})?$"
)
_EXPORT = regex(rf"^({_CONDA_NAME})=({_CONDA_VERSION})=({_BUILD})$", "=")
_SOLVED = regex(rf"(?:\S{{1,80}}::|^\s+)({_CONDA_NAME}?)-({_CONDA_VERSION})(?:-|\s+\|\s*)({_BUILD})(?=\s|$)")
_SOLVED_ROW = regex(rf"^\s+({_CONDA_NAME}):?\s+({_CONDA_VERSION})-({_BUILD})(?:\s+\S{{1,80}})?$")
_CHANGED = regex(rf"-->\s+(?:\S{{1,80}}::)?(?:{_CONDA_NAME}?-)?({_CONDA_VERSION})-({_BUILD})(?=\s|$)", "-->")
_CHANGED_NAME = regex(rf"^\s+({_CONDA_NAME}):?\s")
_OBJECT = regex(r"\{[^{}]{20,900}\}")
_LIST = regex(r"[Pp]ackages in environment(?: at)?:? \"?(?!at\b)((?:[A-Za-z]:)?[^\":]{2,200}?)(?:[\":]|\s*$)")
_COLUMNS = regex(r"^[#\s]*Name\s+Version\s+Build(?:\s+Channel)?", "Name")
_COMMAND = regex(r"(?:^|[\s;&|])(?:conda|mamba|micromamba) (?:install|create)\s([^;&|`]{1,600})", "conda|mamba")
_ASKED = regex(
    r"(?:[\w.-]+::)?(?:pytorch|pytorch-cuda|pytorch-gpu|cudatoolkit|cuda-version|cpuonly|cuda|cupy)(?:\W.*)?$"
)


def read(text: Text) -> Facts:
    """Return conda's packages that matter for GPUs, the PyTorch build, and the requested packages."""
    records = list(_records(text))[:MOST_RECORDS]
    facts: Facts = {}
    if any(_bears(record.name) for record in records) or (records and _has_header(text)):
        facts = _facts(records)
        prefix = next((match[1] for match in map(_LIST.search, text.lines) if match), None)
        conda = Python(installer="conda", environment="conda", prefix=prefix, version=_python(records))
        facts = joined({"python": conda}, facts)
    wishes = _wishes(text)
    return joined(facts, {"project": Project(requirements=wishes)}) if wishes else facts


def _records(text: Text) -> Iterator[CondaRecord]:
    """Yield the packages: the solver's choice first, then the list, which wins."""
    yield from _json_packages(text.flat)
    rows: list[CondaRecord] = []
    has_header = _has_header(text)
    for line in text.lines:
        row, solved = _EXPORT.match(line) or _row(line, has_header), _solved(line)
        if row:
            rows.append(CondaRecord(row[1].lower(), row[2], row[3]))
        elif solved:
            yield solved
    yield from rows


def _has_header(text: Text) -> bool:
    return any(_COLUMNS.match(line) or _LIST.search(line) for line in text.lines)


def _row(line: str, has_header: bool) -> re.Match[str] | None:
    """Return the row of a conda list. Without a header a row must have more than name, version and number."""
    match = _ROW.match(line) if not line.lstrip().startswith("- ") else None
    return match if match and (has_header or match[4] is not None or not match[3].isdigit()) else None


def _solved(line: str) -> CondaRecord | None:
    """Return the package in a row of the solver's choice; for "old --> new" the new one."""
    match = _SOLVED_ROW.match(line) or _SOLVED.search(line)
    changed = _CHANGED.search(line)
    name = match or _CHANGED_NAME.match(line)
    if name is None or (match or changed) is None or line.lstrip().startswith("- "):
        return None
    chosen = (changed[1], changed[2]) if changed else (name[2], name[3])
    return CondaRecord(name[1], *chosen)


def _json_packages(flat: str) -> Iterator[CondaRecord]:
    if '"build_string"' not in flat:
        return
    for match in _OBJECT.finditer(flat):
        fields = dict(re.findall(r'"(name|version|build_string)":\s?"([\w.+!-]{1,100})"', match[0]))
        if len(fields) == 3:
            yield CondaRecord(fields["name"], fields["version"], fields["build_string"])


def _facts(records: Sequence[CondaRecord]) -> Facts:
    latest = {record.name: record for record in records}
    kept = [_package(record) for record in latest.values() if _bears(record.name)]
    facts = package_facts(kept)
    if "cupy" in facts and any(name in latest for name in ("cupy", "cupy-core")):
        facts["cupy"] = replace(facts["cupy"], platform="cuda", cuda_major=cuda_major(latest.values()))
    torch = torch_of(latest)
    if torch is not None and torch.version and any(item.name == "torch" and item.installer == "pip" for item in kept):
        return {**facts, "torch": Torch(installed=True)}  # pip overwrote conda's files, or conda pip's
    return joined({"torch": torch}, facts) if torch is not None else facts


def torch_of(records: Mapping[str, CondaRecord]) -> Torch | None:
    """Return the PyTorch section from the names of conda's packages; None without PyTorch."""
    torch, cpu_only = torch_record(records.values()), is_cpu_only(records.values())
    if torch is None:
        return Torch(conda_cpuonly=True, build="cpu" if "_pytorch_select" in records else None) if cpu_only else None
    mutex = next((r.build for name, r in records.items() if name in ("pytorch-mutex", "_pytorch_select")), "")
    build, cuda = _build(torch.build, cpu_only, mutex)
    return Torch(
        installed=True,
        version=PackageVersion(torch.version),
        build=build,
        cuda_version=cuda,
        conda_build=torch.build,
        conda_cpuonly=cpu_only if cpu_only or mutex else None,
    )


def _bears(name: str) -> bool:
    return name.startswith(CONDA_PACKAGES) or bears_on_gpus(name)


def _package(record: CondaRecord) -> Package:
    """Return the package under the distribution name that it installs, as pip and conda both list it."""
    by_pip = record.build == "<pip>" or record.build.startswith("pypi_")
    name = {"pytorch": "torch", "cupy-core": "cupy"}.get(record.name, record.name)
    return package(name, record.version, "pip" if by_pip else "conda")


def _build(build: str, cpu_only: bool, mutex: str) -> tuple[str | None, CudaVersion | None]:
    """Return the build kind and CUDA version from conda's build string.

    The channel pytorch writes "py3.10_cuda11.8_cudnn8.7.0_0", conda-forge "cuda118_py310h..." or "cuda112py38h...".
    """
    if "cpu" in build:
        return "cpu", None
    cuda = re.search(r"cuda_?(\d{1,2})\.(\d)|cuda_?(\d{1,2})(\d)(?=[_p]|$)", build)
    if cuda:
        return "cuda", CudaVersion(int(cuda[1] or cuda[3]), int(cuda[2] or cuda[4]))
    if "cuda" in build or mutex.startswith("cuda"):
        return "cuda", None
    return ("cpu", None) if cpu_only else (None, None)


def _python(records: Sequence[CondaRecord]) -> PackageVersion | None:
    return next((PackageVersion(record.version) for record in records if record.name == "python"), None)


def _wishes(text: Text) -> tuple[Requirement, ...]:
    """Return the requirements of an environment file and of conda's command line."""
    found: list[Requirement] = []
    start = next((n for n, line in enumerate(text.lines) if re.match(r"\s{0,8}dependencies:\s*$", line)), None)
    if start is not None:
        margin = len(text.lines[start]) - len(text.lines[start].lstrip())
        lines = (line[margin:] if line[:margin].isspace() else line for line in text.lines[start : start + 400])
        found += parse_conda_environment("\n" * start + "\n".join(lines), text.name, {})
    for match in filter(None, map(_COMMAND.search, text.lines)):
        words = (word.strip("\"'") for word in match[1].split() if not word.startswith("-"))
        asked = (parse_match_spec(word, "conda's command") for word in words if _ASKED.match(word))
        found += [wanted for wanted in asked if wanted]
    return tuple(item for item in dict.fromkeys(found) if _bears(item.name))[:200]


_LINE = regex(r"^\s{0,20}([a-z][a-z -]{2,25}?) : (\S.{0,300})$")
_VIRTUAL = regex(r"\b__(\w{2,12})=([\w.-]{1,80})")
_AGENT = regex(r"(?:conda|mamba)/\S{1,20} .{0,120}?(Linux|Darwin|Windows)/(\S{1,80})(?: ([a-z]{2,20})/([\w.]{1,12}))?")
_PLATFORMS = name_table("conda_platforms")


def read_info(text: Text) -> Facts:
    """Return the system, the driver's CUDA version and the environment that conda sees."""
    fields = dict(_fields(text))
    virtual = dict(_VIRTUAL.findall(fields.get("virtual packages", "")))
    platform = fields.get("platform", "").strip()
    if platform not in _PLATFORMS or not ("conda version" in fields or virtual or "active environment" in fields):
        return {}
    os, machine = _PLATFORMS[platform]
    agent = _AGENT.search(fields.get("user-agent", ""))
    linux = agent if agent and agent[1] == "Linux" else None
    glibc = re.match(r"\d{1,2}\.\d{1,3}", virtual.get("glibc", ""))
    active, location = (fields.get(name, "").strip() for name in ("active environment", "active env location"))
    facts: Facts = {
        "system": System(
            os=os,
            machine=machine,
            kernel=linux[2] if linux else None,
            distribution=linux[3] if linux else None,
            distribution_version=linux[4] if linux else None,
            glibc=glibc[0] if glibc else None,
        ),
        # The Python version is conda's own, not that of the active environment.
        "python": Python(active_environment="" if active == "None" else location or None),
    }
    cuda = re.match(r"\d{1,2}\.\d{1,2}(?=[=.]|$)", virtual.get("cuda", ""))
    if cuda:
        facts["driver"] = Driver(cuda_version=CudaVersion.parse(cuda[0]))
    return facts


def _fields(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the lines "name : value"; the virtual packages continue on further lines."""
    if '"conda_version"' in text.flat and '"platform"' in text.flat:
        yield from _json(text.raw)
    name, value = "", ""
    for line in text.lines:
        match = _LINE.match(line)
        if match:
            yield name, value
            name, value = match[1].strip(), match[2]
        elif name == "virtual packages" and re.match(r"^\s+__\w", line):
            value = f"{value} {line.strip()}"
    yield name, value


def _json(raw: str) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(raw[raw.index("{") : raw.rindex("}") + 1])
    except (ValueError, RecursionError):
        return
    if isinstance(content, dict):
        yield "platform", str(content.get("platform"))
        yield "conda version", str(content.get("conda_version"))
        yield "user-agent", str(content.get("user_agent") or "")[:400]
        virtual = content.get("virtual_pkgs")
        listed = virtual if isinstance(virtual, list) else []
        pairs = [item for item in listed if isinstance(item, list) and len(item) >= 2]
        yield "virtual packages", " ".join(f"{pair[0]}={pair[1]}"[:120] for pair in pairs[:40])
