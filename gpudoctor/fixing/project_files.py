"""Files of a project that ask for something else than what is installed: what to change in them, as a diff.

Only versions, addresses of PyTorch's indexes and one line of a compose file change; comments and formatting stay.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gpudoctor.data.torch_builds import INDEX
from gpudoctor.errors import UsageError
from gpudoctor.files import read_bounded, write_whole
from gpudoctor.fixing.resolution import Change, Pin, Resolution
from gpudoctor.model.record import record
from gpudoctor.trust import refuse_links_of_others

PATTERNS = ("requirements*.txt", "requirements*.in", "constraints*.txt", "pyproject.toml", "Dockerfile*")
COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
_INCLUDED = r"(?m)^[ \t]*(?:-r|-c|--requirement|--constraint)[ =]*([^\s#=][^\s#]*)"
_MOST_BYTES, _MOST_FILES = 1 << 20, 50
_VARIANT = rf"({re.escape(INDEX)}/)(cpu|cu\d+|rocm[\d.]+|xpu)(?![\w.]|/\S*\.whl)"
_BUILD = r"\d[\d.]*(?:\+|%2[Bb])(cpu|cu\d+|rocm[\d.]+|xpu)\b"


@record
class FileEdit:
    """A file of the project, before and after."""

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> tuple[str, ...]:
        """Return the lines of a unified diff."""
        before, after, name = self.before.splitlines(), self.after.splitlines(), self.path.name
        return tuple(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""))

    def write(self) -> None:
        """Change the file. Raises UsageError: it is not what it was, or cannot be written."""
        self._replace(self.before, self.after)

    def restore(self) -> None:
        """Change the file back. Raises UsageError: it was changed since, or cannot be written."""
        if _read(self.path) != self.before:
            self._replace(self.after, self.before)

    def _replace(self, expected: str, text: str) -> None:
        if _read(self.path) != expected:
            raise UsageError(f"{self.path} changed meanwhile, and was left alone: run gpudoctor fix again")
        write_whole(self.path, text)


def refuse_unwritable(edits: Sequence[FileEdit]) -> None:
    """Refuse before anything changes. Raises UsageError: the folder of a file cannot be written."""
    for edit in edits:
        folder = os.path.dirname(os.path.realpath(edit.path))
        if not os.access(folder, os.W_OK):
            raise UsageError(f"cannot write {edit.path}: {folder} cannot be written. Nothing was changed")


def edits_of(resolution: Resolution | None, services: Sequence[str], folder: Path) -> tuple[FileEdit, ...]:
    """Return the changes to the files of a project.

    services: of its compose file, that are to get the GPU.
    """
    return tuple(edit for edit in _edits(resolution, services, folder) if edit.before != edit.after)


def _edits(resolution: Resolution | None, services: Sequence[str], folder: Path) -> Iterator[FileEdit]:
    pins, builds = (resolution.pins, _builds(resolution.changes)) if resolution is not None else ((), {})
    for path in _files(folder):
        text = _read(path)
        if text is not None:
            edit = FileEdit(path=path, before=text, after=with_versions(text, pins, builds))
            yield _refuse_half(_refuse_hashes(edit), pins)
    compose = _compose(folder)
    text = _read(compose) if compose is not None and services else None
    if compose is not None and text is not None:
        after = text
        for service in services:
            after = with_gpu(after, service)
        yield FileEdit(path=compose, before=text, after=after)


def _compose(folder: Path) -> Path | None:
    return next((folder / name for name in COMPOSE if (folder / name).is_file()), None)


def _files(folder: Path) -> list[Path]:
    """Return the files that may name versions, and the project files that a requirements file includes."""
    found = {path for pattern in PATTERNS for path in folder.glob(pattern)}
    unread = [path for path in found if path.suffix in (".txt", ".in")]
    while unread and len(found) < _MOST_FILES:
        path = unread.pop()
        for name in re.findall(_INCLUDED, _read(path) or ""):
            included = Path(os.path.normpath(path.parent / name))
            if included.is_relative_to(folder) and included not in found and included.is_file():
                found.add(included)
                unread.append(included)
    return sorted(found)


def _refuse_hashes(edit: FileEdit) -> FileEdit:
    """Return the edit. Raises UsageError: the file has package hashes, which do not fit other versions."""
    if edit.before != edit.after and "--hash=" in edit.before:
        raise UsageError(
            f"{edit.path.name} has package hashes, and gpudoctor does not know those of other versions."
            " Generate the file again with its own tool (pip-compile, uv export). Nothing was changed"
        )
    return edit


def _refuse_half(edit: FileEdit, pins: Sequence[Pin]) -> FileEdit:
    """Return the edit. Raises UsageError: a line still asks for another build, and would go with a changed one."""
    variant = _variant_of(pins)
    if variant and edit.before != edit.after:
        for number, line in enumerate(edit.after.splitlines(), 1):
            asked = re.search(_BUILD, _code_and_comment(line)[0])
            if asked and asked[1] != variant:
                raise UsageError(
                    f"{edit.path.name}, line {number}, asks for another build ({asked[0]}) in a way that gpudoctor does"
                    f" not change: write {variant} there first, or leave out --project. Nothing was changed"
                )
    return edit


def _builds(changes: Sequence[Change]) -> dict[str, str]:
    """Return the versions that name a build, and what each becomes: also where no package is named with them."""
    found = {(c.before, c.after) for c in changes if c.before and c.after and "+" in c.before and c.before != c.after}
    befores = [before for before, _ in found]
    return {before: after for before, after in found if befores.count(before) == 1}


def unread_files(services: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield a sentence for each file of a project that would be changed if it could be read."""
    for path in (*_files(folder), *filter(None, [_compose(folder) if services else None])):
        why = "" if path.is_dir() else _unread_because(path)
        if why:
            yield f"{path.name} was not read, and stays as it is: {why}"


