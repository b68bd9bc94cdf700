"""The schema in sarif/ is the one that the Python package sarif-om 1.0.4 carries, under the MIT licence beside it.

It is a release candidate: what the standard calls the status of a suppression is its state there. Neither is used.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import (
    CopiedFiles,
    Finding,
    Outcome,
    Project,
    ProjectImage,
    Report,
    Requirement,
    Severity,
    Snapshot,
)
from gpudoctor.reporters import sarif
from tests.own_checks import own_checks
from tests.reporters import reports
from tests.reporters.json_schema import violations

CHECKS = own_checks()


@cache
def schema() -> dict[str, Any]:
    text = Path(__file__).with_name("sarif").joinpath("sarif-2.1.0-rtm.4.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def rendered(report: Report, exit_status: int = 1, root: str = "") -> dict[str, Any]:
    """Return the run; that the document is valid is part of every test."""
    text = sarif.render(report, checks=CHECKS, exit_status=exit_status, root=root)
    assert text.isascii()
    document: dict[str, Any] = json.loads(text)
    assert list(violations(document, schema(), schema())) == []
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    found: dict[str, Any] = run
    return found


def place(finding: Finding, snapshot: Snapshot, root: str = "") -> list[dict[str, Any]]:
    (result,) = rendered(reports.report(finding, snapshot=snapshot), root=root)["results"]
    return [location["physicalLocation"] for location in result["locations"]]


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
def test_every_report_is_valid(report: Report) -> None:
    assert len(rendered(report)["results"]) >= len(report.findings)


@pytest.mark.parametrize(
    ("spoilt", "where"),
    [
        ({"version": "2.1.0"}, "$: required"),
        ({"version": "2", "runs": []}, "$.version: enum"),
        ({"version": "2.1.0", "runs": [{"tool": {}}]}, "$.runs[0].tool: required"),
        ({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x", "colour": 1}}}]}, "additionalProperties"),
        ({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": 1}}}]}, "$.runs[0].tool.driver.name: type"),
    ],
)
def test_the_schema_refuses_what_is_wrong(spoilt: dict[str, Any], where: str) -> None:
    assert any(where in text for text in violations(spoilt, schema(), schema()))


def test_a_rule_describes_its_check() -> None:
    rules = {rule["id"]: rule for rule in rendered(reports.HEALTHY)["tool"]["driver"]["rules"]}
    assert set(rules) >= {check.id for check in CHECKS}
    rule = rules["driver-too-old"]
    assert rule["shortDescription"]["text"] == (
        "The driver is too old for the CUDA version that an installed library was built with."
    )
    assert rule["fullDescription"]["text"].startswith("Why: the first CUDA call fails")
    assert rule["helpUri"] == "https://docs.nvidia.com/deploy/cuda-compatibility/"
    assert rule["properties"]["family"] == "driver"


@pytest.mark.parametrize(
    ("severity", "level"), [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")]
)
def test_levels(severity: Severity, level: str) -> None:
    (result,) = rendered(reports.report(replace(reports.SHM, severity=severity)))["results"]
    assert result["level"] == level


def test_a_result_holds_the_whole_finding() -> None:
    result, consequence, *_ = rendered(reports.ERROR)["results"]
    assert result["message"]["text"].splitlines()[:3] == [reports.MISMATCH.summary, "fix: reboot", "  sudo reboot"]
    assert result["properties"]["evidence"][0]["value"] == "550.90.07"
    assert result["properties"]["remedies"][0]["commands"] == ["sudo reboot", "nvidia-smi"]
    assert consequence["properties"]["caused_by"] == "driver-library-mismatch"
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "machine/driver 550.54.14"


def test_a_finding_keeps_its_fingerprint_while_its_numbers_change() -> None:
    before, after = (
        rendered(reports.report(replace(reports.SHM, summary=summary)))["results"][0]["partialFingerprints"]
        for summary in ("/dev/shm has 64.0 MiB", "/dev/shm has 32.0 MiB")
    )
    other = rendered(reports.report(replace(reports.SHM, subject="/run/shm")))["results"][0]["partialFingerprints"]
    assert before == after != other


def test_a_message_holds_no_placeholder_and_no_link() -> None:
    finding = replace(reports.SHM, summary="{0} [here](https://evil.example)", remedies=())
    (result,) = rendered(reports.report(finding))["results"]
    assert result["message"]["text"] == "{{0}} [here] (https://evil.example)"


def test_an_ignored_check_is_suppressed_with_its_reason() -> None:
    results = rendered(reports.IGNORED)["results"]
    suppressed = {result["ruleId"]: result["suppressions"] for result in results if "suppressions" in result}
    reason = {"kind": "external", "justification": "ignored on the command line"}
    assert suppressed == {"shm-too-small": [reason]}


def test_the_invocation_shows_how_the_run_ended() -> None:
    (ended,) = rendered(reports.ERROR, exit_status=1)["invocations"]
    assert (ended["executionSuccessful"], ended["exitCode"]) == (True, 1)
    (failed,) = rendered(reports.UNKNOWN, exit_status=3)["invocations"]
    assert (failed["executionSuccessful"], failed["exitCode"]) == (False, 3)
    assert [note["message"]["text"] for note in failed["toolConfigurationNotifications"]] == ["driver: not known"] * 2


def test_an_unknown_verdict_is_a_notification_with_what_to_do_next() -> None:
    (ended,) = rendered(reports.UNKNOWN, exit_status=3)["invocations"]
    (unknown,) = ended["toolExecutionNotifications"]
    assert unknown["level"] == "error"
    assert unknown["message"]["text"].startswith("unknown: too little is known for a verdict\n")
    assert "\n    nvidia-smi\n" in unknown["message"]["text"]
    assert rendered(reports.HEALTHY)["invocations"][0]["toolExecutionNotifications"] == []


def test_a_crash_is_a_notification() -> None:
    (ended,) = rendered(reports.CRASHED)["invocations"]
    (crash,) = ended["toolExecutionNotifications"]
    assert (crash["level"], crash["associatedRule"]["id"]) == ("error", "driver-missing")
    assert [r.outcome for r in reports.CRASHED.results].count(Outcome.CRASHED) == 1


STALE = Finding(
    check_id="docker-stale-layers",
    severity=Severity.ERROR,
    subject="image app:latest",
    summary="image app:latest is stale",
    facts=("images[0].image_id",),
)


def test_a_stale_layer_stands_at_its_line_of_the_dockerfile() -> None:
    layers = (
        CopiedFiles(line=4, text="COPY a a", stage="0"),
        CopiedFiles(line=7, text="COPY common/ ./common/", stage="0", stale=("common/a.py",)),
    )
    image = ProjectImage(image="app:latest", dockerfile="~/my project/docker/Dockerfile", instructions=layers)
    assert place(STALE, Snapshot(images=(image,)), root="~/my project") == [
        {"artifactLocation": {"uri": "docker/Dockerfile"}, "region": {"startLine": 7}}
    ]
    assert place(STALE, Snapshot(images=(image,)))[0]["artifactLocation"] == {"uri": "~/my%20project/docker/Dockerfile"}


def test_a_requirement_stands_at_its_line() -> None:
    finding = replace(reports.SHM, facts=("project.requirements[1].name",))
    asked = (Requirement(name="numpy"), Requirement(name="torch", source="requirements.txt line 3"))
    snapshot = Snapshot(project=Project(requirements=asked))
    assert place(finding, snapshot) == [{"artifactLocation": {"uri": "requirements.txt"}, "region": {"startLine": 3}}]


def test_github_finds_a_file_in_every_result() -> None:
    for report in reports.ALL.values():
        places = [location for result in rendered(report)["results"] for location in result["locations"]]
        assert all(location["physicalLocation"]["artifactLocation"]["uri"] for location in places)
