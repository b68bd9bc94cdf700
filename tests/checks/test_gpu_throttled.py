import pytest

from gpudoctor.model import Device, Fix, Outcome, Severity, Symptom
from gpudoctor.testing import run_check


def device(*reasons: str, index: int = 0) -> Device:
    return Device(
        nvml_index=index,
        name="NVIDIA A100",
        throttle_reasons=reasons,
        temperature_celsius=92,
        clock_sm_mhz=705,
        clock_sm_max_mhz=1410,
    )


@pytest.mark.parametrize(
    ("reasons", "outcome"),
    [
        pytest.param(("hw_thermal_slowdown",), Outcome.FOUND, id="heat, by hardware"),
        pytest.param(("sw_thermal_slowdown", "sw_power_cap"), Outcome.FOUND, id="heat, by software"),
        pytest.param(("hw_power_brake_slowdown",), Outcome.FOUND, id="power brake"),
        pytest.param(("hw_slowdown",), Outcome.FOUND, id="hardware slowdown under load"),
        pytest.param(("hw_slowdown", "gpu_idle"), Outcome.PASSED, id="clock change of an idle device"),
        pytest.param(("hw_thermal_slowdown", "gpu_idle"), Outcome.FOUND, id="hot although idle"),
        pytest.param(("sw_power_cap",), Outcome.PASSED, id="power cap of full load"),
        pytest.param(("gpu_idle",), Outcome.PASSED, id="idle"),
        pytest.param(("applications_clocks_setting", "sync_boost"), Outcome.PASSED, id="set by the user"),
        pytest.param((), Outcome.PASSED, id="none"),
    ],
)
def test_outcome(reasons: tuple[str, ...], outcome: Outcome) -> None:
    assert run_check("gpu-throttled", devices=(device(*reasons),)).outcome is outcome


def test_the_finding_names_reason_temperature_and_clocks() -> None:
    healthy, hot = device(), device("hw_thermal_slowdown", "sw_power_cap", index=1)
    (finding,) = run_check("gpu-throttled", devices=(healthy, hot)).findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "The clocks of GPU 1 (NVIDIA A100) are lowered by hw_thermal_slowdown at 92 °C, "
        "with the SM clock at 705 of 1410 MHz"
    )
    assert finding.evidence[0].value == ["hw_thermal_slowdown", "sw_power_cap"]
    assert finding.fixes == (Fix("cool-or-power-gpu", reasons="hw_thermal_slowdown", nvml_index=1),)
    assert finding.remedies[0].commands == ("nvidia-smi -i 1 -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",)


def test_the_power_brake_points_at_the_power_supply() -> None:
    (finding,) = run_check("gpu-throttled", devices=(device("hw_power_brake_slowdown"),)).findings
    assert finding.remedies[0].summary.startswith("Check the power supply")


def test_unknown_reasons_are_no_pass() -> None:
    result = run_check("gpu-throttled", devices=(device(), Device(nvml_index=1)))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices[1].throttle_reasons is unknown")


def test_an_unknown_device_does_not_hide_a_finding() -> None:
    result = run_check("gpu-throttled", devices=(Device(nvml_index=0), device("hw_thermal_slowdown", index=1)))
    assert result.outcome is Outcome.FOUND


def test_without_devices_the_question_does_not_arise() -> None:
    assert run_check("gpu-throttled", devices=()).reason == "there is no NVIDIA device"
    lost = Device(nvml_index=0, error="GPU is lost")
    assert run_check("gpu-throttled", devices=(lost,)).reason == "no NVIDIA device answers"


@pytest.mark.parametrize(
    ("names", "summary"),
    [
        ({"reason": "HW Power Brake Slowdown"}, "Check the power supply"),
        ({}, "If the GPU's temperature is at its limit"),
    ],
)
def test_what_a_report_says_of_a_device_that_it_does_not_show(names: dict[str, str], summary: str) -> None:
    message = Symptom(kind="gpu-slowdown-active", text="HW Slowdown: Active", names=names)
    (finding,) = run_check("gpu-throttled", symptoms=(message,)).findings
    assert finding.severity is Severity.WARNING
    assert finding.remedies[0].summary.startswith(summary)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("SW Power Cap will appear", "Check the power supply"),
        ("the GPU overheats", "Cool the GPU"),
        ("thermal throttling", "Cool the GPU"),
        ("GPU throttled", "If the GPU's temperature is at its limit"),
    ],
)
def test_the_remedy_is_for_the_reason_in_the_words(text: str, summary: str) -> None:
    message = Symptom(kind="gpu-throttling-reported", text=text)
    (finding,) = run_check("gpu-throttled", symptoms=(message,)).findings
    assert finding.summary == f'The GPU lowers its clocks, according to the report: "{text}"'
    assert finding.remedies[0].summary.startswith(summary)


def test_what_a_report_shows_counts_more_than_what_it_says() -> None:
    message = Symptom(kind="gpu-throttling-reported", text="GPU throttled")
    devices = (Device(nvml_index=0, throttle_reasons=("gpu_idle",)),)
    assert run_check("gpu-throttled", symptoms=(message,), devices=devices).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("temperature", "operating", "slowdown", "outcome"),
    [
        pytest.param(92, 93, 98, Outcome.FOUND, id="one degree below the limit"),
        pytest.param(91, 93, 98, Outcome.SKIPPED, id="below"),
        pytest.param(97, None, 98, Outcome.FOUND, id="the slowdown temperature is the only limit known"),
        pytest.param(60, None, None, Outcome.SKIPPED, id="no limit known"),
    ],
)
def test_a_temperature_at_the_limit(
    temperature: int, operating: int | None, slowdown: int | None, outcome: Outcome
) -> None:
    device = Device(
        nvml_index=0,
        temperature_celsius=temperature,
        temperature_operating_celsius=operating,
        temperature_slowdown_celsius=slowdown,
    )
    assert run_check("gpu-throttled", devices=(device,)).outcome is outcome


def test_reasons_that_are_known_count_more_than_a_temperature() -> None:
    device = Device(
        nvml_index=0, temperature_celsius=93, temperature_operating_celsius=93, throttle_reasons=("sw_power_cap",)
    )
    assert run_check("gpu-throttled", devices=(device,)).outcome is Outcome.PASSED


def test_a_low_limit_has_somebody_who_sets_it() -> None:
    device = Device(nvml_index=0, temperature_celsius=60, temperature_operating_celsius=60)
    (finding,) = run_check("gpu-throttled", devices=(device,)).findings
    assert finding.facts == ("devices[0].temperature_celsius", "devices[0].temperature_operating_celsius")
    assert [fix.name for fix in finding.fixes] == ["cool-or-power-gpu", "find-who-sets-temperature-limit"]
