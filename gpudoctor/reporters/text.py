"""Lines and values as a person reads them."""

import re
import textwrap
from collections.abc import Iterable
from typing import Any

from gpudoctor.model import share_text
from gpudoctor.privacy import mask_secrets
from gpudoctor.reporters.quantities import significant
from gpudoctor.reporters.terminal import paint
from gpudoctor.untrusted import clean

_NO_BREAK = "\u00a0"
_COMMAND = re.compile("`[^`]+`")
_UNITS = {"_watts": "W", "_mhz": "MHz", "_percent": "%", "_celsius": "°C", "_ms": "ms"}
_SHARES = ("_share", ".throttled_periods")
_MEASURED = "run."
"""Facts that were measured while a program ran: three digits say enough."""


def wrap(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Return `text` in lines of `width` columns. A word and a `command` are never broken: a user may copy them."""
    following = indent if hanging is None else hanging
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", _NO_BREAK), text)
    lines = textwrap.TextWrapper(width, indent, following, break_long_words=False, break_on_hyphens=False).wrap(whole)
    return [line.replace(_NO_BREAK, " ") for line in lines] or [indent.rstrip()]


def wrap_painted(word: str, rest: str, kind: str, color: bool, width: int) -> list[str]:
    """Return `word` in the colour of `kind` and `rest` after it, wrapped as one text."""
    first, *following = wrap(word + rest, width, "", "  ")
    return [paint(first[: len(word)], kind, color=color) + first[len(word) :], *following]


def wrap_parts(parts: Iterable[str], separator: str, width: int) -> list[str]:
    """Return the parts in lines of `width` columns, broken only between two of them."""
    return wrap(separator.join(part.replace(" ", _NO_BREAK) for part in parts), width, "", "  ")


def readable(fact: str, value: Any) -> list[str]:
    """Return the lines of a fact's value, with the unit that ends its name; "unknown" without a value."""
    if isinstance(value, str):
        return [clean(line) for line in mask_secrets(value).splitlines() if line.strip()] or ['""']
    return [_readable(fact, value)]


def _readable(fact: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    is_measured = fact.startswith(_MEASURED)
    if (isinstance(value, int) or (isinstance(value, float) and is_measured)) and fact.endswith("_bytes"):
        return byte_size(value)
    if isinstance(value, float) and fact.endswith(_SHARES):
        return share_text(value)
    if fact.endswith("relative_error"):
        return f"{100 * value:.2g} %" if value >= 1e-4 else "less than 0.01 %"
    if fact.endswith("cudnn_version") and value:  # 8902 is 8.9.2, 91002 is 9.10.2
        major, rest = divmod(value, 10000 if value >= 90000 else 1000)
        return f"{major}.{rest // 100}.{rest % 100}"
    if isinstance(value, (int, float)):
        unit = next((unit for suffix, unit in _UNITS.items() if fact.endswith(suffix)), "")
        number = str(value) if isinstance(value, int) else significant(value) if is_measured else f"{value:g}"
        return f"{number} {unit}".rstrip()
    if isinstance(value, list):
        return clean(", ".join(_readable(fact, item) for item in value)) or "none"
    if isinstance(value, dict):
        if {"number", "pci_address", "text"} == value.keys():  # an Xid error
            place = f" at {value['pci_address']}" if value["pci_address"] else ""
            return clean(f"{value['number']}{place}: {value['text']}".removesuffix(": "))
        named = [_readable("", value["name"])] if value.get("name") else []
        others = [f"{_words(k)} {_readable(k, v)}" for k, v in value.items() if k != "name" and v not in ("", None)]
        listed = ", ".join(others)
        return clean(f"{named[0]} ({listed})" if named and others else "".join(named) or listed or "unknown")
    return clean(str(value)) or '""'


def _words(name: str) -> str:
    """Return the name of a field in words, without the unit that its value shows."""
    return name.removesuffix("_bytes").replace("_", " ")


def byte_size(size: float) -> str:
    """Return a size with its binary unit: "23.5 GiB"."""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
