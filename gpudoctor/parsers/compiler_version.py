"""The output of `gcc --version`, `clang --version` or the banner of cl."""

from __future__ import annotations

import re

from gpudoctor.model.record import record

_NUMBERS = r"(\d+(?:\.\d+)+|\d+)"


@record
class Compiler:
    """A host compiler. kind: "gcc", "clang" or "cl"."""

    kind: str
    version: tuple[int, ...]


def parse_compiler_version(text: str) -> Compiler:
    """Return the compiler that printed `text`.

    Raises:
        ValueError: the text is not of a compiler known here.
    """
    first_line = text.strip().partition("\n")[0]
    if "Microsoft (R)" in first_line:
        return _compiler("cl", rf"Version {_NUMBERS}", first_line)
    if "clang version" in first_line:
        return _compiler("clang", rf"clang version {_NUMBERS}", first_line)
    if "Free Software Foundation" in text or "GCC" in first_line:
        # "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-4)"
        return _compiler("gcc", rf"\) {_NUMBERS}", first_line)
    raise ValueError(f"not the version of a compiler: {first_line[:200]!r}")


def _compiler(kind: str, pattern: str, line: str) -> Compiler:
    match = re.search(pattern, line)
    if match is None:
        raise ValueError(f"no version of {kind}: {line[:200]!r}")
    return Compiler(kind=kind, version=tuple(int(part) for part in match[1].split(".")))
