"""The XML of `nvidia-smi -q -x`, anywhere in a text."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.model import Driver
from gpudoctor.parsers.nvidia_smi_xml import SmiReport, parse_nvidia_smi_xml
from gpudoctor.readers.facts import Facts, sections
from gpudoctor.readers.text import Text

SOURCE = "nvidia-smi -q -x"
_BEGIN = "<nvidia_smi_log"
_END = "</nvidia_smi_log>"


def read(text: Text) -> Facts:
    """Return what the last log in the text tells. What cannot be read as XML is passed over."""
    if _BEGIN not in text.lowered:
        return {}
    for log in _logs(text):
        if log.driver_version is not None or log.devices:
            driver = Driver(installed=True, version=log.driver_version, cuda_version=log.cuda_version, nvml_code=0)
            return sections(driver=driver, devices=log.devices)
    return {}


def _logs(text: Text) -> Iterator[SmiReport]:
    """Yield the last log as it stands in the text, and then without the quote marks around its lines.

    The declarations before the root, and with them all entities, are left out.
    """
    for raw in (text.raw, "\n".join(text.lines)):
        _, found, rest = raw.rpartition(_BEGIN)
        inside, end, _ = rest.partition(_END)
        if found:
            try:
                yield parse_nvidia_smi_xml(found + inside + end, cut=True)
            except ValueError:
                continue
