"""Operating system names in reports: Python's platform string and distribution names."""

import re
from dataclasses import replace

from gpudoctor.data.tables import load_table
from gpudoctor.model import System
from gpudoctor.readers.text import regex

SYS_PLATFORMS = {"linux": "linux", "win32": "windows", "darwin": "darwin"}  # sys.platform → the system's name here

# WSL that somebody cannot use does not count.
NO_WSL = regex(
    r"(?i)\bWSL ?2? (?:is|are) (?:disabled|blocked|forbidden|not (?:allowed|permitted|installed|available|an option))"
    r"|\b(?:not allowed to|cannot|can't|may not|must not) (?:\w+ ){0,2}?WSL ?2?\b|\b(?:no|without) WSL ?2?\b"
)

_MACHINES = r"x86_64|aarch64|ppc64le|armv[78]l|i686|s390x|riscv64"
# platform.platform(): "Linux-5.15.0-67-generic-x86_64-with-glibc2.31". Source: Lib/platform.py of CPython.
_LINUX = regex(rf"Linux-([\w.+~-]{{1,80}}?)-({_MACHINES})(?:-with-([\w.-]{{1,60}}))?")
_WINDOWS = regex(r"Windows-(?:\w{1,10}|\d{4}Server)-\d{1,2}\.\d")
_MAC = regex(r"(?:macOS|Darwin)-[\d.]{1,12}-(arm64|x86_64)")
# Before Python 3.8 the platform string has the oldest glibc that the interpreter needs, not the installed one.
# Source: https://bugs.python.org/issue35389 and Lib/platform.py of CPython 3.8.
_FIRST_RIGHT_GLIBC = (3, 9)


def platform_facts(text: str, python: tuple[int, ...] = ()) -> System | None:
    """Return the system in Python's platform string; None if `text` has none.

    python: release of the Python that printed it; its glibc counts only if that is new enough.
    """
    linux = _LINUX.search(text)
    if linux:
        system = System(os="linux", kernel=linux[1], machine=linux[2], wsl=wsl_of_kernel(linux[1]) or None)
        return _with_libc(system, linux[3] or "", python)
    if _WINDOWS.search(text):
        return System(os="windows")
    mac = _MAC.search(text)
    return System(os="darwin", machine=mac[1]) if mac else None


def wsl_of_kernel(kernel: str) -> int:
    """Return 2 for "5.15.90.1-microsoft-standard-WSL2", 1 for "4.4.0-19041-Microsoft", 0 for another kernel."""
    if "microsoft" not in kernel.lower():
        return 0
    return 1 if kernel.endswith("-Microsoft") else 2


def _with_libc(system: System, libc: str, python: tuple[int, ...]) -> System:
    """Return the system completed from the part after "with": the C library, or the distribution up to Python 3.7."""
    glibc = re.fullmatch(r"glibc(\d\.\d{1,3})", libc)
    if glibc:
        return replace(system, glibc=glibc[1]) if python[:2] >= _FIRST_RIGHT_GLIBC else system
    named = re.match(r"(ubuntu|centos|fedora|debian)-(\d[\d.]{0,7})", libc, re.IGNORECASE)
    if named:
        name = named[1].lower()
        return replace(system, distribution=name, distribution_version=_version(name, named[2].rstrip(".")))
    return system


def distribution_facts(text: str) -> System | None:
    """Return the system for a name: "Ubuntu 20.04.5 LTS (x86_64)", "Microsoft Windows 11 Pro"."""
    name = re.sub(rf"\s*\((?:{_MACHINES}|arm64|[\d.]+ ?64[^()]{{0,8}})\)\s*$", "", text).strip()[:100]
    machine = re.search(rf"\(({_MACHINES}|arm64)\)\s*$", text)
    system = System(machine=machine[1] if machine else None)
    lowered = name.lower()
    if "windows" in lowered:
        return replace(system, os="windows", distribution_name=name)
    if re.match(r"mac ?os|darwin|os ?x\b", lowered):
        return replace(system, os="darwin")
    known = next((row for row in load_table("distributions")["distributions"] if row["name"] in lowered), None)
    if known is None:
        return replace(system, os="linux") if re.search(r"\blinux\b", lowered) else None
    version = re.search(r"(?<![\w.])(\d{1,4}(?:\.\d{1,4}){0,3})(?![\w.])", name[lowered.index(known["name"]) :])
    return replace(
        system,
        os="linux",
        distribution=known["id"],
        distribution_version=_version(known["id"], version[1]) if version else None,
        distribution_name=name,
    )


def _version(distribution: str, version: str) -> str:
    """Return the version in the form of VERSION_ID: "7" for CentOS 7.9.2009, "20.04" for Ubuntu 20.04.6."""
    numbers = {"ubuntu": 2, "debian": 1, "centos": 1}.get(distribution)
    return ".".join(version.split(".")[:numbers])
