"""The report of `python -m torch.utils.collect_env`, of every layout since 2018, and vLLM's collect_env.py."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpudoctor.data.environment_variables import environment_variables
from gpudoctor.model import Device, Environment, Package, System, Torch, TorchRuntime
from gpudoctor.parsers.conda import CondaRecord
from gpudoctor.parsers.requirements_files import normalise
from gpudoctor.readers import environment_fields as values
from gpudoctor.readers.conda import torch_of
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.package_facts import NAME, VERSION, bears_on_gpus, package, package_facts
from gpudoctor.readers.platform_facts import distribution_facts, platform_facts
from gpudoctor.readers.text import Text, name_table
from gpudoctor.untrusted import LONGEST_LINE

MOST_LINES = 4000  # of one report; vLLM's has some hundred

_TELLING = name_table("collect_env")  # names of its fields
# Names that other texts use too: they count only with a colon and inside a report.
_PLAIN = ("OS", "CPU", "Architecture", "GPU Topology")
_LABEL = re.compile(
    r"^\W{0,12}(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z\s)?\W{0,6}"
    rf"(?:({'|'.join(_TELLING)})(?:\s?\([^()\n]{{1,40}}\))?(?:\s*[:=]\s*|\s+(?=\S)|\s*$)"
    rf"|({'|'.join(_PLAIN)})\s*:\s*)(.*)$",
    re.IGNORECASE,
)
# A report whose line breaks were lost: a field's name with its colon in the middle of a line.
_INLINE = re.compile(rf"(?<=\S)\s+(?=(?:{'|'.join(_TELLING)}|OS)(?:\s?\([^()\n]{{1,40}}\))?\s?:)", re.IGNORECASE)
_INLINE_PACKAGE = re.compile(r"(?<=\S)\s+(?=\[(?:pip3?|conda)\]\s)|(?<=\S)\s+(?=GPU \d{1,3}: )")
_PACKAGE = re.compile(r"^\W{0,8}\[(pip3?|conda|uv)\]\s*(\S.*)$")
# A command that sets a variable for itself has blanks after the value; a constraint contains blanks.
_VARIABLE = re.compile(r"^\s*(NVIDIA_REQUIRE_CUDA(?==)|[A-Z][A-Z0-9_]{2,60}(?==\S*$))=(.*)$")
_FEWEST = 2  # a text with this many fields is such a report
_ENOUGH = {"pytorch version", "cuda used to build pytorch", "is cuda available"}  # or one of these
# Fields that other reports have too, such as cupy.show_config().
_SHARED = {"python version", "cuda runtime version", "gcc version", "cmake version"}
_BEFORE_PYTORCH = {"os", "gcc version", "clang version", "cmake version", "libc version", "cpu", "architecture"}


class _Report:
    """One report.

    fields: lower-case name → value. gpus: the lines after the list of GPUs. packages: tool and entry. last: the line of
    the last field or package. has_ended_packages: other lines come after a list of packages.
    """

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.gpus: list[str] = []
        self.packages: list[tuple[str, str]] = []
        self.variables: dict[str, str] = {}
        self.last = ""
        self.has_ended_packages = False

    def end_packages(self) -> None:
        self.has_ended_packages = self.has_ended_packages or bool(self.packages)


def read(text: Text) -> Facts:
    """Return the facts of the last report in the text; {} without a report."""
    reports = [report for report in _reports(text) if _is_one(report)]
    if not reports:
        return {}
    most = max(len(report.fields) for report in reports)
    report = next(report for report in reversed(reports) if 2 * len(report.fields) >= most)
    if report.last == text.lines[-1]:  # its value may be cut off
        _without_stumps(report)
    if text.lines[-1].startswith("NVIDIA_REQUIRE_CUDA"):  # any of its alternatives is enough: the last may be cut off
        report.variables.pop("NVIDIA_REQUIRE_CUDA", None)
    return _facts(report)


def _without_stumps(report: _Report) -> None:
    """Remove the value at the end of the text if it may be cut off."""
    name, value = list(report.fields.items())[-1]
    package = _PACKAGE.match(report.last)
    if package and re.search(r"(?:==\s?\d*(?:\.\d*)?\.?|\+(?:cu?\d{0,2}|cp)?)$|^[^=\s]*=?$", package[2]):
        report.packages.pop()
    elif not package and name == "pytorch version" and values.torch_version(value, may_be_cut=True) is None:
        report.fields[name] = value.partition("+")[0] if "+" in value else ""
    elif not package and name == "python version" and re.fullmatch(r"\d\.?\d?", value):
        del report.fields[name]


def _is_one(report: _Report) -> bool:
    telling = report.fields.keys() - {name.lower() for name in _PLAIN}
    if telling <= _SHARED:
        return False
    return len(telling) >= _FEWEST or bool(telling & _ENOUGH)


def _reports(text: Text) -> Iterator[_Report]:
    """Yield the reports: a repeated field begins the next one."""
    report, field = _Report(), ""
    for line in _lines(text):
        match = _LABEL.match(line)
        if match:
            name = re.sub(r"^versions? of", "versions of", (match[1] or match[2]).lower())
            again = name in report.fields and name not in ("os", "cpu", "architecture")
            # PyTorch's version is the first field; in vLLM's report it follows the system.
            if again or (name == "pytorch version" and not report.fields.keys() <= _BEFORE_PYTORCH):
                yield report
                report = _Report()
            if report.fields.keys() <= {"os"}:  # an issue's own "OS:" may precede the report's
                report.fields.pop(name, None)
            report.fields.setdefault(name, match[3].strip())
            report.last = line
            field = name
            report.end_packages()
            continue
        _take(line, report, field)
    yield report


def _lines(text: Text) -> Iterator[str]:
    for line in text.lines:
        parts = _INLINE.split(line) if len(line) > 60 else [line]
        if len(parts) > 1 or "] " in line:
            parts = [piece for part in parts for piece in _INLINE_PACKAGE.split(part)]
        yield from parts


def _take(line: str, report: _Report, field: str) -> None:
    packaged = _PACKAGE.match(line)
    if not report.fields and not packaged:
        return
    variable = _VARIABLE.match(line)
    if packaged:
        if report.packages and report.packages[-1][0] != packaged[1]:
            report.end_packages()
        report.packages.append((packaged[1], packaged[2]))
        report.last = line
    elif line.strip():
        report.end_packages()
    if variable and len(report.variables) < MOST_LINES and len(line) < LONGEST_LINE:
        report.variables.setdefault(variable[1], variable[2].strip())
    elif field == "gpu models and configuration" and len(report.gpus) < MOST_LINES:
        report.gpus.append(line)


def _facts(report: _Report) -> Facts:
    facts = _environment(report)
    return joined(facts, _packages(report, facts), _variables(report))


def _environment(report: _Report) -> Facts:
    """Return the facts in the fields. A PyTorch version of "N/A" means that PyTorch could not be imported."""
    fields = report.fields
    said = {
        "torch": fields.get("pytorch version"),
        "cuda": fields.get("cuda used to build pytorch"),
        "hip": fields.get("rocm used to build pytorch") or fields.get("hip runtime version"),
        "available": fields.get("is cuda available"),
        "python": fields.get("python version"),
        "driver": fields.get("nvidia driver version"),
        "nvcc": fields.get("cuda runtime version"),
        "gcc": fields.get("gcc version"),
    }
    facts = values.environment_facts(said, system=_system(fields), devices=_devices(report))
    torch: Torch | None = facts.get("torch")
    if torch is not None and torch.build == "cpu":
        facts["torch"] = replace(torch, build=_build_without_cuda(fields))
    elif torch is None and re.match(r"n/a\b", fields.get("pytorch version", "").strip().lower()):
        facts = joined(_not_imported(report), facts)
    return facts


def _build_without_cuda(fields: Mapping[str, str]) -> str:
    if values.answer(fields.get("is xpu available", "")) or fields.get("xpu used to build pytorch", "")[:2].isdigit():
        return "xpu"
    system = platform_facts(fields.get("python platform", "")) or distribution_facts(fields.get("os", ""))
    apple_silicon = system is not None and system.os == "darwin" and system.machine == "arm64"
    return "mps" if apple_silicon else "cpu"


def _not_imported(report: _Report) -> Facts:
    """Return PyTorch as not importable: not installed if pip's whole list lacks it, otherwise broken."""
    names = {normalise(re.split(r"[=\s@]", entry, maxsplit=1)[0]) for _, entry in report.packages}
    listed = any(tool != "conda" and not values.is_unknown(entry) for tool, entry in report.packages)
    if listed and report.has_ended_packages and not names & {"torch", "pytorch", "pytorch-cpu", "pytorch-gpu"}:
        return {"torch": Torch(installed=False)}
    return {"torch_runtime": TorchRuntime(import_error="PyTorch version: N/A (collect_env could not import torch)")}


