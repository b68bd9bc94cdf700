"""Shared libraries: the loader's cache as `ldconfig -p` prints it, and the names of CUDA's."""

import re

from gpudoctor.model import SharedLibrary

OF_NVIDIA = ("libcu", "libnv", "libnccl")
_HEADING = "libs found in cache"
LDCONFIG_WORDS = (*OF_NVIDIA, _HEADING)  # the lines with one of them are all that is read here
# "	libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1"; a 32-bit library is "(libc6)"
_LINE = r"\s*(\S+) \(([^)]*)\) => (/.*)"


def parse_ldconfig(text: str) -> tuple[SharedLibrary, ...]:
    """Return the 64-bit libraries of NVIDIA in the cache, in its order; `ValueError` for another text."""
    if _HEADING not in text and " => /" not in text:
        raise ValueError(f"not the output of ldconfig -p: {text[:200]!r}")
    lines = (line for line in text.splitlines() if line.lstrip().startswith(OF_NVIDIA))
    matches = (re.fullmatch(_LINE, line) for line in lines)
    return tuple(SharedLibrary(soname=match[1], path=match[3]) for match in matches if match and "64" in match[2])


_LIBRARIES = (
    r"cudart|cublas(?:Lt)?|cudnn(?:_\w+)?|nccl|nvrtc(?:-builtins)?|nvJitLink|cufftw?|cusparse(?:Lt)?|cusolver(?:Mg)?"
    r"|curand|cupti"
)
# Up to CUDA 11 some sonames have two numbers ("libcudart.so.11.0"); a file's full version has three or more.
_SONAME = rf"lib(?:{_LIBRARIES})\.so\.\d+(?:\.\d+)?"


def is_cuda_soname(name: str) -> bool:
    """Return whether a file's name is the soname of a CUDA library, or that of the driver's libcuda."""
    return name in ("libcuda.so", "libcuda.so.1") or re.fullmatch(_SONAME, name) is not None
