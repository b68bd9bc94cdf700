"""What nvcc printed, or the shell in its place."""

from __future__ import annotations

import re

from gpudoctor.model import CudaVersion, Toolkit
from gpudoctor.parsers.toolkit import parse_nvcc_version
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text

SOURCE = "nvcc"

_VERSION = re.compile(r"Cuda compilation tools, release \d{1,2}\.\d{1,2}")
_BUILD = re.compile(r"\bBuild cuda_(\d{1,2}\.\d{1,2})\.r\d")
# Of sh, bash and zsh, of Ubuntu's command-not-found, of cmd and of PowerShell
_NOT_FOUND = re.compile(
    r"nvcc: (?:command )?not found|command not found: nvcc|Command 'nvcc' not found|no nvcc in \("
    r"|'nvcc' is not recognized as|The term 'nvcc' is not recognized|nvcc: No such file"
)
_WHICH = re.compile(
    r"^\s*(?:(?:which|whereis|command -v|type|where) nvcc\s+|nvcc: |nvcc is )?((?:/[\w.+-]{1,60}){1,12}/nvcc)\s*$"
)
_WHICH_WINDOWS = re.compile(r"^\s*([A-Za-z]:\\[^\n:*?\"<>|]{1,200}\\nvcc\.exe)\s*$")


def read(text: Text) -> Facts:
    """Return the toolkit that nvcc on PATH belongs to."""
    version = _version(text)
    path = next((match[1] for match in map(_path, text.lines) if match), None)
    if path is None and version is None and _NOT_FOUND.search(text.flat):
        path = ""
    return {} if path is None and version is None else {"toolkit": Toolkit(nvcc_path=path, nvcc_version=version)}


def _version(text: Text) -> CudaVersion | None:
    """Return the version that was printed last."""
    releases = list(_VERSION.finditer(text.flat))
    if releases:
        return parse_nvcc_version(releases[-1][0])
    build = _BUILD.search(text.flat)
    return CudaVersion.parse(build[1]) if build else None


def _path(line: str) -> re.Match[str] | None:
    return _WHICH.match(line) or _WHICH_WINDOWS.match(line)