def _system(fields: Mapping[str, str]) -> System | None:
    python = values.release_of(values.python_facts(fields.get("python version", "")))
    processor = re.fullmatch(r"x86_64|aarch64|arm64|ppc64le", fields.get("architecture", "").strip())
    # Python 3.7 and older report the oldest glibc that the interpreter needs.
    libc = re.fullmatch(r"glibc-(\d\.\d{2})", fields.get("libc version", "").strip()) if python[:2] >= (3, 8) else None
    # AMD GPUs: "AMD Instinct MI300X (gfx942:sramecc+:xnack-)"
    targets = re.findall(r"\bgfx\d{3,4}[a-f]?\b", fields.get("gpu models and configuration", ""))
    others = System(
        glibc=libc[1] if libc else None,
        machine=processor[0] if processor else None,
        amd_gfx_targets=tuple(dict.fromkeys(targets))[:8] or None,
    )
    parts = (
        distribution_facts(fields.get("os", "")),
        platform_facts(fields.get("python platform", ""), python),
        others,
    )
    system: System = joined(*(sections(system=system) for system in parts))["system"]
    return system if system != System() else None


def _devices(report: _Report) -> tuple[Device, ...]:
    value = report.fields.get("gpu models and configuration", "")
    numbered = values.numbered_gpus([value, *report.gpus])
    if numbered:
        return numbered
    names = [part for part in re.split(r"\s*(?:,|;| and )\s*", value[:400]) if part]
    return values.named_gpus(names or [line for line in report.gpus if line.strip()][:8])


