"""What NVIDIA's catalogue says about Xid errors."""

import pytest

from gpudoctor.data import xid_meaning


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
