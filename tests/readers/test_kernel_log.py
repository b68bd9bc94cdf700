"""Lines of the kernel log in a text."""

import pytest

from gpudoctor.model import System, Xid
from gpudoctor.readers import kernel_log
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text
from tests.readers import pasted

LOST = Xid(number=79, pci_address="0000:02:00.0", text="pid=1234, GPU has fallen off the bus.")


def read(raw: str) -> Facts:
    return kernel_log.read(clean_text(raw, "report.txt"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, pid=1234, GPU has fallen off the bus.", id="dmesg"
        ),
        pytest.param(
            "[Mon Oct 14 10:00:00 2024] NVRM: Xid (PCI:0000:02:00): 79, pid=1234, GPU has fallen off the bus.",
            id="dmesg -T",
        ),
        pytest.param(
            "Oct 14 10:00:00 node kernel: NVRM: Xid (PCI:0000:02:00): 79, pid=1234, GPU has fallen off the bus.",
            id="journalctl",
        ),
        pytest.param("we see NVRM: Xid (PCI:0000:02:00):\n  79, pid=1234, GPU has fallen off the bus.", id="wrapped"),
    ],
)
def test_an_error(line: str) -> None:
    facts = read(line)
    assert facts["driver"].xids == (LOST,)
    assert facts["system"] == System(os="linux")


def test_several_in_one_line() -> None:
    line = "[ 1.000001] NVRM: Xid (PCI:0000:02:00): 48, DBE [ 1.000002] NVRM: Xid (PCI:0000:02:00): 63, row"
    assert [(xid.number, xid.text) for xid in read(line)["driver"].xids] == [(48, "DBE"), (63, "row")]


def test_messages_of_the_driver_alone() -> None:
    log = """[    2.100000] usb 1-1: new device
[    3.100000] nvidia: module verification failed: signature and/or required key missing - tainting kernel
[    3.200000] nvidia 0000:01:00.0: probe with driver nvidia failed with error -1
pip install nvidia-cublas-cu12
"""
    driver = read(log)["driver"]
    assert driver.kernel_messages == (
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "nvidia 0000:01:00.0: probe with driver nvidia failed with error -1",
    )
    assert driver.xids is None


@pytest.mark.parametrize(
    ("told", "numbers"),
    [
        ("After two hours dmesg shows Xid 79.", [79]),
        ("XID error: 48 and then Xid code 63", [48, 63]),
        ("DCGM: XID errors value 95 on GPU 3", [95]),
        ("There are no Xid errors", []),
        ("libxid 3.2", []),
    ],
)
def test_what_people_write_of_it(told: str, numbers: list[int]) -> None:
    driver = read(told).get("driver")
    assert [xid.number for xid in (driver.xids if driver else ())] == numbers


@pytest.mark.parametrize("text", ["", pasted.PIP_LIST, pasted.NVIDIA_SMI, "nvidia-smi works"])
def test_another_text_shows_nothing(text: str) -> None:
    assert read(text) == {}