def _packages(report: _Report, facts: Facts) -> Facts:
    records = list(_conda_records(report))
    of_conda = {record.name: record for record in records if record.build != "<pip>"}
    installers = {_distribution(record.name): "pip" if record.build == "<pip>" else "conda" for record in records}
    found: list[Package] = []
    for tool, entry in report.packages:
        pair = re.match(rf"({NAME})\s?==\s?({VERSION})(?![\w.+-])", entry) if tool != "conda" else None
        if pair:
            found.append(package(pair[1], pair[2], installers.get(normalise(pair[1]), "")))
    for record in records:
        name = _distribution(record.name)
        found.append(package(name, record.version, installers[name]))
    engine = re.match(r"\d{1,3}(?:\.\d{1,4}){2}[\w.+]{0,60}", report.fields.get("vllm version", ""))
    if engine:
        found.append(package("vllm", engine[0]))
    first = {item.name: item for item in reversed(found) if bears_on_gpus(item.name)}
    listed = package_facts(list(first.values())[::-1])
    if facts.get("torch") == Torch(installed=False):
        listed.pop("torch", None)
    torch = torch_of(of_conda)  # of a whole list
    return joined(listed, {"torch": replace(torch, conda_cpuonly=torch.conda_cpuonly or False)} if torch else {})


def _conda_records(report: _Report) -> Iterator[CondaRecord]:
    """Yield the packages in "pytorch  1.13.0  py3.9_cuda11.6_0  pytorch"; the build is "<pip>" for one of pip."""
    for tool, entry in report.packages:
        match = re.match(rf"\s*({NAME})\s+({VERSION})\s+(\S.*)", entry) if tool == "conda" else None
        if match:
            of_pip = re.search(r"(?:^|\s)(?:<pip>|pypi)", match[3])
            build = of_pip or re.match(r"[\w.+]{1,100}(?!\S)", match[3])
            if build:
                yield CondaRecord(match[1].lower(), match[2], "<pip>" if of_pip else build[0])


def _distribution(name: str) -> str:
    return "torch" if name in ("pytorch", "pytorch-gpu", "pytorch-cpu") else normalise(name)


def _variables(report: _Report) -> Facts:
    names = environment_variables()
    variables = {name: value for name, value in report.variables.items() if name in names}
    loading = report.fields.get("cuda_module_loading set to", "").upper()
    if loading in ("LAZY", "EAGER"):
        variables.setdefault("CUDA_MODULE_LOADING", loading)
    return {"environment": Environment(variables=variables)} if variables else {}
