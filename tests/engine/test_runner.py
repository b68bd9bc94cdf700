"""Each check ends in one of four outcomes, and its findings carry the facts that they name."""

from collections.abc import Iterator

import pytest

from gpudoctor.engine import runner
from gpudoctor.engine.runner import run_checks, run_one
from gpudoctor.engine.verdict import Policy
from gpudoctor.model import (
    CheckResult,
    CudaVersion,
    Device,
    Driver,
    Evidence,
    Finding,
    Outcome,
    Package,
    PackageVersion,
    ProbeReport,
    Python,
    Severity,
    Snapshot,
    Torch,
)
from gpudoctor.registry import Check, known, skip_unless


def finds(torch: Torch) -> Iterator[Finding]:
    yield Finding(severity=Severity.ERROR, summary="wrong", facts=("torch.cuda_version", "torch.build"))


def passes(driver: Driver, python: Python | None = None) -> Iterator[Finding]:
    assert python is None
    yield from ()


def needs(torch: Torch) -> Iterator[Finding]:
    known(torch.hip_version, "torch.hip_version")
    yield from ()


def finds_and_asks_on(torch: Torch) -> Iterator[Finding]:
    yield from finds(torch)
    known(torch.hip_version, "torch.hip_version")


def asks_nothing(torch: Torch) -> Iterator[Finding]:
    skip_unless(False, "this is not WSL")
    yield from ()


def names_parts(python: Python) -> Iterator[Finding]:
    facts = ("python.packages[0].version", "devices[0].name")
    yield Finding(severity=Severity.ERROR, summary="wrong", facts=facts)


def crashes(torch: Torch) -> Iterator[Finding]:
    raise TypeError("oops")


def names_no_fact(torch: Torch) -> Iterator[Finding]:
    yield Finding(severity=Severity.ERROR, summary="wrong", facts=("torch.colour",))


def check(function: object, *sections: str, optional: tuple[str, ...] = ()) -> Check:
    name = getattr(function, "__name__", "").replace("_", "-")
    return Check(id=name, family="torch", sections=sections, optional=optional, explains=(), function=function)  # type: ignore[arg-type]


TORCH = Snapshot(torch=Torch(build="cuda", cuda_version=CudaVersion(12, 8)))


def test_evidence_is_looked_up() -> None:
    result = run_one(check(finds, "torch"), TORCH)
    assert result.outcome is Outcome.FOUND
    (finding,) = result.findings
    assert finding.check_id == "finds"
    assert finding.evidence == (
        Evidence(fact="torch.cuda_version", value="12.8", source="torch/version.py"),
        Evidence(fact="torch.build", value="cuda", source="torch/version.py"),
    )


def test_an_optional_section_may_be_unknown() -> None:
    result = run_one(check(passes, "driver", optional=("python",)), Snapshot(driver=Driver()))
    assert result.outcome is Outcome.PASSED


def test_an_unknown_section_skips_with_the_reason_of_its_probe() -> None:
    failed = ProbeReport(section="torch", state="failed", detail="killed by SIGSEGV\nlast words")
    result = run_one(check(finds, "torch"), Snapshot(reports=(failed,)))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch: failed (killed by SIGSEGV)")


def test_an_unknown_fact_skips() -> None:
    result = run_one(check(needs, "torch"), TORCH)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch.hip_version is unknown")


def test_what_was_found_before_an_unknown_fact_stays() -> None:
    result = run_one(check(finds_and_asks_on, "torch"), TORCH)
    assert (result.outcome, len(result.findings)) == (Outcome.FOUND, 1)


def test_a_crash_is_a_result_and_the_tools_fault() -> None:
    result = run_one(check(crashes, "torch"), TORCH)
    assert result.outcome is Outcome.CRASHED
    assert result.reason == "crashed, which is a bug in gpudoctor: TypeError: oops"


def test_evidence_that_names_no_fact_is_a_crash() -> None:
    assert run_one(check(names_no_fact, "torch"), TORCH).outcome is Outcome.CRASHED


