"""What a profile was tuned on, in one value."""

from dataclasses import replace

from gpudoctor.conclusions.fingerprint import parts_of
from gpudoctor.model.tuning import TunedDevice
from gpudoctor.profiles.fingerprint import fingerprint_of
from tests.profiles.samples import FINGERPRINT, H200


def test_it_can_be_read() -> None:
    assert fingerprint_of(H200) == FINGERPRINT


def test_what_is_not_known_or_not_there_is_left_out() -> None:
    bare = TunedDevice(kind="cuda", name="Tesla T4")
    assert fingerprint_of(bare) == "device:Tesla_T4"
    assert fingerprint_of(replace(H200, kind="cpu", name="EPYC", cupy_version=None)) == "device:cpu,torch:2.13.0+cu130"


def test_a_separator_in_a_name_does_not_make_another_part() -> None:
    odd = TunedDevice(kind="cuda", name="A,torch:9", driver_version="x,y")
    assert parts_of(fingerprint_of(odd)) == {"device": "A_torch_9", "driver": "x_y"}
