"""Each check ends in one of four outcomes, and its findings carry the facts that they name."""

from collections.abc import Iterator

from gpudoctor.model import (
    CudaVersion,
    Driver,
    Evidence,
    Finding,
    Outcome,
    ProbeReport,
    Python,
    Severity,
    Snapshot,
    Torch,
)
from gpudoctor.registry import Check, known
from gpudoctor.runner import run_checks, run_one


def finds(torch: Torch) -> Iterator[Finding]:
    yield Finding(severity=Severity.ERROR, summary="wrong", facts=("torch.cuda_version", "torch.build"))


def passes(driver: Driver, python: Python | None = None) -> Iterator[Finding]:
    assert python is None
    yield from ()


def needs(torch: Torch) -> Iterator[Finding]:
    known(torch.hip_version, "torch.hip_version")
    yield from ()


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


def test_a_crash_is_a_result_and_the_tools_fault() -> None:
    result = run_one(check(crashes, "torch"), TORCH)
    assert result.outcome is Outcome.CRASHED
    assert result.reason == "crashed, which is a fault of gpudoctor: TypeError: oops"


def test_evidence_that_names_no_fact_is_a_crash() -> None:
    assert run_one(check(names_no_fact, "torch"), TORCH).outcome is Outcome.CRASHED


def test_an_ignored_check_stays_visible() -> None:
    report = run_checks([check(finds, "torch"), check(needs, "torch")], TORCH, {"finds": "known since May"})
    assert [result.reason for result in report.skipped] == ["known since May", "torch.hip_version is unknown"]
    assert report.findings == ()


def test_a_run_that_could_check_nothing_has_no_verdict() -> None:
    assert run_checks([check(finds, "torch")], Snapshot()).verdict is None
    assert run_checks([], Snapshot()).verdict is None


def test_the_verdict_is_that_of_the_worst_finding() -> None:
    assert run_checks([check(finds, "torch")], TORCH).verdict == "error"
    assert run_checks([check(passes, "driver")], Snapshot(driver=Driver())).verdict == "healthy"
