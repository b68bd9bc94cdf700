"""The report of DeepSpeed's `ds_report`: "torch cuda version ............... 11.7"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from gpudoctor.model import System, Toolkit, Torch
from gpudoctor.readers.environment_fields import nvcc_version, torch_facts, torch_version, whole_lines
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.package_facts import VERSION, package, package_facts
from gpudoctor.readers.text import Text

SOURCE = "ds_report"

# Source: deepspeed/env_report.py, 0.3 to 0.18.
_ROW = re.compile(
    r"^\W{0,12}(torch install path|torch version|torch cuda version|torch hip version|nvcc version|deepspeed info"
    r"|deepspeed wheel compiled w\.|shared memory \(/dev/shm\) size)[ .]{2,60}\s*(\S.*)$"
)
_UNITS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4}


def read(text: Text) -> Facts:
    """Return what the last report in the text tells."""
    if "torch version ." not in text.lowered and "deepspeed info ." not in text.lowered:
        return {}
    fields: dict[str, str] = {}
    for line in whole_lines(text):
        match = _ROW.match(line)
        if match:
            fields[match[1]] = match[2].strip()
    return _facts(fields) if fields else {}


def _facts(fields: Mapping[str, str]) -> Facts:
    nvcc = nvcc_version(fields.get("nvcc version", ""))
    size = _bytes(fields.get("shared memory (/dev/shm) size", ""))
    version = re.match(rf"({VERSION}),", fields.get("deepspeed info", ""))
    machine = sections(
        toolkit=None if nvcc is None else Toolkit(nvcc_version=nvcc),
        system=System(shm_total_bytes=size) if size else None,
    )
    return joined(_torch(fields), machine, package_facts([package("deepspeed", version[1])] if version else []))


def _torch(fields: Mapping[str, str]) -> Facts:
    """Return PyTorch's section. Its CUDA version is "None" for a build of ROCm too."""
    cuda, hip = fields.get("torch cuda version"), fields.get("torch hip version", "")
    rocm = re.match(r"\d+\.\d[\w.+-]{0,30}", hip)
    facts = torch_facts(torch_version(fields.get("torch version", "")), None if rocm else cuda, None)
    torch: Torch | None = facts.get("torch")
    if torch is None:
        return facts
    if rocm:
        torch = replace(torch, build="rocm", hip_version=rocm[0])
    path = re.match(r"\['([^']{3,300})'", fields.get("torch install path", ""))
    return {**facts, "torch": replace(torch, location=path[1] if path else None)}


def _bytes(value: str) -> int | None:
    """Return the size in "62.75 GB"; DeepSpeed's units are powers of 1024."""
    match = re.match(r"(\d{1,6}(?:\.\d{1,2})?) ?([KMGT]?B)\b", value)
    if match is None:
        return None
    return int(float(match[1]) * 1024 ** _UNITS[match[2]])
