"""Facts are looked up by their dotted path."""

from typing import Any

import pytest

from gpudoctor.model import Device, Environment, ProbeReport, Snapshot, Torch, look_up

MACHINE = Snapshot(
    devices=(Device(nvml_index=0, name="A10"), Device(nvml_index=1, name="L4")),
    torch=Torch(build="cpu", architectures=("sm_80", "sm_90")),
    environment=Environment(variables={"CUDA_HOME": "/opt/cuda"}),
    reports=(
        ProbeReport(section="driver", state="ok", probe="driver-files"),
        ProbeReport(section="driver", state="timed-out", probe="nvml"),
    ),
)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("torch.build", "cpu"),
        ("torch.version", None),
        ("devices[1].name", "L4"),
        ("torch.architectures[1]", "sm_90"),
        ("environment.CUDA_HOME", "/opt/cuda"),
        ("environment.CUDA_PATH", None),
    ],
)
def test_a_fact_by_its_path(fact: str, value: Any) -> None:
    assert look_up(MACHINE, fact) == value


@pytest.mark.parametrize("fact", ["torch.colour", "devices[2].name", "nothing", "cupy.version", "devices[x].name"])
def test_what_is_no_fact(fact: str) -> None:
    with pytest.raises(KeyError, match="."):
        look_up(MACHINE, fact)


def test_the_report_of_a_section_is_its_worst() -> None:
    report = MACHINE.report("driver")
    assert report is not None
    assert report.probe == "nvml"
    assert MACHINE.report("torch") is None


@pytest.mark.parametrize(
    ("worse", "better"), [("failed", "timed-out"), ("timed-out", "not-run"), ("not-run", "absent"), ("absent", "ok")]
)
def test_the_order_of_states(worse: str, better: str) -> None:
    reports = tuple(ProbeReport(section="driver", state=state) for state in (better, worse, better))
    report = Snapshot(reports=reports).report("driver")
    assert report is not None
    assert report.state == worse


def test_a_state_of_a_file_that_nobody_knows_is_taken_for_a_failure() -> None:
    known, unknown = (ProbeReport(section="torch", state=state) for state in ("absent", "8;touch X"))
    assert Snapshot(reports=(known, unknown)).report("torch") == unknown
