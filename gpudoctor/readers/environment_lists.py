"""Lists of the environment as Hugging Face's libraries print them: "- PyTorch version (GPU?): 2.5.1+cu124 (True)"."""

import re
from collections.abc import Iterator, Mapping

from gpudoctor.model import Device, Torch
from gpudoctor.readers import environment_fields as fields
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import VERSION, package_facts, packages_of
from gpudoctor.readers.platform_facts import platform_facts
from gpudoctor.readers.text import Text, regex

_ITEM = regex(r"^\s*[-*•]\s+[`'\"*]*([^\W\d_][\w .`'*/&+-]{1,50}?)[`'\"*]*\s*(\([^()]{1,40}\))?\??\s*:[ ]?(.*)$")
_BARE_ITEM = regex(
    r"(?i)^\s*[`'\"]*((?:transformers|accelerate|diffusers|pytorch|python|huggingface.?hub|safetensors|peft|deepspeed)[`'\"]*"
    r" version|platform|(?:gpu|xpu|npu) type|accelerator|using gpu in script)\s*(\([^()]{1,40}\))?\??\s*:[ ]?(.*)$"
)
_GPU_FIELDS = ("gpu type", "accelerator", "accelerators", "cuda device", "cuda devices")
# "2.5.1+cu124 (True)", "2.7.0+cu126 (CUDA)", "2.5.1+cu124 (GPU)", "2.8.0+cpu (NA)", "not installed (NA)".
_TORCH = regex(r"^\s*(\S+)(?:\s+\(([^()]{1,20})\))?")
_LIBRARIES = (
    *("transformers", "diffusers", "datasets", "peft", "trl"),
    *("sentence-transformers", "llamafactory", "huggingface"),
)


def read_accelerate(text: Text) -> Facts:
    """Return the facts of the last list of `accelerate env` in the text."""
    lists = [items for items in environment_lists(text) if _is_of_accelerate(items)]
    return _facts(lists[-1]) if lists else {}


def read_transformers(text: Text) -> Facts:
    """Return the facts of the last list of `transformers env`, `diffusers-cli env`, `trl env` or a similar command."""
    lists = [items for items in environment_lists(text) if not _is_of_accelerate(items) and _is_environment(items)]
    return _facts(lists[-1]) if lists else {}


def _is_of_accelerate(items: Mapping[str, str]) -> bool:
    """Return whether the list is Accelerate's: that of transformers also names Accelerate, further down."""
    return next(iter(items)) == "accelerate version" or "accelerate bash location" in items


def _is_environment(items: Mapping[str, str]) -> bool:
    """Return whether the list describes an environment: it names one of the libraries, or platform and PyTorch."""
    named = any(name.split(" ")[0].startswith(_LIBRARIES) and name.endswith("version") for name in items)
    return "pytorch version" in items and (named or "asks for" in items or "platform" in items)


def environment_lists(text: Text) -> Iterator[dict[str, str]]:
    """Yield the lists in the text: name in lower case, without "(GPU?)" → value."""
    items: dict[str, str] = {}
    last = ""
    for line in fields.whole_lines(text):
        match = _ITEM.match(line) or _BARE_ITEM.match(line)
        if match is None:
            # diffusers-cli writes every further GPU on a line of its own.
            if last in _GPU_FIELDS and re.search(r", ?\d+ ?MiB\s*$", line):
                items[last] = f"{items[last]}; {line.strip()}"[:4000]
            continue
        name = _plain(match[1])
        if name in items and name in ("platform", "python version", "pytorch version", "transformers version"):
            yield items
            items = {}
        items.setdefault(name, match[3].strip()[:4000])
        if match[2] and name == "pytorch version":
            items["asks for"] = match[2].lower()
        last = name
    if items:
        yield items


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[`'\"*]", "", name).lower().replace("_", " ").split())


def _facts(items: Mapping[str, str]) -> Facts:
    python = fields.python_facts(items.get("python version", ""))
    system = platform_facts(items.get("platform", ""), fields.release_of(python))
    shown = items.get("pytorch version", "")
    if re.match(r"not installed|not found", shown, re.IGNORECASE):
        return joined({"torch": Torch(installed=False)}, _facts({**items, "pytorch version": ""}))
    torch = _TORCH.match(shown)
    said = {
        "torch": torch[1] if torch else "",
        "available": _available((torch[2] or "").lower(), items) if torch else "",
        "python": items.get("python version"),
    }
    return joined(fields.environment_facts(said, system=system, devices=_devices(items)), _packages(items))


def _available(said: str, items: Mapping[str, str]) -> str:
    """Return the text after the version: an answer, or the accelerator that PyTorch uses."""
    if said in ("cuda", "gpu") or items.get("pytorch accelerator", "").lower() in ("cuda", "gpu"):
        return "true"
    return "false" if "accelerator" in items.get("asks for", "") and said == "na" else said


def _devices(items: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the named GPUs, as many as the list counts.

    They are written "NVIDIA A100, 40960 MiB; NVIDIA T4, 15360 MiB" or "NVIDIA A100, NVIDIA A100".
    """
    value = next((items[name] for name in _GPU_FIELDS if not fields.is_unknown(items.get(name, ""))), "")
    names = re.split(r";|,(?=\s*(?:NVIDIA|Tesla|GeForce|Quadro)\b)", value)
    devices = fields.named_gpus([re.sub(r",? ?\d+ ?(?:MiB|GB)\s*$", "", name.strip()) for name in names])
    return fields.repeated(devices, items.get("gpu number", items.get("num gpus", "")))


def _packages(items: Mapping[str, str]) -> Facts:
    shown = ((name, value) for name, value in items.items() if name.endswith(" version"))
    versions = ((name, re.match(rf"({VERSION})(?:\s|$)", value)) for name, value in shown)
    named = ((name.removesuffix(" version").replace(" ", "-"), match[1]) for name, match in versions if match)
    return package_facts(packages_of((name, version) for name, version in named if name not in ("pytorch", "python")))
