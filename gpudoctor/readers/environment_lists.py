"""Lists of the environment as Hugging Face's libraries print them: "- PyTorch version (GPU?): 2.5.1+cu124 (True)"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpudoctor.model import Device, Torch
from gpudoctor.readers.environment_fields import (
    MOST_DEVICES,
    answer,
    is_unknown,
    named_gpus,
    python_facts,
    release_of,
    torch_facts,
    torch_version,
    whole_lines,
)
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.package_facts import VERSION, package_facts, packages_of
from gpudoctor.readers.platform_facts import platform_facts
from gpudoctor.readers.text import Text

MOST_LISTS = 20
_ITEM = re.compile(r"^\s*[-*•]\s+[`'\"*]*([^\W\d_][\w .`'*/&+-]{1,50}?)[`'\"*]*\s*(\([^()]{1,40}\))?\??\s*:[ ]?(.*)$")
_BARE_ITEM = re.compile(
    r"^\s*[`'\"]*((?:transformers|accelerate|diffusers|pytorch|python|huggingface.?hub|safetensors|peft|deepspeed)[`'\"]*"
    r" version|platform|(?:gpu|xpu|npu) type|accelerator|using gpu in script)\s*(\([^()]{1,40}\))?\??\s*:[ ]?(.*)$",
    re.IGNORECASE,
)
_GPU_FIELDS = ("gpu type", "accelerator", "accelerators", "cuda device", "cuda devices")
# "2.5.1+cu124 (True)", "2.7.0+cu126 (CUDA)", "2.5.1+cu124 (GPU)", "2.8.0+cpu (NA)", "not installed (NA)".
_TORCH = re.compile(r"^\s*(\S+)(?:\s+\(([^()]{1,20})\))?")


def environment_lists(text: Text) -> Iterator[dict[str, str]]:
    """Yield the lists in the text: the items' names in lower case, without "(GPU?)", and what is said of them."""
    items: dict[str, str] = {}
    last, given = "", 0
    for line in whole_lines(text):
        match = _ITEM.match(line) or _BARE_ITEM.match(line)
        if match is None:
            # diffusers-cli writes every further GPU on a line of its own.
            if last in _GPU_FIELDS and re.search(r", ?\d+ ?MiB\s*$", line):
                items[last] = f"{items[last]}; {line.strip()}"[:4000]
            continue
        name = _plain(match[1])
        if name in items and name in ("platform", "python version", "pytorch version", "transformers version"):
            yield items
            items, given = {}, given + 1
        if given >= MOST_LISTS:
            return
        items.setdefault(name, match[3].strip()[:4000])
        if match[2] and name == "pytorch version":
            items["asks for"] = match[2].lower()
        last = name
    if items:
        yield items


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[`'\"*]", "", name).lower().replace("_", " ").split())


def list_facts(items: Mapping[str, str]) -> Facts:
    """Return the sections that a list fills."""
    python = python_facts(items.get("python version", ""))
    system = platform_facts(items.get("platform", ""), release_of(python))
    machine = sections(python=python, system=system, devices=_devices(items))
    return joined(_torch(items.get("pytorch version", ""), items), machine, _packages(items))


def _torch(shown: str, items: Mapping[str, str]) -> Facts:
    match = _TORCH.match(shown)
    if match is None:
        return {}
    if re.match(r"not installed|not found", shown, re.IGNORECASE):
        return {"torch": Torch(installed=False)}
    available = _available((match[2] or "").lower(), items)
    return torch_facts(torch_version(match[1]), None, available)


def _available(said: str, items: Mapping[str, str]) -> bool | None:
    """Return what stands after the version: an answer, or the accelerator that PyTorch uses."""
    accelerator = items.get("pytorch accelerator", "").lower()
    if said in ("cuda", "gpu") or accelerator in ("cuda", "gpu"):
        return True
    if "accelerator" in items.get("asks for", "") and said == "na":
        return False
    return answer(said)


def _devices(items: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the GPUs named, as many of them as the list counts."""
    value = next((items[name] for name in _GPU_FIELDS if not is_unknown(items.get(name, ""))), "")
    devices = named_gpus([re.sub(r",? ?\d+ ?(?:MiB|GB)\s*$", "", part) for part in _split(value)])
    count = re.match(r"\d{1,3}$", items.get("gpu number", items.get("num gpus", "")))
    if len(devices) == 1 and count:
        devices = tuple(replace(devices[0], nvml_index=number) for number in range(min(int(count[0]), MOST_DEVICES)))
    return devices


def _split(value: str) -> list[str]:
    """Return the names in "NVIDIA A100, 40960 MiB; NVIDIA T4, 15360 MiB" or "NVIDIA A100, NVIDIA A100"."""
    return [part.strip() for part in re.split(r";|,(?=\s*(?:NVIDIA|Tesla|GeForce|Quadro)\b)", value) if part.strip()]


def _packages(items: Mapping[str, str]) -> Facts:
    named = {
        name.removesuffix(" version").replace(" ", "-"): items[name] for name in items if name.endswith(" version")
    }
    versions = ((name, re.match(rf"({VERSION})(?:\s|$)", value)) for name, value in named.items())
    found = ((name, match[1]) for name, match in versions if match and name not in ("pytorch", "python"))
    return package_facts(packages_of(found))
