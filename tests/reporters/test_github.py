import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from gpudoctor.model import CopiedFiles, ProjectImage, Report, Snapshot
from gpudoctor.reporters import github
from tests.reporters import reports

COMMAND = re.compile(r"::(error|warning|notice) ([^:\r\n]*)::([^\r\n]*)")


def commands(report: Report, root: str = "") -> list[tuple[str, dict[str, str], str]]:
    """Return the commands as the runner of GitHub reads them: name, properties, message."""
    text = github.render(report, root=root)
    matches = [COMMAND.fullmatch(line) for line in text.split("\n")[:-1]]
    read = []
    for match in matches:
        assert match is not None
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        read.append((match[1], {name: unquote(value) for name, value in properties.items()}, unquote(match[3])))
    return read


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
def test_every_line_is_a_command(report: Report) -> None:
    read = commands(report)
    assert len(read) >= max(len(report.findings), 1)
    assert all(set(properties) <= {"title", "file", "line"} for _, properties, _ in read)


def test_an_error_with_its_evidence_and_its_fix() -> None:
    (name, properties, message), *_ = commands(reports.ERROR)
    assert (name, properties) == ("error", {"title": "gpudoctor: driver-library-mismatch"})
    assert message.splitlines() == [
        "the kernel module is 550.54.14 and the libraries are 550.90.07",
        "  driver library version: 550.90.07 (name of libcuda.so.VERSION)",
        "fix: reboot",
        "  sudo reboot",
        "  nvidia-smi",
        "  needs root and a reboot",
        "or: load the new module",
        "  sudo modprobe nvidia",
        "  needs root",
    ]


def test_severities_keep_their_order() -> None:
    assert [name for name, _, _ in commands(reports.ERROR)] == [
        "error", "notice", "notice", "notice", "warning", "notice", "notice"
    ]  # fmt: skip


def test_what_follows_names_its_cause_and_no_fix_of_its_own() -> None:
    _, (_, _, message), *_ = commands(reports.ERROR)
    assert message.endswith("Unexpected error\nfollows from driver-library-mismatch")


@pytest.mark.parametrize(
    ("report", "command"),
    [
        (reports.HEALTHY, ("notice", {"title": "gpudoctor"}, f"healthy: {reports.PROOF}")),
        (reports.NOTHING, ("error", {"title": "gpudoctor"}, "unknown: no check ran")),
    ],
)
def test_a_verdict_without_findings(report: Report, command: tuple[str, dict[str, str], str]) -> None:
    assert commands(report) == [command]


def test_an_unknown_verdict_is_an_error_with_what_to_do_next() -> None:
    ((name, _, message),) = commands(reports.UNKNOWN)
    lines = message.splitlines()
    assert (name, lines[0]) == ("error", "unknown: too little is known for a verdict")
    assert {"    nvidia-smi", "    lspci -nnk -d 10de:"} <= set(lines)


def test_a_crash_is_a_warning() -> None:
    crash = ("warning", {"title": "gpudoctor: driver-missing"}, reports.CRASHED.results[1].reason)
    assert crash in commands(reports.CRASHED)


def test_what_has_a_meaning_is_written_out() -> None:
    finding = replace(reports.SHM, check_id="a:b,c", summary="100% of x", evidence=(), remedies=())
    assert github.render(reports.report(finding), root="") == ("::warning title=gpudoctor%3A a%3Ab%2Cc::100%25 of x\n")


def test_a_text_of_the_machine_starts_no_command() -> None:
    lines = github.render(reports.HOSTILE, root="").splitlines()
    assert all(line.startswith(("::error title=gpudoctor", "::notice title=", "::warning title=")) for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_stale_layer_is_shown_at_its_line() -> None:
    layer = CopiedFiles(line=7, text="COPY a a", stage="0", stale=("a",))
    image = ProjectImage(image="app", dockerfile="/home/runner/work/r/r/Dockerfile", instructions=(layer,))
    finding = replace(reports.SHM, facts=("images[0].image_id",))
    report = reports.report(finding, snapshot=Snapshot(images=(image,)))
    (_, properties, _) = commands(report, root="/home/runner/work/r/r")[0]
    assert (properties["file"], properties["line"]) == ("Dockerfile", "7")
