"""Which findings are fixed, in which order, and with which of their remedies."""

from __future__ import annotations

import subprocess

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import Distribution, Inventory, broken_requirements
from gpudoctor.fixing.installers import Pip
from gpudoctor.fixing.plan import check_names, choose, make_plan, steps_of
from gpudoctor.fixing.resolution import Change, Pin, Resolution
from gpudoctor.fixing.script import script
from gpudoctor.model import Finding, Remedy, Report, Severity, Snapshot
from tests.test_machines import diagnosed

PYTHON = "/srv/venv/bin/python"
INSTALL = Remedy(summary="Install it", commands=(f"{PYTHON} -m pip install torch==2.13.0+cu130",))
CUPY = Remedy(summary="Install CuPy", commands=(f"{PYTHON} -m pip install cupy-cuda13x",))
DRIVER = Remedy(summary="Update the driver", commands=("sudo apt-get install nvidia-driver-580",), needs=("root",))


def finding(check: str, *remedies: Remedy, severity: Severity = Severity.ERROR, cause: str | None = None) -> Finding:
    return Finding(severity=severity, summary=check, check_id=check, remedies=remedies, caused_by=cause)


def report(*findings: Finding) -> Report:
    return Report(version="1", snapshot=Snapshot(), results=(), findings=findings)


def distribution(name: str, version: str, *requires: str) -> Distribution:
    info = f"/srv/venv/lib/{name}-{version}.dist-info"
    return Distribution(
        name=name, version=version, requires=requires, info=info, files=(), installer="pip", direct_url="", own=True
    )


def inventory(*distributions: Distribution) -> Inventory:
    return Inventory(
        executable=PYTHON,
        prefix="/srv/venv",
        is_virtual=True,
        externally_managed=False,
        conda=False,
        conda_base=False,
        folders=(),
        scripts="",
        markers={"python_version": "3.11"},
        distributions=distributions,
    )


class Resolved(Pip):
    """An installer that finds what it is asked for."""

    def resolve(self, actions: list[Action]) -> Resolution:  # type: ignore[override]
        pins = [Pin(name=n, version=v) for a in actions for r in a.requirements for n, _, v in [r.partition("==")]]
        changes = tuple(Change(name=p.name, before=self.inventory.version_of(p.name), after=p.version) for p in pins)
        return Resolution(pins=tuple(pins), removes=(), changes=changes)


def plan_of(*findings: Finding, installed: Inventory | None = None) -> tuple[list[str], tuple[str, ...], str]:
    known = installed or inventory()
    plan = make_plan(steps_of(findings, PYTHON), known, Resolved(known, {}))
    return [step.check for step in plan.steps], plan.later, plan.why


def test_the_root_cause_is_fixed() -> None:
    root, other = finding("torch-cpu-build", INSTALL), finding("cupy-missing", CUPY)
    explained = finding("runs-on-cpu", INSTALL, cause="torch-cpu-build")
    advice = finding("tf32-off", severity=Severity.INFO)
    assert choose(report(root, explained, other, advice), ()) == (root,)
    assert choose(report(advice), ()) == ()


def test_named_findings_are_fixed_also_advice() -> None:
    root, advice = finding("torch-cpu-build", INSTALL), finding("cupy-missing", CUPY, severity=Severity.INFO)
    assert choose(report(root, advice), ("cupy-missing",)) == (advice,)
    assert choose(report(root, advice), ("driver-too-old",)) == ()


def test_a_step_has_the_remedy_that_check_prints() -> None:
    (step,) = steps_of([finding("torch-cpu-build", INSTALL)], PYTHON)
    assert step.remedy is INSTALL


def test_a_remedy_that_gpudoctor_can_apply_is_taken_first() -> None:
    (step,) = steps_of([finding("driver-too-old", DRIVER, INSTALL)], PYTHON)
    assert (step.remedy, step.kind) == (INSTALL, "environment")
    (step,) = steps_of([finding("driver-missing", DRIVER)], PYTHON)
    assert (step.remedy, step.kind, step.actions) == (DRIVER, "system", ())
    (step,) = steps_of([finding("gpu-throttled")], PYTHON)
    assert step.remedy.commands == ()


def test_what_comes_after_a_step_by_hand_waits_for_it() -> None:
    driver, torch = finding("driver-missing", DRIVER), finding("torch-cpu-build", INSTALL)
    assert plan_of(driver, torch) == (["driver-missing"], ("torch-cpu-build",), "")
    assert plan_of(torch, driver) == (["torch-cpu-build", "driver-missing"], (), "")


