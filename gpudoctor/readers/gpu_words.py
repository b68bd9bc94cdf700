"""GPUs as people write of them: "RTX 2060 Super", "2080 ti", "A100", "Radeon 5700XT"."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpudoctor.readers.text import Patterns, Text

_SAYS = Patterns("gpu_words")

MOST_NAMES = 20
_WORDS = {"three": 3, "four": 4, "six": 6, "eight": 8}


class Named(NamedTuple):
    """A GPU that a text names. name: as its maker writes it. labelled: it stands after "GPU:". number: how many."""

    vendor: str
    name: str
    labelled: bool
    number: int = 1


def named_gpus(text: Text) -> Sequence[Named]:
    """Return the GPUs of the machine that the text names; () if it is not sure which.

    A label ("GPU: ...") is believed. Without one all that is named must be one product.
    """
    found = list(_found(text.lines))[:MOST_NAMES]
    labelled = [gpu for gpu in found if gpu.labelled]
    chosen = labelled or found
    names = {gpu.name.lower() for gpu in chosen}
    if len(names) == 1:
        return (chosen[0],) * max(gpu.number for gpu in chosen)
    return tuple({gpu.name: gpu for gpu in labelled}.values()) if labelled else ()


def _found(lines: Sequence[str]) -> Iterator[Named]:
    for whole in lines:
        told = re.split(r"\w*(?:Warning|Error):", whole, maxsplit=1)[0]  # people's words stand before a message
        if len(told) > 400 or not _SAYS.topics.search(told.lower()) or _is_output(told):
            continue
        line = _SAYS.glued.sub(lambda match: f"{match[1]} x " if match[1] else "", told)
        label = _SAYS.label.match(line)
        start = label.end() if label else 0
        for match in _SAYS.nvidia.finditer(line, start):
            count = _count(line, match)
            name = _nvidia_name(match, bool(label) or count > 1 or _SAYS.mine.search(line[: match.start()]) is not None)
            if name and (label or _is_own(line, match, count)):
                yield Named("nvidia", name, bool(label), count)
        for match in _SAYS.amd.finditer(line, start):
            if label or _is_own(line, match):
                yield Named("amd", _amd_name(match), bool(label))


def _is_output(line: str) -> bool:
    """Tell whether a line is a program's: what it names was read by the reader of that program, or is no device."""
    return re.search(r"https?://|\|\s{2,}|/[\w.-]+/[\w.-]+/|\.whl\b|\bFile \"|==|\bsm_\d\d", line) is not None


def _count(line: str, match: re.Match[str]) -> int:
    """Return how many GPUs of the name the line gives."""
    before, after = _SAYS.count.search(line[: match.start()]), _SAYS.count_after.match(line, match.end())
    if before is None:
        return int(after[1]) if after is not None else 1
    return int(before["number"] or before["times"] or _WORDS.get(before["word"].lower(), 2))


def _is_own(line: str, match: re.Match[str], count: int = 1) -> bool:
    before, after = line[: match.start()], line[match.end() :]
    if _SAYS.elsewhere.search(before) or _SAYS.follows_elsewhere.match(after):
        return False
    return count > 1 or _SAYS.before.search(before) is not None


def _nvidia_name(match: re.Match[str], told: bool) -> str | None:
    """Return the product's name; None where a number stands alone and is not `told` to be of a GPU."""
    part = match.groupdict()
    if part["number"]:
        number, ti = part["number"], bool(part["ti"])
        sure = part["line"] or ti or part["super"] or part["laptop"]
        if not sure and not (told and len(number) == 4 and number >= "2000"):
            return None
        line = (
            "GT" if (part["line"] or "").lower() == "gt" else "RTX" if len(number) == 4 and number >= "2000" else "GTX"
        )
        mobile = "M" if part["mobile"] and line == "GTX" else ""
        words = [f"NVIDIA GeForce {line} {number}{mobile}", "Ti" if ti else "", "SUPER" if part["super"] else ""]
        words.append("Laptop GPU" if part["laptop"] and number >= "3000" and len(number) == 4 else "")
        return " ".join(word for word in words if word)
    if part["datacenter"]:
        name: str = part["datacenter"].upper()
        tesla = name[0] in "VPTKM" and name not in ("T4G",)
        return f"Tesla {name}" if tesla else f"NVIDIA {name}"
    name = " ".join((part["workstation"] or part["jetson"] or "").split())
    return name if re.match(r"Quadro|TITAN|Titan|NVIDIA", name) else f"NVIDIA {name}"


def _amd_name(match: re.Match[str]) -> str:
    part = match.groupdict()
    if part["instinct"]:
        return f"AMD Instinct {part['instinct'].upper()}"
    if part["pro"]:
        return f"AMD Radeon {part['pro']}"
    number = re.sub(r"(?i)^rx ?", "", part["rx"] or part["radeon"])
    suffix = (part["suffix"] or part["second"] or "").upper()
    line = "" if re.match(r"(?i)vii|vega", number) else "RX "
    return f"AMD Radeon {line}{number} {suffix}".strip()
