"""What the person already did, or cannot do."""

import re

import pytest

from gpudoctor.conclusions.attempts import attempts
from gpudoctor.symptoms.matching import recognise


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("I already tried rebooting, but no luck", "sudo reboot", id="reboot"),
        pytest.param("still the same after a reboot", "sudo reboot", id="after a reboot"),
        pytest.param("a restart did not help", "sudo reboot", id="a restart"),
        pytest.param(
            "I reinstalled nothing, but have reinstalled the NVIDIA driver", "sudo ubuntu-drivers install", id="driver"
        ),
        pytest.param("I cannot unset CUDA_VISIBLE_DEVICES", "unset CUDA_VISIBLE_DEVICES", id="unset"),
        pytest.param("I don't have sudo rights on the cluster", "sudo modprobe nvidia", id="no root"),
    ],
)
def test_what_was_tried(text: str, command: str) -> None:
    found = attempts(tuple(item.symptom for item in recognise(text)))
    assert any(re.search(pattern, command) for pattern in found.commands)


@pytest.mark.parametrize("text", ["please reboot the machine", "it works until I reboot", "install the driver first"])
def test_advice_of_others_is_no_attempt(text: str) -> None:
    assert attempts(tuple(item.symptom for item in recognise(text))).commands == ()
