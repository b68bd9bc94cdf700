"""A machine is called healthy only if something proves it; without a fault and without proof the verdict is unknown."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpudoctor.engine import verdict
from gpudoctor.engine.checkup import exit_status
from gpudoctor.engine.runner import run_checks
from gpudoctor.engine.verdict import Policy
from gpudoctor.model import (
    CheckResult,
    Cupy,
    Driver,
    Finding,
    Fix,
    Outcome,
    ProbeReport,
    Proof,
    Report,
    Severity,
    Snapshot,
    Symptom,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.registry import Check
from gpudoctor.triage.understood import NO_FAULT
from tests.checks.test_root_causes_driver import CPU_ONLY, HEALTHY, NO_DRIVER, NOTHING
from tests.own_checks import own_checks

CHECKS = own_checks()
TABLE = """\
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0 Off |                  Off |
|  0%   38C    P8             12W /  450W |       2MiB /  24564MiB |      0%      Default |
"""
WORKS = "PyTorch version: 2.9.0+cu128\nIs CUDA available: True\nCUDA used to build PyTorch: 12.8\n"
VULNERABILITIES = "Vulnerability L1tf: Not affected\nVulnerability Spec store bypass: Mitigation; disabled via prctl\n"
CONSTANT = "RuntimeError: CUDA error: no CUDA-capable device is detected\n"
ODD = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\nOddError: the moon is full\n'
NOT_RUN = tuple(ProbeReport(section=s, state="not-run") for s in ("torch_runtime", "cupy_runtime"))
FAST = replace(HEALTHY, torch_runtime=None, cupy_runtime=None, reports=NOT_RUN)
WITHOUT_FRAMEWORKS = replace(
    HEALTHY, torch=Torch(installed=False), torch_runtime=None, cupy=Cupy(distributions=()), cupy_runtime=None
)


def live(snapshot: Snapshot, policy: Policy | None = None, checks: tuple[Check, ...] = CHECKS) -> Report:
    return run_checks(checks, snapshot, policy=policy or Policy())


def pasted(text: str) -> Report:
    return run_checks(CHECKS, read_texts([("report.txt", text.encode())]))


def crashes(driver: Driver) -> Iterator[Finding]:
    raise TypeError("oops")


CRASHING = Check(id="crashes", family="driver", sections=("driver",), optional=(), explains=(), function=crashes)


def selected(*ids: str) -> tuple[Check, ...]:
    return tuple(check for check in CHECKS if check.id in ids)


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        pytest.param(
            HEALTHY, "PyTorch 2.13.0+cu130 computed correctly on 1 GPU (NVIDIA GeForce RTX 4090", id="product"
        ),
        pytest.param(FAST, "not tried", id="--fast says what it did not try"),
    ],
)
def test_a_live_machine_is_healthy_with_proof(snapshot: Snapshot, words: str) -> None:
    report = live(snapshot)
    assert (report.verdict, report.triage, exit_status(report, "warning")) == ("healthy", None, 0)
    assert words in report.proof[0]


def test_the_driver_alone_is_proof_and_says_that_nothing_else_was_verified() -> None:
    report = run_checks(CHECKS, WITHOUT_FRAMEWORKS, {"torch-not-installed": "not needed here"})
    assert report.verdict == "healthy"
    assert "nothing else was verified" in report.proof[0]


def test_a_framework_that_computed_nothing_is_no_proof() -> None:
    runtime = replace(HEALTHY.torch_runtime or TorchRuntime(), precision_results=())
    snapshot = replace(HEALTHY, torch_runtime=runtime, cupy=Cupy(distributions=()), cupy_runtime=None)
    report = live(snapshot)
    assert (report.verdict, report.proof, exit_status(report, "error")) == ("unknown", (), 3)


def test_a_machine_of_which_nothing_is_known_is_unknown() -> None:
    report = live(Snapshot())
    assert (report.verdict, exit_status(report, "never")) == ("unknown", 3)
    assert report.triage is not None
    assert 1 <= len(report.triage.next_steps) <= 2
    assert len(report.triage.possible) <= 3


@pytest.mark.parametrize(
    ("gpu", "severity", "verdict", "status"),
    [
        ("auto", Severity.WARNING, "warning", 0),
        ("required", Severity.ERROR, "error", 1),
        ("optional", Severity.INFO, "healthy", 0),
    ],
)
def test_what_it_means_that_there_is_no_gpu(gpu: str, severity: Severity, verdict: str, status: int) -> None:
    report = live(CPU_ONLY, Policy(gpu=gpu))
    finding = next(finding for finding in report.findings if finding.check_id == "no-nvidia-gpu")
    assert (finding.severity, report.verdict, exit_status(report, "error")) == (severity, verdict, status)
    assert bool(report.proof) is (verdict == "healthy")
    assert (Fix("gpu-is-optional") in finding.fixes) is (gpu != "required")
    assert ("but one is required" in finding.summary) is (gpu == "required")


def test_what_needs_a_gpu_makes_its_absence_an_error() -> None:
    assert HEALTHY.system is not None
    snapshot = replace(HEALTHY, system=replace(HEALTHY.system, pci_gpus=()), driver=NOTHING, devices=(), **NO_DRIVER)
    report = live(snapshot)
    assert (report.findings[0].check_id, report.verdict) == ("no-nvidia-gpu", "error")


def test_the_policy_makes_no_pasted_report_worse() -> None:
    snapshot = read_texts([("report.txt", b"I don't have an NVIDIA GPU, only Intel graphics.")])
    severities = [
        [finding.severity for finding in run_checks(CHECKS, snapshot, policy=Policy(gpu=gpu)).findings]
        for gpu in ("auto", "required", "optional")
    ]
    assert severities[0] == severities[1] == severities[2]


@pytest.mark.parametrize(
    ("ids", "verdict"),
    [
        pytest.param(("shm-too-small", "driver-too-old"), "healthy", id="both passed"),
        pytest.param(("wsl-driver-problem",), "unknown", id="none had to answer"),
    ],
)
def test_a_selection_is_healthy_if_it_passed(ids: tuple[str, ...], verdict: str) -> None:
    report = live(HEALTHY, Policy(selected=True), selected(*ids))
    assert report.verdict == verdict
    assert all("nothing else was checked" in sentence for sentence in report.proof)


def test_a_selected_check_that_could_not_answer_needs_proof_from_elsewhere() -> None:
    checks = selected("driver-too-old", "gpu-throttled")
    assert live(HEALTHY, Policy(selected=True), checks).verdict == "healthy"
    silent = replace(HEALTHY, devices=None)
    report = live(silent, Policy(selected=True), checks)
    assert (report.passed, report.verdict) == (("driver-too-old",), "healthy")
    assert "computed correctly" in report.proof[0]
    report = live(replace(silent, torch_runtime=None, cupy_runtime=None), Policy(selected=True), checks)
    assert report.verdict == "unknown"


def test_an_ignored_check_need_not_pass() -> None:
    checks = selected("gpu-throttled", "driver-too-old")
    ignored = {"gpu-throttled": "ignored on the command line"}
    assert run_checks(checks, HEALTHY, ignored, policy=Policy(selected=True)).verdict == "healthy"
    everything = dict.fromkeys(("gpu-throttled", "driver-too-old"), "ignored on the command line")
    assert run_checks(checks, HEALTHY, everything, policy=Policy(selected=True)).verdict == "unknown"


def test_a_crashed_check_leaves_no_machine_healthy() -> None:
    report = live(HEALTHY, checks=(*CHECKS, CRASHING))
    assert (report.verdict, report.proof, exit_status(report, "error")) == ("unknown", (), 3)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param(WORKS, "healthy", id="PyTorch sees the GPU"),
        pytest.param(WORKS + VULNERABILITIES, "healthy", id="words of trouble that a tool prints"),
        pytest.param(WORKS + "but it is not used, why?", "unknown", id="words of trouble that somebody writes"),
        pytest.param(TABLE, "unknown", id="a driver alone proves nothing"),
        pytest.param(WORKS + ODD, "unknown", id="an error that nobody knows"),
        pytest.param("hello", "unknown", id="no report at all"),
    ],
)
def test_a_pasted_report(text: str, verdict: str) -> None:
    report = pasted(text)
    assert report.verdict == verdict
    assert bool(report.proof) is (verdict == "healthy")
    assert (report.triage is not None) is (verdict == "unknown")


def test_a_failure_that_no_finding_explains_is_never_healthy() -> None:
    assert pasted(CONSTANT + "I have an RTX 3060, ubuntu 22.04\n").verdict != "healthy"
    assert pasted(WORKS + CONSTANT).verdict != "healthy"


FAILED = Symptom(kind="torch-cuda-error", library="torch", text="CUDA error", fact="symptoms[0].text")
ODD_ONE = replace(FAILED, kind="unknown-error")
RESTS = Finding(check_id="a", severity=Severity.INFO, summary="", facts=("symptoms[0].text",))
ELSEWHERE = replace(RESTS, facts=("symptoms[1].text",))


@pytest.mark.parametrize(
    ("failures", "findings", "unexplained"),
    [
        ((), (), False),
        ((FAILED,), (RESTS,), False),
        ((FAILED,), (ELSEWHERE, RESTS), False),
        ((FAILED,), (ELSEWHERE,), True),
        ((FAILED,), (), True),
        ((ODD_ONE,), (RESTS,), True),
        ((FAILED, replace(FAILED, fact="symptoms[1].text")), (RESTS,), True),
    ],
)
def test_a_failure_is_explained_by_a_finding_that_rests_on_it(
    failures: tuple[Symptom, ...], findings: tuple[Finding, ...], unexplained: bool
) -> None:
    assert verdict._unexplained(Proof(sentences=("it works",), failures=failures), findings) is unexplained


def result(check_id: str, outcome: Outcome, *, applicable: bool = True) -> CheckResult:
    return CheckResult(check_id=check_id, outcome=outcome, applicable=applicable)


@pytest.mark.parametrize(
    ("results", "answered"),
    [
        ([], ""),
        ([result("a", Outcome.PASSED)], "a"),
        ([result("a", Outcome.PASSED), result("b", Outcome.FOUND)], "a, b"),
        ([result(name, Outcome.PASSED) for name in "abc"], "a, b, c"),
        ([result(name, Outcome.PASSED) for name in "abcd"], "a, b, 2 more checks"),
        ([result("a", Outcome.PASSED), result("b", Outcome.SKIPPED)], ""),
        ([result("a", Outcome.PASSED), result("b", Outcome.SKIPPED, applicable=False)], "a"),
        ([result("b", Outcome.SKIPPED, applicable=False)], ""),
    ],
)
def test_what_selected_checks_answer_together(results: list[CheckResult], answered: str) -> None:
    told = verdict._answered(results)
    assert told == ((f"no problem found by {answered}; nothing else was checked",) if answered else ())


@pytest.mark.parametrize(
    ("gpu", "severities"), [("auto", {}), ("required", {"a": Severity.ERROR}), ("optional", {"a": Severity.INFO})]
)
def test_what_it_means_that_no_gpu_can_be_used(gpu: str, severities: dict[str, Severity]) -> None:
    none = Finding(check_id="a", severity=Severity.WARNING, summary="", no_usable_gpu=True)
    assert Policy(gpu=gpu).severities((none, replace(none, check_id="b", no_usable_gpu=False))) == severities


def test_an_error_of_the_program_itself_is_a_fault_that_is_there_now() -> None:
    text = (
        "Would it be possible to have a docs page on this? Everything works on my GPU, thanks for the great tool. "
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x2048 and 512x10)"
    )
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    assert report.triage is not None
    assert report.triage.answer == "program-error"
    assert NO_FAULT not in report.triage.understood
    assert not any(finding.summary.startswith("Mentioned") for finding in report.findings)
