"""The output of `ldconfig -p`: the libraries in the loader's cache."""

from __future__ import annotations

import re

from gpudoctor.model import SharedLibrary

OF_NVIDIA = ("libcu", "libnv", "libnccl")
_HEADING = "libs found in cache"
LDCONFIG_WORDS = (*OF_NVIDIA, _HEADING)  # the lines with one of them are all that is read here
# "	libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1"; a 32-bit library is "(libc6)"
_LINE = r"\s*(\S+) \(([^)]*)\) => (/.*)"


def parse_ldconfig(text: str) -> tuple[SharedLibrary, ...]:
    """Return the 64-bit libraries of NVIDIA in the cache, in its order.

    Raises:
        ValueError: the text is not a listing of the cache.
    """
    if _HEADING not in text and " => /" not in text:
        raise ValueError(f"not the output of ldconfig -p: {text[:200]!r}")
    lines = (line for line in text.splitlines() if line.lstrip().startswith(OF_NVIDIA))
    matches = (re.fullmatch(_LINE, line) for line in lines)
    return tuple(SharedLibrary(soname=match[1], path=match[3]) for match in matches if match and "64" in match[2])
