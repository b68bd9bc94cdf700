"""What a CUDA toolkit and the host compiler say of their versions. Each parser raises `ValueError` for another text."""

import json
import re

from gpudoctor.model.record import record
from gpudoctor.model.versions import CudaVersion
from gpudoctor.parsers import required

_NUMBERS = r"(\d+(?:\.\d+)+|\d+)"


def parse_nvcc_version(text: str) -> CudaVersion:
    """Return the CUDA version in "Cuda compilation tools, release 12.4, V12.4.131"."""
    release = required(r"Cuda compilation tools, release (\d+\.\d+)", text, "no release of nvcc")
    return CudaVersion.parse(release[1])


def parse_version_json(text: str) -> CudaVersion:
    """Return the CUDA version of a version.json, which toolkits have since 11.1."""
    try:
        return CudaVersion.parse(json.loads(text)["cuda"]["version"])
    except (KeyError, TypeError, RecursionError):
        raise ValueError(f"no CUDA version in version.json: {text[:200]!r}") from None


def parse_version_txt(text: str) -> CudaVersion:
    """Return the CUDA version in "CUDA Version 10.1.243", the version.txt of older toolkits."""
    return CudaVersion.parse(required(r"CUDA Version (\d+\.\d+)", text, "no CUDA version in version.txt")[1])


def parse_folder_name(path: str) -> CudaVersion:
    """Return the CUDA version, which needs a minor number, in the name of the folder "/usr/local/cuda-12.4"."""
    pattern = r"cuda[-_\\/]?v?(\d{1,2}\.\d{1,2})(?:\.\d+)*/?$"
    return CudaVersion.parse(required(pattern, path, "no CUDA version in the name", re.IGNORECASE)[1])


def parse_newest_gcc(text: str) -> int:
    """Return the newest gcc that crt/host_config.h of a toolkit accepts: 13 of "#if __GNUC__ > 13"."""
    pattern = r"^\s*#\s*if\s+\(?\s*__GNUC__\s*>\s*(\d{1,3})\b"
    return int(required(pattern, text, "no limit of __GNUC__ in host_config.h", re.MULTILINE)[1])


@record
class Compiler:
    """A host compiler. kind: "gcc", "clang" or "cl"."""

    kind: str
    version: tuple[int, ...]


def parse_compiler_version(text: str) -> Compiler:
    """Return the compiler in the output of --version or in the banner of cl."""
    line = text.strip().partition("\n")[0]
    if "Microsoft (R)" in line:
        kind, pattern = "cl", rf"Version {_NUMBERS}"
    elif "clang version" in line:
        kind, pattern = "clang", rf"clang version {_NUMBERS}"
    elif "Free Software Foundation" in text or "GCC" in line:
        # "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-4)"
        kind, pattern = "gcc", rf"\) {_NUMBERS}"
    else:
        raise ValueError(f"not the version of a compiler: {line[:200]!r}")
    numbers = required(pattern, line, f"no version of {kind}")[1]
    return Compiler(kind=kind, version=tuple(int(part) for part in numbers.split(".")))
