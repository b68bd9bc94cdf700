"""The XML of nvidia-smi anywhere in a text."""

import time

import pytest

from gpudoctor.model import DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import MIB
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.nvidia_smi_query import read_xml
from gpudoctor.readers.text import clean_text
from tests.readers import pasted

XML = pasted.NVIDIA_SMI_XML


def read(raw: str) -> Facts:
    return read_xml(clean_text(raw, "report.txt"))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(XML, id="alone"),
        pytest.param(f"$ nvidia-smi -q -x\n{XML}\nIt fails then.", id="between other lines"),
        pytest.param("\n".join(f"> {line}" for line in XML.splitlines()), id="quoted"),
        pytest.param(XML.replace("\n", ""), id="one line"),
        pytest.param(XML[: XML.index("<used>")], id="cut off"),
    ],
)
def test_what_it_shows(raw: str) -> None:
    facts = read(raw)
    assert facts["driver"].version == DriverVersion((535, 183, 1))
    assert [(found.name, found.memory_total_bytes) for found in facts["devices"]] == [("NVIDIA A10", 23028 * MIB)]


def test_the_last_of_two() -> None:
    assert read(XML + XML.replace("535.183.01", "550.54.15"))["driver"].version == DriverVersion((550, 54, 15))


def test_new_names_of_the_versions() -> None:
    assert read(XML.replace("driver_version", "kmd_version"))["driver"].version == DriverVersion((535, 183, 1))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("<nvidia_smi_log>&a;</nvidia_smi_log>", id="entity"),
        pytest.param('<nvidia_smi_log><!ENTITY a "b"></nvidia_smi_log>', id="declaration"),
        pytest.param("<nvidia_smi_log" + "<a>" * 100_000, id="no XML"),
        pytest.param("<nvidia_smi_log>" + "<a>" * 1_000_000, id="too many elements"),
        pytest.param("<nvidia_smi_log>" + "<a>" * 300_000, id="too deep"),
    ],
)
def test_hostile_xml_is_refused_at_once(raw: str) -> None:
    began = time.process_time()
    assert read(raw) == {}
    assert time.process_time() - began < 15.0  # generous; it takes some tenths of a second


def test_entities_before_the_root_are_not_read() -> None:
    bomb = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    assert read(bomb + XML.partition("?>")[2].replace("NVIDIA A10", "&b;")) == {}