def _unread_because(path: Path) -> str:
    try:
        _load(path)
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except OSError as error:
        return str(error.strerror)
    except (ValueError, UsageError) as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


def _read(path: Path) -> str | None:
    """Return the text of a file; None if it is none that gpudoctor may change."""
    try:
        return _load(path)
    except (OSError, ValueError, UsageError):
        return None


def _load(path: Path) -> str:
    refuse_links_of_others(path)
    return read_bounded(path, _MOST_BYTES).decode("utf-8")


def with_versions(text: str, pins: Sequence[Pin], builds: Mapping[str, str] | None = None) -> str:
    """Return the text of a requirements file, pyproject.toml or Dockerfile with versions that contradict no pin.

    A version that the pin satisfies stays, and so does everything in a comment. builds: a version that names a build
    → what it becomes, also in an argument or a table.
    """
    return "".join(_with_versions(line, pins, builds or {}) for line in text.splitlines(keepends=True))


def _code_and_comment(line: str) -> tuple[str, str]:
    match = re.match(r"((?:(?!(?:^|\s)#).)*)(.*)", line, re.DOTALL)
    return (match[1], match[2]) if match else (line, "")


def _with_versions(line: str, pins: Sequence[Pin], builds: Mapping[str, str]) -> str:
    code, comment = _code_and_comment(line)
    for pin in pins:
        name = re.sub(r"[-_.]+", "[-_.]+", re.escape(pin.name).replace("\\-", "-"))

        def replaced(match: re.Match[str], version: str = pin.version) -> str:
            return match[0] if _is_met(match[2], version) else f"{match[1]}{version}"

        code = re.sub(rf"(?i)((?<![\w.-]){name}(?:\[[\w, -]*\])?\s*===?\s*)([\w.+*]+)", replaced, code)
    for before, after in builds.items():
        code = re.sub(rf"(?<![\w.+-]){re.escape(before)}(?![\w.+-])", after, code)
    variant = _variant_of(pins)
    if variant:
        code = re.sub(_VARIANT, rf"\g<1>{variant}", code)
    return code + comment


def _variant_of(pins: Sequence[Pin]) -> str:
    return next(filter(None, map(_variant, pins)), "")


def _variant(pin: Pin) -> str:
    """Return the build of PyTorch that a pin names, as its index has it."""
    match = re.search(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)$", pin.version) if pin.name == "torch" else None
    return match[1] if match else ""


def _is_met(asked: str, version: str) -> bool:
    try:
        return SpecifierSet(f"=={asked}").contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def with_gpu(text: str, service: str) -> str:
    """Return the text of a compose file in which the service asks for all GPUs.

    Source: "gpus" in https://docs.docker.com/reference/compose-file/services/ (from compose 2.30 on)
    """
    lines = text.splitlines(keepends=True)
    top = next((n for n, line in enumerate(lines) if re.match(r"services:\s*(#.*)?$", line)), None)
    if top is None:
        return text
    name = re.compile(rf"""(\s+)(?P<quote>["']?){re.escape(service)}(?P=quote):\s*(#.*)?$""")
    end = next((n for n, line in enumerate(lines) if n > top and re.match(r"[^\s#]", line)), len(lines))
    first = next((_indent(line) for line in lines[top + 1 : end] if re.match(r"\s+[^\s#]", line)), 0)
    found = next((n for n in range(top + 1, end) if name.match(lines[n]) and _indent(lines[n]) == first), None)
    if found is None:
        return text
    outer = _indent(lines[found])
    inside = [line for line in _block(lines[found + 1 : end], outer) if line.strip() and line.strip()[0] != "#"]
    if not inside or any(re.match(r"\s+(gpus|deploy|runtime|<<)\s*:", line) for line in inside):
        return text  # what is there already may ask for GPUs in another way
    ending = "\r\n" if lines[found].endswith("\r\n") else "\n"
    return "".join((*lines[: found + 1], f"{' ' * _indent(inside[0])}gpus: all{ending}", *lines[found + 1 :]))


def _block(lines: Sequence[str], outer: int) -> Iterator[str]:
    for line in lines:
        if line.strip() and not line.strip().startswith("#") and _indent(line) <= outer:
            return
        yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