def test_two_versions_of_one_package_are_refused() -> None:
    older = Remedy(summary="Older", commands=(f"{PYTHON} -m pip install torch==2.12.0+cu126",))
    steps, _, why = plan_of(finding("a", INSTALL), finding("b", older))
    assert steps == ["a", "b"]
    assert why.startswith("a asks for torch==2.13.0+cu130, and b asks for torch==2.12.0+cu126")


@pytest.mark.parametrize(
    ("requires", "broken"),
    [
        pytest.param("torch<2.13", {"flash-attn 2.8 needs torch<2.13, not 2.13.0+cu130"}, id="broken"),
        pytest.param("torch>=2.12", set(), id="fits"),
        pytest.param("torch==2.13.0", set(), id="any build"),
        pytest.param("torch==2.12.0; python_version < '3.9'", set(), id="another Python"),
        pytest.param("torch<2; extra == 'old'", set(), id="an extra"),
        pytest.param("numpy<2", set(), id="something else"),
        pytest.param("not a requirement!", set(), id="unreadable"),
    ],
)
def test_dependants(requires: str, broken: set[str]) -> None:
    known = inventory(distribution("flash-attn", "2.8", requires), distribution("torch", "2.12.0"))
    assert broken_requirements(known, {"torch": "2.13.0+cu130"}) == broken
    _, _, why = plan_of(finding("torch-cpu-build", INSTALL), installed=known)
    assert bool(why) == bool(broken)


def test_what_was_broken_before_stops_no_fix() -> None:
    known = inventory(distribution("old", "1", "torch<2"), distribution("torch", "2.13.0+cpu"))
    assert broken_requirements(known, {"torch": None}) == {"old 1 needs torch"}
    assert broken_requirements(known, {"torch": "2.13.0+cpu"}) == {"old 1 needs torch<2, not 2.13.0+cpu"}


def test_names() -> None:
    check_names(("torch-cpu-build",), ["torch-cpu-build"])
    with pytest.raises(UsageError, match="did you mean torch-cpu-build"):
        check_names(("torch-cpu-bild",), ["torch-cpu-build"])


def test_scripts_of_both_shells() -> None:
    known = inventory(distribution("torch", "2.13.0+cpu"))
    steps = steps_of([finding("torch-cpu-build", INSTALL), finding("driver-missing", DRIVER)], PYTHON)
    plan = make_plan(steps, known, Resolved(known, {}))
    posix, powershell = script(plan, windows=False), script(plan, windows=True)
    for text in (posix, powershell):
        assert INSTALL.commands[0] in text.splitlines()
        assert "#    torch: 2.13.0+cpu -> 2.13.0+cu130" in text
        assert f"# by hand: {DRIVER.commands[0]}" in text
        assert text.rstrip().endswith("exit 1")
    assert posix.splitlines()[0] == "#!/bin/sh"
    assert "set -eu" in posix
    after = powershell.split(INSTALL.commands[0])[1].splitlines()
    assert after[1] == "if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }"


def test_a_script_ends_before_a_step_that_it_does_not_run() -> None:
    steps = steps_of([finding("driver-missing", DRIVER)], PYTHON)
    known = inventory()
    text = script(make_plan(steps, known, Resolved(known, {})), windows=False)
    done = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "This script does not run step 1: do it yourself\n"


def test_a_comment_of_a_script_is_one_line() -> None:
    hostile = Remedy(summary="Install\nrm -rf ~", commands=INSTALL.commands)
    plan = make_plan(steps_of([finding("a", hostile)], PYTHON), inventory(), Resolved(inventory(), {}))
    assert "\nrm -rf ~" not in script(plan, windows=False)


def test_the_plan_of_a_recorded_windows_machine() -> None:
    on_windows = diagnosed("windows-pypi-cpu-wheel")
    assert on_windows.snapshot.python is not None
    python = on_windows.snapshot.python.executable or ""
    found = next(f for f in on_windows.findings if f.check_id == "torch-cpu-build")
    (step,) = steps_of([found], python)
    (action,) = step.actions
    assert (step.kind, action.tool) == ("environment", "")
    assert action.requirements[0].startswith("torch==")
    assert "+cu" in action.requirements[0]
    plan = make_plan([step], inventory(), Resolved(inventory(), {}))
    lines = script(plan, windows=True).splitlines()
    command = next(line for line in lines if " -m pip install " in line)
    assert python in command
    assert lines[lines.index(command) + 1] == "if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }"