def test_an_ignored_check_stays_visible() -> None:
    report = run_checks([check(finds, "torch"), check(needs, "torch")], TORCH, {"finds": "known since May"})
    assert [result.reason for result in report.skipped] == ["known since May", "torch.hip_version is unknown"]
    assert report.findings == ()


def test_a_run_that_could_check_nothing_has_the_verdict_unknown() -> None:
    for checks in ([check(finds, "torch")], []):
        report = run_checks(checks, Snapshot())
        assert (report.verdict, report.proof) == ("unknown", ())
        assert report.triage is not None
        assert report.triage.next_steps


def test_the_verdict_is_that_of_the_worst_finding() -> None:
    report = run_checks([check(finds, "torch")], TORCH)
    assert (report.verdict, report.proof, report.triage) == ("error", (), None)


def test_a_check_that_passes_is_no_proof() -> None:
    report = run_checks([check(passes, "driver")], Snapshot(driver=Driver()))
    assert (report.passed, report.verdict) == (("passes",), "unknown")


def test_a_question_that_does_not_arise_differs_from_one_without_an_answer() -> None:
    result = run_one(check(asks_nothing, "torch"), TORCH)
    assert (result.outcome, result.reason, result.applicable) == (Outcome.SKIPPED, "this is not WSL", False)
    assert run_one(check(needs, "torch"), TORCH).applicable is True


@pytest.mark.parametrize("state", ["failed", "not-run"])
def test_a_section_that_was_not_read_skips_its_checks(state: str) -> None:
    snapshot = Snapshot(reports=(ProbeReport(section="torch", state=state),))
    result = run_one(check(finds, "torch"), snapshot)
    assert (result.reason, result.applicable) == (f"torch: {state}", True)


@pytest.mark.parametrize(("detail", "reason"), [("", "there is no torch"), ("no folder torch", "no folder torch")])
def test_an_absent_section_says_why(detail: str, reason: str) -> None:
    snapshot = Snapshot(reports=(ProbeReport(section="torch", state="absent", detail=detail),))
    result = run_one(check(finds, "torch"), snapshot)
    assert (result.reason, result.applicable) == (reason, False)


def test_the_source_of_a_part_is_that_of_the_whole() -> None:
    package = Package(name="torch", version=PackageVersion("2.14.1"))
    snapshot = Snapshot(python=Python(packages=(package,)), devices=(Device(nvml_index=0, name="NVIDIA A10"),))
    (finding,) = run_one(check(names_parts, "python"), snapshot).findings
    assert [evidence.source for evidence in finding.evidence] == ["package metadata", "devices"]


def wants(torch: Torch) -> Iterator[Finding]:
    yield Finding(severity=Severity.ERROR, summary="not met", same_fault_as=("finds", "passes"))


def others(torch: Torch) -> Iterator[Finding]:
    yield Finding(severity=Severity.ERROR, summary="something else")


def test_a_cause_that_nobody_selected_is_shown_if_it_explains_a_finding() -> None:
    causes = (check(finds, "torch"), check(passes, "torch"), check(others, "torch"))
    report = run_checks((check(wants, "torch"),), TORCH, policy=Policy(selected=True, causes=causes))
    assert [(finding.check_id, finding.caused_by) for finding in report.findings] == [
        ("finds", None),
        ("wants", "finds"),
    ]
    assert [result.check_id for result in report.results] == ["wants", "finds"]


def test_of_what_else_was_found_only_what_explains_something_stays() -> None:
    explained, cause, bystander = (
        Finding(check_id="a", severity=Severity.ERROR, summary="", caused_by="b"),
        Finding(check_id="b", severity=Severity.ERROR, summary=""),
        Finding(check_id="c", severity=Severity.ERROR, summary=""),
    )
    results = tuple(CheckResult(check_id=name, outcome=Outcome.FOUND) for name in ("b", "c"))
    findings = (explained, cause, bystander)
    assert runner._without_bystanders(findings, results) == (explained, cause)
    assert runner._without_bystanders(findings, ()) == findings
    assert runner._explaining(findings, results) == results[:1]
