"""A profile is variables, and the variables are the profile again."""

import pytest

from gpudoctor.model.profile import Profile
from gpudoctor.parsers.profile_variables import BadVariable, all_variables, allowed, profile_from
from tests.profiles.samples import LEAST, PROFILE

VARIABLES = all_variables(LEAST)


@pytest.mark.parametrize("profile", [PROFILE, LEAST], ids=["whole", "least"])
def test_there_and_back(profile: Profile) -> None:
    assert profile_from(all_variables(profile)) == profile


def test_the_names_that_are_always_there() -> None:
    assert VARIABLES == {
        "GPUDOCTOR_SCHEMA": "gpudoctor/profile/1",
        "GPUDOCTOR_DEVICE": "cpu",
        "GPUDOCTOR_PRECISION": "fp32",
        "GPUDOCTOR_BATCH_SIZE": "8",
        "GPUDOCTOR_MAX_BATCH_SIZE": "",
        "GPUDOCTOR_WORKLOAD": "mlp",
        "GPUDOCTOR_FINGERPRINT": "device:cpu",
        "GPUDOCTOR_CHANNELS_LAST": "0",
        "GPUDOCTOR_CUDNN_BENCHMARK": "0",
        "GPUDOCTOR_COMPILE": "0",
    }


def test_a_character_that_a_value_cannot_hold_is_replaced() -> None:
    assert allowed("NVIDIA RTX\t6000 (é)") == "NVIDIA_RTX_6000____"
    assert allowed("a$b`c\"d'e\\f\ng") == "a_b_c_d_e_f_g"
    assert allowed("train/step.py:Training-2,a+b") == "train/step.py:Training-2,a+b"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("GPUDOCTOR_BATCH_SIZE", "0", "GPUDOCTOR_BATCH_SIZE is '0', not a whole number from 1 on"),
        ("GPUDOCTOR_BATCH_SIZE", "-3", "GPUDOCTOR_BATCH_SIZE is '-3', not a whole number from 1 on"),
        ("GPUDOCTOR_BATCH_SIZE", "٣", "GPUDOCTOR_BATCH_SIZE is '٣', not a whole number from 1 on"),
        ("GPUDOCTOR_BATCH_SIZE", "9" * 5000, f"GPUDOCTOR_BATCH_SIZE is '{'9' * 80}', not a whole number from 1 on"),
        ("GPUDOCTOR_MAX_BATCH_SIZE", "many", "GPUDOCTOR_MAX_BATCH_SIZE is 'many', not a whole number from 1 on"),
        ("GPUDOCTOR_DEVICE", "cuda", "GPUDOCTOR_DEVICE is 'cuda', not cuda:N, cpu or mps"),
        ("GPUDOCTOR_COMPILE", "yes", "GPUDOCTOR_COMPILE is 'yes', not 0 or 1"),
        ("GPUDOCTOR_THROUGHPUT", "1e3", "GPUDOCTOR_THROUGHPUT is '1e3', not a decimal number"),
        (
            "GPUDOCTOR_PRECISION",
            "fp8",
            "GPUDOCTOR_PRECISION is 'fp8', not one of fp32, tf32, bf16, fp16, complex128, complex64",
        ),
        (
            "GPUDOCTOR_SCHEMA",
            "gpudoctor/profile/2",
            "its schema is 'gpudoctor/profile/2', this gpudoctor reads gpudoctor/profile/1",
        ),
        ("OMP_NUM_THREADS", "4,2", "OMP_NUM_THREADS is '4,2', not a whole number from 1 on"),
    ],
)
def test_a_value_that_does_not_fit_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(BadVariable) as caught:
        profile_from({**VARIABLES, name: value})
    assert (caught.value.name, str(caught.value)) == (name, message)


@pytest.mark.parametrize("name", ["GPUDOCTOR_SCHEMA", "GPUDOCTOR_DEVICE", "GPUDOCTOR_FINGERPRINT"])
def test_a_missing_one_is_named(name: str) -> None:
    with pytest.raises(BadVariable, match=f"^{name} is missing"):
        profile_from({other: value for other, value in VARIABLES.items() if other != name})


def test_a_name_of_a_later_version_is_passed_over() -> None:
    assert profile_from({**VARIABLES, "GPUDOCTOR_SPEED_OF_LIGHT": "299792458"}) == LEAST


def test_a_number_that_is_too_long_is_none() -> None:
    assert profile_from({**VARIABLES, "GPUDOCTOR_BATCH_SIZE": str(10**12)})
    with pytest.raises(BadVariable):
        profile_from({**VARIABLES, "GPUDOCTOR_BATCH_SIZE": str(10**12 + 1)})
