"""GPU names as people write them: "RTX 2060 Super", "2080 ti", "A100", "Radeon 5700XT"."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpudoctor.readers.text import Text, regex

MOST_NAMES = 20

_GEFORCE = (
    r"(?:(?:nvidia[ -]?)?(?:geforce[ -]?)?(?P<line>rtx|gtx|gt)[ -]?)?(?P<number>"
    r"50[5-9]0|40[5-9]0|30[5-9]0|20[678]0|16[356]0|10[1-8]0|9[5-8]0|7[1-9]0|6[5-9]0)(?P<mobile>m(?!\w))?"
    r"(?:[ -]?(?P<ti>ti)\b)?(?:[ -]?(?P<super>super)\b)?(?:[ -]?(?P<laptop>laptop(?: gpu)?|mobile|max-q)\b)?"
)
_DATACENTER = (
    r"(?:nvidia[ -])?(?:tesla[ -])?(?P<datacenter>GB?[BH]?200|B[123]00|H[128]00|H20|A[18]00X?|A40|A30|A16|A10G?"
    r"|A2(?! (?:machine|instance|VM)s?\b)|L40S?|L20|L4|V100S?|P100|P40|P6|P4|T4G?|K80|K40[mct]?|K20[mcx]?|M60|M40)"
)
_WORKSTATION = (
    r"(?:nvidia[ -])?(?P<workstation>Quadro (?:RTX )?[A-Z]{0,2}\d{3,4}M?|(?:RTX )A[2456]\d00"
    r"|RTX \d{4} Ada(?: Generation)?|RTX PRO \d{4}|(?:GTX )?TITAN (?:RTX|X[p]?|V|Black)(?: \(Pascal\))?"
    r"|GeForce MX ?\d{3}|MX[1-5]\d{2}|T[1-9]\d{2,3}\b)"
)
_JETSON = r"(?:nvidia )?(?P<jetson>(?:Jetson )?(?:AGX )?(?:Orin|Xavier)(?: NX| Nano)?|Jetson (?:Nano|TX[12]|AGX|Thor))"
_NVIDIA = regex(
    rf"(?i)(?<![\w.-])(?:{_GEFORCE}|{_DATACENTER}(?:[ -]?(?:SXM\d?|PCIe|NVL|\d{{2,3}} ?GB)\S{{0,20}}){{0,3}}"
    rf"|{_WORKSTATION}|{_JETSON})(?![\w.]\w|\w)"
)
_AMD = regex(
    r"(?i)(?<![\w.-])(?:AMD )?(?:(?:Radeon )?(?P<rx>RX ?(?:Vega ?)?\d{2,4}) ?(?P<suffix>XTX|XT|GRE|M|S)?"
    r"|Radeon (?:RX )?(?P<radeon>(?:VII|Vega ?\d{2}|\d{4})) ?(?P<second>XTX|XT|M)?|Radeon (?P<pro>Pro [VW]\d{4}X?)"
    r"|(?:Instinct )?(?P<instinct>MI\d{2,3}[AX]?))(?!\w)"
)
# Parts of every product name, searched first: most lines of a long report contain none.
_TOPICS = regex(r"[a-z]\d|\d{3}|titan|orin|xavier|jetson|radeon|rx ")
# A program's line: that program's reader has read its names, or it is not about a device.
_OUTPUT = regex(r"https?://|\|\s{2,}|/[\w.-]+/[\w.-]+/|\.whl\b|\bFile \"|==|\bsm_\d\d")
# "with my 4090": a number is a product if these words precede it
_MINE = regex(r"(?i)\b(?:on|with|using|have|got|use) (?:an?|my|one|two|single)(?: single)? $")


# "4 RTX 3090", "with 4 A100", "dual 3090", "8 x A100", "RTX 3090 x2"; the 12 of "CUDA 12 RTX 3090" counts nothing.
_COUNT = regex(
    r"(?i)(?:(?:^|[,;:(]\s*|\b(?:have|has|with|using|on|got|our|my|are|the|use|of|across)\s+)(?P<number>[2-9]|1[0-6])"
    r"|(?<![\w.])(?P<times>[2-9]|1[0-6])\s?[x\u00d7*]|\b(?P<word>dual|double|two|both|twin|three|four|six|eight))"
    r"(?:\s(?:new|used|old|cheap|refurbished|identical|nvidia|geforce))*\s?$"
)
_COUNT_AFTER = regex(r"(?i)[- ]?(?:\d{2,3} ?GB\S*)?(?: (?:GPUs?|cards?))?,?\s?\(?[x\u00d7*]\s?([2-9]|1[0-6])\b(?![.x])")
_WORDS = {"three": 3, "four": 4, "six": 6, "eight": 8}
_GLUED = regex(r"(?i)(?<![\w.])(\d{1,2})[x\u00d7*](?=[a-z\d])|(?<=\d0)s\b")  # "2x4090", "four 3090s"


# "3090, 3080: wrong; 2080, Titan RTX: right"
_NUMBER = r"(?:20[678]0|30[5-9]0|40[5-9]0|50[5-9]0)(?: ?Ti)?"
_COMPARED = regex(rf"(?<![\w.]){_NUMBER}(?:,| and| or| vs\.?|/) ?(?:RTX )?(?:{_NUMBER}|Titan)\b(?!\.)")


class Named(NamedTuple):
    """A GPU that a text names. name: the vendor's spelling. labelled: it follows "GPU:". number: how many."""

    vendor: str
    name: str
    labelled: bool
    number: int = 1


