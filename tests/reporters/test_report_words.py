from dataclasses import replace

import pytest

from gpudoctor.model import Evidence, Finding, Report, Severity, Triage
from gpudoctor.reporters.report_words import (
    advice,
    evidence_lines,
    headline,
    labels,
    problems,
    question_lines,
    questions,
    skipped_groups,
)
from tests.reporters import reports

INFO_FIRST = (  # no GPU is needed, and still one is required
    Finding(check_id="no-nvidia-gpu", severity=Severity.INFO, subject="GPU", summary="none"),
    Finding.error("torch.cuda", "required", (), check_id="requirement-unmet", caused_by="no-nvidia-gpu"),
)
UNEXPLAINED = "the report shows that the GPU is seen or used, and something that gpudoctor cannot explain"
NO_PROOF = "no problem found, but nothing proves that the GPU works"


@pytest.mark.parametrize(
    ("report", "kind", "text"),
    [
        (reports.ERROR, "error", "1 error, 1 warning; fix driver-library-mismatch first"),
        (reports.WARNING, "warning", "1 warning: shm-too-small"),
        (replace(reports.ERROR, findings=INFO_FIRST), "error", "1 error: requirement-unmet"),
        (reports.HEALTHY, "healthy", f"healthy: {reports.PROOF}"),
        (replace(reports.UNKNOWN, triage=Triage(works=True)), "unknown", f"unknown: {UNEXPLAINED}"),
        (
            replace(reports.UNKNOWN, triage=Triage(guess="runs-on-cpu")),
            "unknown",
            "unknown: probably runs-on-cpu, but no output of a program confirms it",
        ),
        (reports.UNKNOWN, "unknown", "unknown: too little is known for a verdict"),
        (reports.NOTHING, "unknown", "unknown: no check ran"),
        (reports.report(others=reports.OTHERS), "unknown", f"unknown: {NO_PROOF}"),
        (replace(reports.CRASHED, findings=()), "unknown", "unknown: 1 check crashed"),
    ],
)
def test_headline(report: Report, kind: str, text: str) -> None:
    assert (headline(report).kind, headline(report).text) == (kind, text)


def test_an_unknown_verdict_says_what_to_do_next() -> None:
    assert question_lines(reports.UNKNOWN) == [
        "Understood:",
        "  Ubuntu 24.04.1 LTS",
        '  PyTorch finds no GPU: "no CUDA-capable device is detected"',
        "Missing for a verdict:",
        "  the driver version",
        "Possible causes, most frequent first:",
        "  driver-missing: Without a driver no program sees it. Check: nvidia-smi fails.",
        "Next: run this, then paste the output into gpudoctor check --from -:",
        "    nvidia-smi",
        "  Shows whether the driver answers. Run it on the host.",
        "    lspci -nnk -d 10de:",
        "  Shows whether the GPU is on the PCI bus.",
    ]


@pytest.mark.parametrize("report", [reports.HEALTHY, reports.WARNING, reports.ERROR, reports.NOTHING])
def test_a_verdict_asks_nothing(report: Report) -> None:
    assert questions(report) == []


def test_what_follows_stands_with_its_cause_and_advice_apart() -> None:
    first, second = problems(reports.ERROR.findings)
    assert (first.finding, first.consequences) == (reports.MISMATCH, reports.CONSEQUENCES)
    assert (second.finding, second.consequences) == (reports.SHM, ())
    assert advice(reports.ERROR.findings) == [reports.PERSISTENCE, reports.AMP]


def test_what_follows_from_a_cause_that_is_not_there_is_not_lost() -> None:
    (alone,) = problems(reports.CONSEQUENCES[:1])
    assert alone.finding == reports.CONSEQUENCES[0]


def test_checks_of_one_reason_are_one_group() -> None:
    results = (*reports.skipped("not WSL", "a"), *reports.skipped("no driver", "b", "c"))
    others = reports.not_applicable("not a Mac", "d")
    assert skipped_groups((*results, *others), applicable=True) == [("no driver", ["b", "c"]), ("not WSL", ["a"])]
    assert skipped_groups((*results, *others), applicable=False) == [("not a Mac", ["d"])]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("driver.version is unknown", "not known (driver version)"),
        ("images: not-run (not in the report)", "not known (images)"),
        ("taken_at: not known", "not known (time of the report)"),
        ("whether the device supports bf16 is unknown", "whether the device supports bf16 is unknown"),
    ],
)
def test_a_reason_names_no_path_of_a_fact(reason: str, shown: str) -> None:
    assert skipped_groups(reports.skipped(reason, "a"), applicable=True) == [(shown, ["a"])]


def test_a_long_text_keeps_its_first_lines() -> None:
    evidence = Evidence(fact="reports[0].detail", value="a\nb\nc\nd\ne\nf", source="reports")
    assert evidence_lines(evidence) == ["probe output: a", "b", "c", "d", "and 2 more lines"]
    assert evidence_lines(replace(evidence, value="a", source="dmesg")) == ["probe output: a (dmesg)"]


def test_the_best_remedy_is_the_fix() -> None:
    assert labels(reports.MISMATCH.remedies) == ["fix", "or"]
    assert labels(()) == []
