"""The output of `conda info`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gpudoctor.model import CudaVersion, Driver, Python, System
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text

SOURCE = "conda info"

_LINE = re.compile(r"^\s{0,20}([a-z][a-z -]{2,25}?) : (\S.{0,300})$")
_VIRTUAL = re.compile(r"\b__(\w{2,12})=([\w.-]{1,80})")
_AGENT = re.compile(
    r"(?:conda|mamba)/\S{1,20} .{0,120}?(Linux|Darwin|Windows)/(\S{1,80})(?: ([a-z]{2,20})/([\w.]{1,12}))?"
)
_PLATFORMS = {
    "linux-64": ("linux", "x86_64"),
    "linux-aarch64": ("linux", "aarch64"),
    "linux-ppc64le": ("linux", "ppc64le"),
    "win-64": ("windows", "AMD64"),
    "win-arm64": ("windows", "ARM64"),
    "osx-64": ("darwin", "x86_64"),
    "osx-arm64": ("darwin", "arm64"),
}


def read(text: Text) -> Facts:
    """Return the system, the driver's CUDA version and the environment that conda sees."""
    told = dict(_told(text))
    virtual = dict(_VIRTUAL.findall(told.get("virtual packages", "")))
    platform = told.get("platform", "").strip()
    if platform not in _PLATFORMS or not ("conda version" in told or virtual or "active environment" in told):
        return {}
    os, machine = _PLATFORMS[platform]
    agent = _AGENT.search(told.get("user-agent", ""))
    linux = agent if agent and agent[1] == "Linux" else None
    facts: Facts = {
        "system": System(
            os=os,
            machine=machine,
            kernel=linux[2] if linux else None,
            distribution=linux[3] if linux else None,
            distribution_version=linux[4] if linux else None,
            glibc=_version(virtual.get("glibc", "")),
        ),
        "python": _python(told),
    }
    cuda = re.match(r"(\d{1,2}\.\d{1,2})(?:=|$|\.)", virtual.get("cuda", "").partition("=")[0])
    if cuda:
        facts["driver"] = Driver(cuda_version=CudaVersion.parse(cuda[1]))
    return facts


def _told(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the lines "name : value"; the virtual packages go on over several."""
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
    """Yield the same of `conda info --json`."""
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


def _version(text: str) -> str | None:
    match = re.match(r"\d{1,2}\.\d{1,3}", text)
    return match[0] if match else None


def _python(told: dict[str, str]) -> Python:
    """Return the environment that is active. The Python version is conda's own, and not that of the environment."""
    location = told.get("active env location", "").strip()
    active = told.get("active environment", "").strip()
    return Python(active_environment="" if active == "None" else location or None)
