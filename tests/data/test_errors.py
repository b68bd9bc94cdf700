"""What NVIDIA's catalogue says about Xid errors."""

import pytest

from gpudoctor.data.errors import xid_cause, xid_effect, xid_meaning
from gpudoctor.model import Xid


@pytest.mark.parametrize(
    ("number", "description", "action"),
    [
        pytest.param(8, "GPU stopped processing", "RESTART_APP", id="first of the catalogue"),
        pytest.param(79, "GPU has fallen off the bus", "RESTART_BM", id="off the bus"),
    ],
)
def test_an_xid(number: int, description: str, action: str) -> None:
    meaning = xid_meaning(number)
    assert meaning is not None
    assert meaning.description.casefold() == description.casefold()
    assert meaning.action == action
    assert meaning.investigation
    assert meaning.mnemonic


@pytest.mark.parametrize("number", [0, 7, 99999])
def test_a_number_that_the_catalogue_lacks(number: int) -> None:
    assert xid_meaning(number) is None


@pytest.mark.parametrize(
    ("number", "text", "effect"),
    [
        (79, "", "lost"),
        (48, "", "reset"),
        (171, "", "reset"),
        (63, "", "lasting"),
        (54, "", "lasting"),
        (106, "", "test"),
        (31, "", "program"),
        (4242, "", "program"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "program"),
    ],
)
def test_what_an_xid_means_for_its_device(number: int, text: str, effect: str) -> None:
    assert xid_effect(Xid(number=number, pci_address="", text=text)) == effect


def test_a_channel_that_ended_names_its_cause() -> None:
    ended = Xid(number=45, pci_address="0000:01:00.0", text="Ch 00000001 caused by previous Xid 149")
    assert xid_cause(ended).number == 149
    assert xid_cause(Xid(number=43, pci_address="", text=ended.text)).number == 43


EFFECTS = {
    "reset": [
        46,
        48,
        62,
        64,
        74,
        95,
        109,
        110,
        119,
        120,
        136,
        140,
        143,
        144,
        145,
        146,
        147,
        148,
        149,
        150,
        151,
        155,
        156,
        158,
        167,
        171,
        172,
    ],
    "lasting": [54, 63, 92, 94, 121, 157, 168],
    "lost": [79],
    "test": [106, 107],
}
"""Every Xid after which the device is lost, reset, faulty, or was tested; all others are of programs."""


def test_what_every_xid_means_for_its_device() -> None:
    effects = {number: xid_effect(Xid(number=number, pci_address="", text="")) for number in range(1, 200)}
    expected = {number: effect for effect, numbers in EFFECTS.items() for number in numbers}
    assert effects == {number: expected.get(number, "program") for number in effects}
