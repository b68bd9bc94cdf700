import json
from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    CheckResult,
    ComputeCapability,
    Device,
    Environment,
    Evidence,
    Finding,
    Outcome,
    PackageVersion,
    PrecisionResult,
    Remedy,
    Report,
    Severity,
    Snapshot,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.codec import from_json
from gpudoctor.reporters.json_report import render
from tests.own_checks import own_checks
from tests.reporters import reports

FINDING = Finding(
    check_id="torch-cpu-build",
    severity=Severity.ERROR,
    subject="torch 2.13.0+cpu",
    summary="PyTorch 2.13.0+cpu was built without CUDA",
    facts=("torch.version",),
    evidence=(Evidence(fact="torch.version", value="2.13.0+cpu", source="torch/version.py"),),
    remedies=(Remedy(summary="install the CUDA build", commands=("pip install torch",), needs=("restart",)),),
    details={"capability": ComputeCapability(8, 9)},
)
CAUSED = Finding(check_id="cupy-x", severity=Severity.INFO, summary="follows", caused_by="torch-cpu-build")
SNAPSHOT = Snapshot(torch=Torch(version=PackageVersion("2.13.0+cpu")), devices=(Device(nvml_index=0),))


def report(*results: CheckResult, findings: tuple[Finding, ...] = (), snapshot: Snapshot = SNAPSHOT) -> Report:
    return Report(version="0.1.0", snapshot=snapshot, results=results, findings=findings, duration_s=1.23456)


def test_the_whole_document() -> None:
    results = (
        CheckResult(check_id="torch-cpu-build", outcome=Outcome.FOUND, findings=(FINDING,)),
        CheckResult(check_id="driver-too-old", outcome=Outcome.PASSED),
        CheckResult(check_id="driver-missing", outcome=Outcome.SKIPPED, reason="driver: not known"),
        CheckResult(check_id="broken", outcome=Outcome.CRASHED, reason="crashed: KeyError: 1"),
    )
    document = json.loads(render(report(*results, findings=(FINDING, CAUSED))))
    expected: dict[str, Any] = {
        "schema": "gpudoctor/report/1",
        "version": "0.1.0",
        "verdict": "error",
        "proof": [],
        "understood": [],
        "missing": [],
        "next": [],
        "possible": [],
        "findings": [
            {
                "check": "torch-cpu-build",
                "severity": "error",
                "subject": "torch 2.13.0+cpu",
                "summary": "PyTorch 2.13.0+cpu was built without CUDA",
                "evidence": [{"fact": "torch.version", "value": "2.13.0+cpu", "source": "torch/version.py"}],
                "caused_by": None,
                "remedies": [
                    {
                        "summary": "install the CUDA build",
                        "commands": ["pip install torch"],
                        "needs": ["restart"],
                        "reference": None,
                    }
                ],
                "details": {"capability": "8.9"},
            },
            {
                "check": "cupy-x",
                "severity": "info",
                "subject": "",
                "summary": "follows",
                "evidence": [],
                "caused_by": "torch-cpu-build",
                "remedies": [],
                "details": {},
            },
        ],
        "passed": ["driver-too-old"],
        "skipped": [
            {"check": "driver-missing", "reason": "driver: not known"},
            {"check": "broken", "reason": "crashed: KeyError: 1"},
        ],
        "snapshot": {
            "schema": "gpudoctor/snapshot/1",
            "devices": [{"nvml_index": 0, "error": ""}],
            "torch": {"version": "2.13.0+cpu"},
            "reports": [],
        },
        "duration_s": 1.235,
    }
    assert document == expected
    assert list(document) == list(expected)
    assert list(document["findings"][0]) == list(expected["findings"][0])
    assert next(iter(document["snapshot"])) == "schema"


def test_an_unknown_verdict_says_what_to_do_next() -> None:
    document = json.loads(render(reports.UNKNOWN))
    assert (document["verdict"], document["proof"]) == ("unknown", [])
    assert document["understood"] == list(reports.QUESTIONS.understood)
    assert document["missing"] == ["the driver version"]
    assert document["next"] == [
        {"command": "nvidia-smi", "why": "Shows whether the driver answers.", "where": "on the host"},
        {"command": "lspci -nnk -d 10de:", "why": "Shows whether the GPU is on the PCI bus.", "where": ""},
    ]
    cause = {"check": "driver-missing", "why": "Without a driver no program sees it.", "confirm": "nvidia-smi fails."}
    assert document["possible"] == [cause]


@pytest.mark.parametrize(("proof", "verdict"), [(("it works",), "healthy"), ((), "unknown")])
def test_advice_alone_changes_no_verdict(proof: tuple[str, ...], verdict: str) -> None:
    advice = CheckResult(check_id="cupy-x", outcome=Outcome.FOUND, findings=(CAUSED,))
    document = json.loads(render(replace(report(advice, findings=(CAUSED,)), proof=proof)))
    assert (document["verdict"], document["proof"]) == (verdict, list(proof))


def test_numbers_that_json_lacks_become_text() -> None:
    overflow = PrecisionResult(device="cuda:0", precision="fp16", relative_error=float("nan"), error="")
    text = render(report(snapshot=Snapshot(torch_runtime=TorchRuntime(precision_results=(overflow,)))))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(text, parse_constant=refuse)
    assert document["snapshot"]["torch_runtime"]["precision_results"][0]["relative_error"] == "nan"


def test_any_stream_can_take_it() -> None:
    finding = Finding(check_id="x", severity=Severity.INFO, summary="41 °C \udc80")
    assert render(report(findings=(finding,))).isascii()


def test_uuids_are_numbered_and_a_snapshot_gives_the_same_findings() -> None:
    uuid = "GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab"
    machine = Snapshot(
        devices=(Device(nvml_index=0, name="NVIDIA A10", uuid=uuid),),
        environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "GPU-77777777-11aa-22bb-33cc-0123456789ab"}),
    )
    text = render(run_checks(own_checks(), machine))
    document = json.loads(text)
    assert uuid not in text
    assert "cuda-visible-devices-hides-gpu" in [finding["check"] for finding in document["findings"]]
    again = render(run_checks(own_checks(), from_json(Snapshot, document["snapshot"])))
    assert json.dumps(json.loads(again)["findings"]) == json.dumps(document["findings"])
