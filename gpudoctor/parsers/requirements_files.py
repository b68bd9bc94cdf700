"""Files in which a Python project says what it needs: requirements.txt, pyproject.toml and setup.cfg.

A line that cannot be read is skipped, and so is one whose marker is for another platform.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.model import Requirement

_WHEEL = (
    r"(?:^|[/=])([A-Za-z0-9][A-Za-z0-9._]*)-([0-9][A-Za-z0-9._!+]*|[0-9][A-Za-z0-9._!]*%2B[A-Za-z0-9._]*)-[^/]*\.whl"
)
# What most lines are: name, extras, versions. The library packaging is imported for the others only: it takes 20 ms.
_VERSION = r"\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?"
_ENDING = r"(?:\.\*|\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
_CLAUSE = rf"(?:(?:>=|<=|>|<)\s*{_VERSION}|~=\s*(?=\d+\.){_VERSION}|(?:==|!=)\s*{_VERSION}{_ENDING})"
_PLAIN = rf"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[[\w., -]*\])?\s*((?:{_CLAUSE}(?:\s*,\s*{_CLAUSE})*)?)"
# What a marker may ask for in a lock file: packaging 25 raises KeyError for them elsewhere.
_NO_EXTRAS: Mapping[str, frozenset[str]] = {"extras": frozenset(), "dependency_groups": frozenset()}


def normalise(name: str) -> str:
    """Return the name of a distribution in lower case with hyphens (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()  # as the library packaging does, which takes 20 ms to import


def parse_requirements_txt(text: str, source: str, platform: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the packages that a requirements file names. Options and included files are skipped.

    source: name of the file. platform: values of the markers that the machine decides, such as `sys_platform`.
    """
    found = (
        parse_requirement(line, f"{source} line {number}", platform)
        for number, line in logical_lines(text)
        if not line.startswith("-")
    )
    return tuple(requirement for requirement in found if requirement)


def parse_requirement(line: str, source: str, platform: Mapping[str, str]) -> Requirement | None:
    """Return what "torch>=2.4; sys_platform == 'linux'" asks for; None for another platform's and a bad line."""
    line = re.split(r"\s--?[a-z]", line, maxsplit=1)[0].strip()  # --hash and other options of one line
    plain = re.fullmatch(_PLAIN, line, re.ASCII)
    if plain:
        return Requirement(name=normalise(plain[1]), specifier=re.sub(r"\s", "", plain[2]), source=source)
    wheel = re.search(_WHEEL, line)
    if wheel and "@" not in line.partition("://")[0]:
        version = wheel[2].replace("%2B", "+")
        return Requirement(name=normalise(wheel[1]), specifier=f"=={version}", source=source)
    return _parse_whole(line, source, platform)


def _parse_whole(line: str, source: str, platform: Mapping[str, str]) -> Requirement | None:
    from packaging.requirements import Requirement as Line

    try:
        parsed = Line(line)
        if parsed.marker and not parsed.marker.evaluate({**platform, **_NO_EXTRAS}):
            return None
    except (ValueError, RecursionError):
        return None
    return Requirement(name=normalise(parsed.name), specifier=str(parsed.specifier), source=source)


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines (continued lines joined, no comments), each with the number of its first line."""
    start, pending = 0, ""
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        if not pending:
            start = number
        stripped = re.sub(r"(^|\s)#.*$", "", line)
        if stripped.endswith("\\"):
            pending += stripped[:-1]
            continue
        whole, pending = (pending + stripped).strip(), ""
        if whole:
            yield start, whole
    if pending.strip():
        yield start, pending.strip()


def parse_pyproject(text: str, platform: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the packages in [project], its extras, [dependency-groups] and [tool.poetry].

    Raises:
        ValueError: the text is not TOML.
    """
    content = _load_toml(text)
    project, poetry = _table(content, "project"), _table(content, "tool", "poetry")
    found = [*_from_lines(project.get("dependencies"), "pyproject.toml dependencies", platform)]
    for table, where in (
        (_table(project, "optional-dependencies"), "extra"),
        (_table(content, "dependency-groups"), "group"),
    ):
        for name, lines in table.items():
            found += _from_lines(lines, f"pyproject.toml {where} {name}", platform)
    found += _from_poetry(_table(poetry, "dependencies"), "pyproject.toml tool.poetry.dependencies")
    for name in _table(poetry, "group"):
        group = _table(poetry, "group", name, "dependencies")
        found += _from_poetry(group, f"pyproject.toml tool.poetry.group.{name}")
    return tuple(found)


def parse_setup_cfg(text: str, platform: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the packages in install_requires and the extras of a setup.cfg.

    Raises:
        ValueError: the text is not a configuration file.
    """
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(f"setup.cfg: {error}") from None
    found: list[Requirement] = []
    if parser.has_option("options", "install_requires"):
        lines = parser.get("options", "install_requires").splitlines()
        found += _from_lines(lines, "setup.cfg install_requires", platform)
    if parser.has_section("options.extras_require"):
        for extra, value in parser.items("options.extras_require"):
            found += _from_lines(value.splitlines(), f"setup.cfg extra {extra}", platform)
    return tuple(found)


def _from_lines(lines: Any, source: str, platform: Mapping[str, str]) -> Iterator[Requirement]:
    for line in lines if isinstance(lines, list) else ():
        requirement = parse_requirement(line, source, platform) if isinstance(line, str) and line.strip() else None
        if requirement:
            yield requirement


def _from_poetry(table: Mapping[str, Any], source: str) -> Iterator[Requirement]:
    for name, wanted in table.items():
        choices = wanted if isinstance(wanted, list) else [wanted]
        versions = [choice.get("version", "") if isinstance(choice, dict) else choice for choice in choices]
        if normalise(name) != "python" and all(isinstance(version, str) for version in versions):
            # of several choices by platform or Python, none is asked for everywhere
            specifier = _from_poetry_version(versions[0]) if len(versions) == 1 else ""
            yield Requirement(name=normalise(name), specifier=specifier, source=source)


def _from_poetry_version(version: str) -> str:
    """Return Poetry's version constraint as a specifier; "" for any version and for a form that has none."""
    parts = [_from_poetry_part(part.strip()) for part in version.split(",")]
    return "" if None in parts or "||" in version else ",".join(part for part in parts if part)


def _from_poetry_part(part: str) -> str | None:
    """Return one part as a specifier: "^2.3" is ">=2.3,<3", "~2.3" is ">=2.3,<2.4"; None if it is not understood."""
    if part in ("*", ""):
        return ""
    match = re.fullmatch(r"([\^~]?)\s*(\d+(?:\.\d+)*)", part)
    if match is None:
        return _checked(part if part[0] in "<>=!~" else f"=={part}")
    numbers = [int(number) for number in match[2].split(".")]
    if not match[1]:
        return f"=={match[2]}"
    fixed = 2 if match[1] == "~" and len(numbers) > 1 else 1
    if match[1] == "^":
        fixed = next((n for n, number in enumerate(numbers, 1) if number), len(numbers))
    upper = [*numbers[: fixed - 1], numbers[fixed - 1] + 1]
    return f">={match[2]},<{'.'.join(str(number) for number in upper)}"


def _checked(specifier: str) -> str | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return str(SpecifierSet(specifier))
    except InvalidSpecifier:
        return None


def _table(content: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def _load_toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("pyproject.toml is nested too deeply") from None
