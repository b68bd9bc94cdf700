"""What tuning recommends becomes a profile; the user's own variables are filled in."""

import re
from dataclasses import replace

import pytest

from gpudoctor.conclusions.fingerprint import parts_of
from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import Settings, TunedDevice, Tuning
from gpudoctor.profiles.from_tuning import check_assignments, fingerprint_of, profile_of
from tests.profiles.samples import FINGERPRINT, H200, PROFILE, RECOMMENDATION, TUNING


def own(*assignments: str, tuning: Tuning = TUNING) -> dict[str, str]:
    return dict(profile_of(tuning, assignments).own)


def frameworks(precision: str, settings: Settings, torch_version: str | None = "2.13.0+cu130") -> dict[str, str]:
    advice = replace(RECOMMENDATION, precision=precision, settings=settings)
    device = replace(H200, torch_version=torch_version)
    return dict(profile_of(replace(TUNING, device=device, recommendation=advice)).frameworks)


def test_the_recommendation_becomes_a_profile() -> None:
    profile = profile_of(TUNING, ["GPU_BATCH_SIZE={batch_size}"], created_at="2026-11-21T13:15:34Z")
    assert profile == replace(PROFILE, warnings=("few repeats",))


def test_it_says_when_it_was_made() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", profile_of(TUNING).created_at)


def test_the_users_own_names_take_any_field() -> None:
    assert own(
        "A={precision}", "B=torch.{dtype}", "C={device_name}/{batch_size}-{max_batch_size}", "D=fixed", "E="
    ) == {
        "A": "bf16",
        "B": "torch.bfloat16",
        "C": "NVIDIA_H200/256-900",
        "D": "fixed",
        "E": "",
    }


def test_a_field_without_a_value_is_empty() -> None:
    unlimited = replace(RECOMMENDATION, max_batch_size=None, settings=Settings())
    bare = replace(TUNING, recommendation=unlimited)
    assert own("A={max_batch_size}", "B={workers}", tuning=bare) == {"A": "", "B": ""}


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["BATCH"], "--set BATCH: not of the form NAME=value"),
        (["1A=2"], "--set 1A=2: not of the form NAME=value"),
        (["A B=2"], "--set A B=2: not of the form NAME=value"),
        (["A=1", "A=2"], "--set A=2: A is set twice"),
        (["OMP_NUM_THREADS=4"], "--set OMP_NUM_THREADS=4: OMP_NUM_THREADS is set by the profile itself"),
        (["GPUDOCTOR_X=4"], "--set GPUDOCTOR_X=4: GPUDOCTOR_X is set by the profile itself"),
        (["A={batchsize}"], "--set A={batchsize}: there is no {batchsize}; there are device, precision, batch_size, "),
        (["A={}"], "--set A={}: there is no {}; there are device, "),
        (["A={batch_size!r}"], "--set A={batch_size!r}: there is no {batch_size!r}; there are device, "),
        (["A={batch_size"], "--set A={batch_size: a value may contain only A-Z a-z 0-9 _ . , : / + - and {fields}"),
        (["A=a b"], "--set A=a b: a value may contain only A-Z a-z 0-9 _ . , : / + - and {fields}"),
        (["A=$(reboot)"], "--set A=$(reboot): a value may contain only A-Z a-z 0-9 _ . , : / + - and {fields}"),
    ],
)
def test_a_wrong_assignment_is_known_before_the_tuning(assignments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_assignments(assignments)
    assert str(caught.value).startswith(message)


def test_without_a_recommendation_there_is_no_profile() -> None:
    with pytest.raises(UsageError, match="no setting is recommended"):
        profile_of(replace(TUNING, recommendation=None))


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.11.0+cu130", "PYTORCH_ALLOC_CONF"),
        ("2.10.0+cu128", "PYTORCH_CUDA_ALLOC_CONF"),
        ("2.9.1+cu128", "PYTORCH_CUDA_ALLOC_CONF"),
        ("1.13.1", "PYTORCH_CUDA_ALLOC_CONF"),
        (None, "PYTORCH_CUDA_ALLOC_CONF"),
    ],
)
def test_the_allocator_is_set_by_the_name_that_the_tuned_release_reads(version: str | None, name: str) -> None:
    settings = Settings(allocator="expandable_segments:True")
    assert frameworks("bf16", settings, version) == {name: "expandable_segments:True"}


def test_threads_and_tf32_are_set_by_what_the_libraries_read() -> None:
    assert frameworks("fp32", Settings()) == {}
    assert frameworks("fp32", Settings(threads=8)) == {"OMP_NUM_THREADS": "8"}
    assert frameworks("tf32", Settings()) == {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}


def test_the_device_is_named_as_torch_names_it() -> None:
    def device(kind: str, index: int) -> str:
        return profile_of(replace(TUNING, device=replace(H200, kind=kind, index=index))).device

    assert (device("cuda", 3), device("cpu", 0), device("mps", 0)) == ("cuda:3", "cpu", "mps")


def test_a_fingerprint_can_be_read() -> None:
    assert fingerprint_of(H200) == FINGERPRINT


def test_a_fingerprint_leaves_out_what_is_not_known_or_not_there() -> None:
    bare = TunedDevice(kind="cuda", name="Tesla T4")
    assert fingerprint_of(bare) == "device:Tesla_T4"
    assert fingerprint_of(replace(H200, kind="cpu", name="EPYC", cupy_version=None)) == "device:cpu,torch:2.13.0+cu130"


def test_a_separator_in_a_name_makes_no_other_part_of_a_fingerprint() -> None:
    odd = TunedDevice(kind="cuda", name="A,torch:9", driver_version="x,y")
    assert parts_of(fingerprint_of(odd)) == {"device": "A_torch_9", "driver": "x_y"}


def test_a_search_that_the_budget_ended_is_in_the_profile() -> None:
    assert profile_of(TUNING).search == ""
    assert profile_of(replace(TUNING, interrupted="budget")).search == "cut-short"
