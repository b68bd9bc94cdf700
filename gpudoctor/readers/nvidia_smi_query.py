"""The list that `nvidia-smi -q` prints, complete or selected with `-d`, of any release; and the XML of `-q -x`."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gpudoctor.model import Device, Driver
from gpudoctor.parsers.nvidia_smi_xml import SmiReport, parse_nvidia_smi_xml, read_log
from gpudoctor.readers.facts import Facts, sections
from gpudoctor.readers.text import Text, name_table, regex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MOST_LINES = 100_000
DEEPEST = 12  # sections within sections; there are five

_LINE = regex(r"^(\s*)([A-Za-z][\w .()/-]{0,60}?)\s*:(?:\s+(.{0,300}))?$")
_TITLE = regex(r"^(\s*)([A-Z][\w ()/.-]{1,50})\s*$")
_GPU = regex(r"^\s*GPU ((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = regex(
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>{'|'.join(_MONTHS)})"
    r" {1,2}(?P<day>\d{1,2}) (?P<clock>\d{2}:\d{2}:\d{2}) (?P<year>20\d\d)\b"
    r"(?=[ +|=-]{1,400}NVIDIA-SMI \d| Driver Version)"
)
_BEGIN, _END = "<nvidia_smi_log", "</nvidia_smi_log>"

# Section titles in the list (lower case) → names in the XML, whose parser reads the rest.
_SECTIONS = name_table("smi_sections")
# Values with another name in the XML: "section/name" in lower case, the section as in the XML.
_VALUES, _OF_DRIVER = name_table("smi_values"), name_table("smi_driver")
_REASONS = {"idle": "gpu_idle", "sw power capping": "sw_power_cap"}


def read(text: Text) -> Facts:
    """Return the facts of the last such list in the text."""
    logs = [read_log(_tree(lines)) for lines in _logs(text.lines)]
    with_facts = [log for log in logs if log.driver_version or any(_has_facts(device) for device in log.devices)]
    if not with_facts:
        return {}
    last = next((log for log in reversed(with_facts) if log.devices), with_facts[-1])
    version = last.driver_version or next((log.driver_version for log in with_facts if log.driver_version), None)
    return sections(
        driver=Driver(installed=True, version=version, cuda_version=last.cuda_version, nvml_code=0),
        devices=tuple(filter(_has_facts, last.devices)),
        taken_at=time_of(text.flat),
    )


def read_xml(text: Text) -> Facts:
    """Return the facts of the last log in the text. Anything that is not valid XML is skipped."""
    for log in _xml_logs(text):
        if log.driver_version is not None or log.devices:
            driver = Driver(installed=True, version=log.driver_version, cuda_version=log.cuda_version, nvml_code=0)
            return sections(driver=driver, devices=log.devices)
    return {}


def _xml_logs(text: Text) -> Iterator[SmiReport]:
    """Yield the last log as it is in the text, and then without the quote marks around its lines.

    The declarations before the root are left out, and all entities with them.
    """
    for raw in (text.raw, "\n".join(text.lines)):
        _, found, rest = raw.rpartition(_BEGIN)
        inside, end, _ = rest.partition(_END)
        if found:
            try:
                yield parse_nvidia_smi_xml(found + inside + end, cut=True)
            except ValueError:
                continue


def _has_facts(device: Device) -> bool:
    return device != Device(nvml_index=device.nvml_index)


def _logs(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    lines = lines[:MOST_LINES]
    starts = [number for number, line in enumerate(lines) if "NVSMI LOG" in line][:16]
    edges = [0, *starts, len(lines)] if not starts else [*starts, len(lines)]
    return (lines[begin:end] for begin, end in pairwise(edges))


def _tree(lines: Sequence[str]) -> Element:
    """Return the lines as the XML of the same log.

    A log that is cut off at its beginning has no line for the GPU; its values belong to one without a name.
    """
    from xml.etree.ElementTree import Element, SubElement

    root = Element("nvidia_smi_log")
    gpu = unnamed = Element("gpu")
    stack: list[tuple[int, Element]] = []
    for line in lines:
        bus = _GPU.match(line)
        if bus:
            gpu = SubElement(root, "gpu")
            _add(gpu, ("pci", "pci_bus_id"), bus[1])
            stack = []
            continue
        match = _LINE.match(line)
        title = _TITLE.match(line) if match is None else None
        found = match or title
        if found is None:
            continue
        name, value = found[2].strip().lower(), (match[3] or "").strip() if match else ""
        if name in _OF_DRIVER:
            _add(root, (_OF_DRIVER[name],), value.partition("[")[0].strip())
            continue
        depth = len(found[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parent = stack[-1][1] if stack else gpu
        if name in _SECTIONS and (match is None or value in ("", "N/A", "None")):
            section = SubElement(parent if name in _NESTED else gpu, _SECTIONS[name])
            section.text = value
            stack = [*stack, (depth, section)][:DEEPEST]
        elif match:
            _value(gpu, parent, name, value)
    if gpu is unnamed and len(gpu):
        root.append(gpu)
    return root


_NESTED = (
    *("gpu link info", "pcie generation", "link width"),
    *("volatile", "aggregate", "single bit", "double bit", "health"),
)


def _value(gpu: Element, parent: Element, name: str, value: str) -> None:
    section = "" if parent is gpu else parent.tag
    if section == "processes":  # each begins with its number
        section = "process_info"
        if name == "process id":
            _add(parent, ("process_info",), "")
        if not len(parent):
            return
        parent = parent[-1]
    tag = _VALUES.get(f"{section}/{name}", name.replace(" ", "_"))
    if section in ("clocks_throttle_reasons", "clocks_event_reasons"):
        tag = f"{section.removesuffix('s')}_{_REASONS.get(name, tag)}"
    _add(parent, (tag,), value)


def _add(parent: Element, names: Sequence[str], value: str) -> None:
    from xml.etree.ElementTree import SubElement

    for name in names:
        parent = SubElement(parent, name)
    parent.text = value


def time_of(flat: str) -> str | None:
    """Return the time above the last table or list, read as UTC because it names no time zone.

    nvidia-smi prints the time of its call: "Fri Sep  2 21:54:31 2022".
    """
    for last in reversed([*_TIME.finditer(flat)]):
        date = f"{last['year']}-{_MONTHS.index(last['month']) + 1:02}-{int(last['day']):02}T{last['clock']}"
        with contextlib.suppress(ValueError):  # time.strptime would take 6 ms
            return f"{datetime.datetime.fromisoformat(date).isoformat()}Z"
    return None
