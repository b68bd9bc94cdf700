"""Lists of Python packages that pip, uv and Poetry print, and what pip says while it installs."""

import itertools
import re
from collections.abc import Iterator, Sequence

from gpudoctor.model import Package, PackageVersion, Project, Python, Requirement, System
from gpudoctor.parsers.requirements_files import normalise, parse_requirement
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import NAME, VERSION, bears_on_gpus, package, package_facts, packages_of
from gpudoctor.readers.text import Text, name_table, regex

FEWEST_OF_A_WHOLE_LIST = 12

_HEADER = regex(r"^\s*Package\s{1,80}Version\b")
_RULE = regex(r"^\s*-{3,}\s+-{3,}[\s-]*$")
_ROW = regex(rf"^\s*({NAME})\s+(?:\(!\)\s+)?({VERSION})(?:\s+(\S.*))?$")
# Without a header: columns set apart by two blanks, or a name that everybody knows.
_COLUMNS = regex(rf"^\s*(?:[-*•|]\s+)?({NAME})(?:\s{{2,}}|\s*\|\s*)({VERSION})(?:\s*\|?\s*|\s{{2,}}([/~A-Z(].*))$")
_KNOWN = regex(
    r"^\s*(?:[-*•]\s+)?(torch|torchvision|torchaudio|triton|xformers|numpy|flash[-_]attn|bitsandbytes|vllm|tensorflow"
    r"|pynvml|nvidia-ml-py|cupy|cupy-cuda\d{2,3}x?|nvidia-[a-z0-9-]{3,40}-cu1\d|mmcv(?:-full)?|deepspeed|onnxruntime-gpu)"
    rf"\s+({VERSION})$"
)
_PINNED = regex(rf"^\s*([-+~*•]\s+)?({NAME})(?:\[[\w,.-]{{1,80}}\])?={{2,3}}({VERSION})$", "==")
_DIRECT = regex(rf"^\s*({NAME})\s@\s\S+/{NAME}-(\d[\w.!+%]{{0,80}})-[\w.-]{{5,80}}\.whl(?:#\S*)?$", ".whl")
# Only a requirements file contains these, never a list of installed packages.
_WISH = regex(
    rf"^\s*(?:-r\s|-c\s|-i\s|--(?:extra-)?index-url|--find-links|{NAME}(?:\[[\w,.-]{{1,80}}\])?\s*(?:[<>]=?|~=|!=)\s*\d"
    rf"|{NAME}==\S+\s*(?:;|--hash|\\$|#)|{NAME}\s*==\s+\d)"
)
_WISH_TITLE = regex(r"(?i)requirements?(?:[\w-]{0,30})?\.(?:txt|in)\b|install_requires|dependencies")
_INSTALLED = regex(rf"Successfully installed((?:\s{NAME}-{VERSION}(?=\s|$)){{1,400}})", "Successfully installed")
_SATISFIED = regex(
    rf"Requirement already satisfied: ({NAME})[^ ]{{0,120}}(?: in (\S{{1,300}}))?"
    rf"(?: \(from .{{1,200}}?\))? \(({VERSION})\)"
)
_REMOVED = regex(rf"Successfully uninstalled ({NAME})-({VERSION})(?=\s|$)", "Successfully uninstalled")
_WHEEL = regex(
    rf"(?:(?:Using cached|Downloading|Processing|pip3? install)\s)(?:[^\s]{{0,300}}/)?({NAME})"
    r"-(\d[\w.!]{0,40}(?:(?:\+|%2B)[\w.]{1,60})?)"
    r"-(cp|py|pp)(\d{1,4})(?:\.[\w.]{1,20})?-([\w.]{2,40})-([\w.]{3,120})\.whl"
)
_OBJECT = regex(rf'\{{\s?"name":\s?"({NAME})",\s?"version":\s?"({VERSION})"', '"name"')
_SHOW = regex(r"^\s*(Name|Version|Location|Installer): (\S.*)$")
_FAILED = regex(r"ERROR: (?!pip's dependency resolver)|error: subprocess-exited|is not a supported wheel")
_PLATFORMS = name_table("wheel_platforms")


def read(text: Text) -> Facts:
    """Return the packages that matter for GPUs, and the facts that follow from them."""
    tables = list(_tables(text.lines))
    rows = ((row[1], row[2], row[3] or "") for table in tables for row in table if bears_on_gpus(row[1]))
    found = [package(name, version, location=_folder(rest)) for name, version, rest in rows]
    wishes: list[Requirement] = []
    for filled, lines in itertools.groupby(text.lines, key=lambda line: bool(line.strip())):
        block = list(lines) if filled else []
        wanted = _wishes(block, text.name)
        wishes += wanted
        found += [] if wanted else list(_loose(block))
    found += _shown(text.lines)
    found += packages_of((match[1], match[2]) for match in _OBJECT.finditer(text.flat))
    found = [*_downloaded(text), *found, *_from_messages(text)]
    gone = _gone(text)
    found = [item for item in found if (item.name, item.version.text) not in gone]
    listed = ([row[1] for row in table] for table in reversed(tables))
    names = next(filter(_is_whole, listed), [])
    facts = package_facts(found, whole=[*names, *(item.name for item in found)], complete=bool(names))
    facts = joined(facts, _platform(text))
    return joined(facts, {"project": Project(requirements=tuple(wishes[:200]))}) if wishes else facts