_LABEL = regex(
    r"(?i)^\s*(?:[-*•]\s*)?[\"'*_]{0,3}(?:(?:my|the)\s+)?(?:GPU(?: ?\d)?(?: (?:(?:device )?name|models?|type|info))?"
    r"|GPUs|Graphics(?: card| adapter)?|Video card"
    r"|VGA|Device(?: name)?|Card|Accelerator|Hardware|显卡(?:型号)?|产品|型号|名称)[\"'*_]{0,3}\s*(?::|=|\|)\s*"
)
# "on a RTX 3060", "with an A100", "using my 2080 Ti", "I have a GTX 1080"
_BEFORE = regex(
    r"(?i)(?:\b(?:on|with|using|have|has|use|own|got|running|bought|upgraded to|machine:|i'm on|for)\s+"
    r"(?:an?|my|the|one|two|four|eight|\d ?x?|2x|4x|8x)?\s*(?:new |single |brand new |used |old |cheap )?"
    r"(?:nvidia |an? )?"
    r"|\b(?:my|our)\s+(?:nvidia )?"
    r"|\b(?:laptop|desktop|machine|server|pc|card|gpu|graphics card|gpus?)\s*(?:is|=|:|\(|with|are)\s*"
    r"(?:an?\s+)?|\b[2-8] ?x ?|\b\d ?x? ?GPUs?:? |\band (?:an? )?|[,;(|/+]\s*|^\s*(?:[-*•]\s*)?|\bCUDA:\d \()$"
)
_ELSEWHERE = regex(
    r"(?i)\b(?:not|but|unlike|before|previous(?:ly)?|old(?:er)?|instead of|works (?:fine )?on|worked|than|e\.g\."
    r"|such as|like|supports?|supported|requires?|tested"
    r"|another|other|friend|recommend\w*|series|minimum|at least|or (?:newer|higher|later|above))\b"
)
_FOLLOWS_ELSEWHERE = regex(
    r"(?i)^\S{0,3}\s{0,2}(?:series|works|yields|and (?:newer|above|later)|or (?:newer|higher|later|above|better)"
    r"|-class)\b"
)


def named_gpus(text: Text) -> Sequence[Named]:
    """Return the machine's GPUs that the text names; () if they are ambiguous.

    A label ("GPU: ...") is trusted. Without one, all names must be of one product, and none be compared.
    """
    found = list(_found(text.lines))[:MOST_NAMES]
    labelled = [gpu for gpu in found if gpu.labelled]
    chosen = labelled or found
    names = {gpu.name.lower() for gpu in chosen}
    if len(names) == 1 and (labelled or not any(map(_COMPARED.search, text.lines))):
        return (chosen[0],) * max(gpu.number for gpu in chosen)
    return tuple({gpu.name: gpu for gpu in labelled}.values()) if labelled else ()


def _found(lines: Sequence[str]) -> Iterator[Named]:
    for whole in lines:
        words = re.split(r"\w*(?:Warning|Error):", whole, maxsplit=1)[0]  # people's words precede a message
        if len(words) > 400 or not _TOPICS.search(words.lower()) or _OUTPUT.search(words):
            continue
        line = _GLUED.sub(lambda match: f"{match[1]} x " if match[1] else "", words)
        label = _LABEL.match(line)
        start = label.end() if label else 0
        for match in _NVIDIA.finditer(line, start):
            count = _count(line, match)
            name = _nvidia_name(match, bool(label) or count > 1 or _MINE.search(line[: match.start()]) is not None)
            if name and (label or _is_own(line, match, count)):
                yield Named("nvidia", name, bool(label), count)
        for match in _AMD.finditer(line, start):
            if label or _is_own(line, match):
                yield Named("amd", _amd_name(match), bool(label))


def _count(line: str, match: re.Match[str]) -> int:
    """Return how many GPUs of this name the line counts."""
    before, after = _COUNT.search(line[: match.start()]), _COUNT_AFTER.match(line, match.end())
    if before is None:
        return int(after[1]) if after is not None else 1
    return int(before["number"] or before["times"] or _WORDS.get(before["word"].lower(), 2))


def _is_own(line: str, match: re.Match[str], count: int = 1) -> bool:
    before, after = line[: match.start()], line[match.end() :]
    if _ELSEWHERE.search(before) or _FOLLOWS_ELSEWHERE.match(after):
        return False
    return count > 1 or _BEFORE.search(before) is not None


def _nvidia_name(match: re.Match[str], labelled: bool) -> str | None:
    """Return the product name; None for a bare number that is not `labelled` as a GPU."""
    part = match.groupdict()
    if part["number"]:
        number, ti = part["number"], bool(part["ti"])
        sure = part["line"] or ti or part["super"] or part["laptop"]
        if not sure and not (labelled and len(number) == 4 and number >= "2000"):
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
