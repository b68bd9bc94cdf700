import pytest

from gpudoctor.model import (
    Cupy,
    Device,
    Driver,
    DriverVersion,
    FoundProfile,
    Outcome,
    PackageVersion,
    Severity,
    Torch,
)
from gpudoctor.testing import run_check

GIB = 2**30
PROFILE = FoundProfile(
    device="cuda:0",
    workload="cnn",
    mode="training",
    fingerprint="device:NVIDIA_H200,memory:140.4GiB,driver:550.54.15,torch:2.13.0+cu130",
)


def machine(name: str = "NVIDIA H200", driver: str = "550.54.15", torch: str = "2.13.0+cu130") -> dict[str, object]:
    return {
        "devices": (Device(nvml_index=0, name=name, memory_total_bytes=int(140.4 * GIB)),),
        "driver": Driver(version=DriverVersion.parse(driver)),
        "torch": Torch(installed=True, version=PackageVersion(torch)),
        "cupy": Cupy(distributions=()),
    }


def test_the_machine_that_it_was_tuned_on() -> None:
    assert run_check("profile-stale", profile=PROFILE, **machine()).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("here", "words", "fact"),
    [
        (machine(name="NVIDIA H100"), "device NVIDIA_H200 (now NVIDIA_H100)", "devices[0].name"),
        (machine(driver="580.65.06"), "driver 550.54.15 (now 580.65.06)", "driver.version"),
        (machine(torch="2.14.1+cu130"), "torch 2.13.0+cu130 (now 2.14.1+cu130)", "torch.version"),
    ],
)
def test_each_part_that_differs_is_named_with_both_values(here: dict[str, object], words: str, fact: str) -> None:
    (finding,) = run_check("profile-stale", profile=PROFILE, **here).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == f"The profile gpudoctor.env was tuned on {words}"
    assert finding.facts == ("profile.fingerprint", fact)


def test_several_parts_are_one_finding() -> None:
    (finding,) = run_check("profile-stale", profile=PROFILE, **machine(driver="580.65.06", torch="2.14.1")).findings
    assert finding.facts == ("profile.fingerprint", "driver.version", "torch.version")


def test_the_remedy_tunes_the_same_work_again() -> None:
    own = FoundProfile(device="cuda:1", workload="src/train.py:Training", mode="", fingerprint="device:NVIDIA_H200")
    (finding,) = run_check("profile-stale", profile=own, devices=()).findings
    assert finding.summary.endswith("device NVIDIA_H200 (now none)")
    assert finding.remedies[0].commands == (
        "gpudoctor tune --workload src/train.py:Training --device cuda:1",
        "gpudoctor profile verify gpudoctor.env",
    )


def test_what_is_hostile_in_it_is_quoted() -> None:
    hostile = FoundProfile(device="cuda:0", workload="x; reboot", mode="inference", fingerprint="device:A")
    (finding,) = run_check("profile-stale", profile=hostile, devices=()).findings
    assert finding.remedies[0].commands[0] == "gpudoctor tune --workload 'x; reboot' --mode inference --device cuda:0"


def test_one_that_cannot_be_used_is_a_finding_too() -> None:
    problem = "its schema is 'gpudoctor/profile/9', this gpudoctor reads gpudoctor/profile/1"
    (finding,) = run_check("profile-stale", profile=FoundProfile(problem=problem)).findings
    assert finding.severity is Severity.WARNING
    assert finding.facts == ("profile.problem",)
    assert finding.remedies[0].commands[0] == "gpudoctor tune"


def test_an_unknown_part_is_passed_over() -> None:
    here = {**machine(), "driver": None, "cupy": None}
    assert run_check("profile-stale", profile=PROFILE, **here).outcome is Outcome.PASSED


def test_nothing_known_is_no_pass() -> None:
    result = run_check("profile-stale", profile=PROFILE)
    assert (result.outcome, result.reason) == (
        Outcome.SKIPPED,
        "everything that the profile was tuned on is unknown",
    )


def test_no_profile_is_no_pass() -> None:
    result = run_check("profile-stale", **machine())
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "profile: not known")


def test_a_profile_without_a_fingerprint_asks_nothing() -> None:
    result = run_check("profile-stale", profile=FoundProfile(fingerprint="", workload="mlp", device="cpu"))
    assert result.reason == "the profile does not say what it was tuned on"