def _tables(lines: Sequence[str]) -> Iterator[list[re.Match[str]]]:
    """Yield the rows of each table with pip's header, up to the first line that is not a row."""
    for start, line in enumerate(lines[:-1]):
        if _HEADER.match(line):
            first = start + (2 if _RULE.match(lines[start + 1]) else 1)
            yield [row for row in itertools.takewhile(bool, map(_ROW.match, lines[first : first + 3000])) if row]


def _folder(rest: str) -> str:
    """Return the folder in the third column; `pip list -v` prints the installer after it."""
    match = re.match(r"(/\S{1,300}|[A-Za-z]:\\[^\n]{1,300}?)(?:\s{1,40}\w{2,12})?$", rest)
    return match[1].strip() if match else ""


def _is_whole(names: Sequence[str]) -> bool:
    """Return whether the list, in pip's order, is complete from before "cupy" to after "torch"."""
    plain = [normalise(name) for name in names]
    return (
        len(plain) >= FEWEST_OF_A_WHOLE_LIST
        and all(one <= other for one, other in itertools.pairwise(plain))
        and plain[0] < "cupy"
        and plain[-1] > "torchz"
    )


def _wishes(block: Sequence[str], source: str) -> list[Requirement]:
    """Return the requirements, if the lines are a requirements file and not a list of installed packages."""
    pinned = sum(bool(_PINNED.match(line)) for line in block)
    wishing = sum(bool(_WISH.match(line)) for line in block)
    titled = any(_WISH_TITLE.search(line) and not _PINNED.match(line) for line in block[:2])
    if not wishing and not (titled and pinned):
        return []
    lines = (line.strip().lstrip("-*• ") for line in block if _WISH.match(line) or _PINNED.match(line))
    read = (parse_requirement(re.sub(r"\s*(?:;.*|\\)$", "", line), source, {}) for line in lines)
    return [item for item in read if item is not None and bears_on_gpus(item.name)]


def _loose(block: Sequence[str]) -> Iterator[Package]:
    """Yield packages from single lines: `pip freeze`, a part of `pip list`, uv's changes."""
    changes = any(line.lstrip().startswith("+ ") and _PINNED.match(line) for line in block)
    for line in block:
        pinned = _PINNED.match(line)
        if pinned:
            removed = changes and (pinned[1] or "").strip() in ("-", "~")
            if not removed and bears_on_gpus(pinned[2]):
                yield package(pinned[2], pinned[3])
            continue
        direct = _DIRECT.match(line)
        row = _COLUMNS.match(line) or _KNOWN.match(line)
        if direct and bears_on_gpus(direct[1]):
            yield package(direct[1], direct[2].replace("%2B", "+"))
        elif row and bears_on_gpus(row[1]) and _is_version(row[2]):
            yield package(row[1], row[2])


def _is_version(text: str) -> bool:
    """Return whether the text is a package version: "2.1.2", but not "12345" or "3D"."""
    return re.match(r"\d{1,4}(?:\.\d+)+|20\d{6}", text) is not None


def _shown(lines: Sequence[str]) -> Iterator[Package]:
    fields: dict[str, str] = {}
    for line in [*lines, "Name: end"]:
        match = _SHOW.match(line)
        if not match:
            continue
        if match[1] == "Name":
            name, version = fields.get("Name", ""), fields.get("Version", "")
            if re.fullmatch(NAME, name) and re.fullmatch(VERSION, version) and bears_on_gpus(name):
                yield package(name, version, fields.get("Installer", "")[:20], fields.get("Location", "")[:300])
            fields = {}
        fields.setdefault(match[1], match[2].strip())


def _from_messages(text: Text) -> Iterator[Package]:
    for match in _SATISFIED.finditer(text.flat):
        if bears_on_gpus(match[1]):
            yield package(match[1], match[3], location=match[2] or "")
    words = (word for match in _INSTALLED.finditer(text.flat) for word in match[1].split())
    pairs = (re.fullmatch(rf"({NAME})-({VERSION})", word) for word in words)
    yield from packages_of((pair[1], pair[2]) for pair in pairs if pair)


def _gone(text: Text) -> set[tuple[str, str]]:
    gone = {(normalise(m[1]), m[2]): m.start() for m in _REMOVED.finditer(text.flat)}
    for match in _INSTALLED.finditer(text.flat):
        for word in match[1].split():
            name, _, version = word.rpartition("-")
            if gone.get((normalise(name), version), match.end()) < match.start():
                del gone[normalise(name), version]
    return set(gone)


def _downloaded(text: Text) -> Iterator[Package]:
    for match in _WHEEL.finditer(text.flat):
        if bears_on_gpus(match[1]) and not _FAILED.search(text.flat, match.end()):
            yield package(match[1], match[2].replace("%2B", "+"))


def _platform(text: Text) -> Facts:
    """Return Python version, system and processor from the tags of the wheel that pip chose."""
    facts: Facts = {}
    for match in _WHEEL.finditer(text.flat):
        if "is not a supported wheel" in text.flat[match.end() : match.end() + 40] or match[0].startswith("pip"):
            continue
        if match[3] == "cp" and match[5].startswith("cp") and len(match[4]) > 1:
            facts = joined(facts, {"python": Python(version=PackageVersion(f"{match[4][0]}.{match[4][1:]}"))})
        for pattern, os, machine in _PLATFORMS:
            if re.search(pattern, match[6]):
                facts = joined(facts, {"system": System(os=os, machine=machine)})
                break
    return facts
