import pytest

from gpudoctor.model import Device, Outcome, Severity, System
from gpudoctor.testing import run_check


def device(limit: float | None, default: float | None) -> Device:
    return Device(nvml_index=2, name="RTX 3090", power_limit_watts=limit, power_limit_default_watts=default)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        pytest.param(250.0, Outcome.FOUND, id="lowered"),
        pytest.param(348.5, Outcome.FOUND, id="lowered by more than rounding"),
        pytest.param(349.5, Outcome.PASSED, id="rounding"),
        pytest.param(350.0, Outcome.PASSED, id="default"),
        pytest.param(390.0, Outcome.PASSED, id="raised"),
    ],
)
def test_outcome(limit: float, outcome: Outcome) -> None:
    assert run_check("power-limit-lowered", devices=(device(limit, 350.0),)).outcome is outcome


def test_it_is_advice_with_the_command_for_the_default() -> None:
    result = run_check("power-limit-lowered", devices=(device(250.0, 350.0),), system=System(os="linux"))
    (finding,) = result.findings
    assert finding.severity is Severity.INFO
    assert finding.summary == "The power limit of GPU 2 (RTX 3090) is 250 W, but its default is 350 W"
    assert finding.remedies[0].commands == ("sudo nvidia-smi -i 2 -pl 350", "nvidia-smi -i 2 -q -d POWER")


@pytest.mark.parametrize("system", [System(os="linux", user_is_root=True), System(os="windows")])
def test_no_sudo_if_it_is_not_needed(system: System) -> None:
    (finding,) = run_check("power-limit-lowered", devices=(device(250.0, 350.0),), system=system).findings
    assert finding.remedies[0].commands[0] == "nvidia-smi -i 2 -pl 350"


@pytest.mark.parametrize(
    ("limit", "default", "fact"),
    [(None, 350.0, "power_limit_watts"), (250.0, None, "power_limit_default_watts")],
)
def test_an_unknown_limit_is_no_pass(limit: float | None, default: float | None, fact: str) -> None:
    result = run_check("power-limit-lowered", devices=(device(limit, default),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, f"devices[0].{fact} is unknown")
