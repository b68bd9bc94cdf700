import pytest

from gpudoctor.model import Device, DeviceProcess, Fix, Outcome, Severity, System
from gpudoctor.testing import run_check

GIB = 2**30
LINUX = System(os="linux", wsl=0, container="")


def device(used: int | None, *processes: DeviceProcess, index: int = 0, uuid: str | None = None) -> Device:
    return Device(
        nvml_index=index,
        name="RTX 4090",
        uuid=uuid,
        memory_total_bytes=24 * GIB,
        memory_used_bytes=used,
        processes=processes,
    )


NOTEBOOK = DeviceProcess(pid=4242, name="/opt/conda/bin/python", used_bytes=20 * GIB)
XORG = DeviceProcess(pid=99, name="Xorg", used_bytes=300 * 2**20)


@pytest.mark.parametrize(
    ("used", "outcome"),
    [
        pytest.param(20 * GIB, Outcome.FOUND, id="most of it"),
        pytest.param(12 * GIB + 1, Outcome.FOUND, id="more than half"),
        pytest.param(12 * GIB, Outcome.PASSED, id="half"),
        pytest.param(300 * 2**20, Outcome.PASSED, id="a desktop"),
        pytest.param(0, Outcome.PASSED, id="nothing"),
    ],
)
def test_outcome(used: int, outcome: Outcome) -> None:
    assert run_check("gpu-memory-held-by-others", devices=(device(used),)).outcome is outcome


def test_the_finding_names_the_programs_largest_first() -> None:
    result = run_check("gpu-memory-held-by-others", devices=(device(21 * GIB, XORG, NOTEBOOK),), system=LINUX)
    (finding,) = result.findings
    assert finding.severity is Severity.WARNING
    assert finding.summary == (
        "21.0 GiB of 24.0 GiB of GPU 0 (RTX 4090) are in use: python (pid 4242) 20.0 GiB, Xorg (pid 99) 0.3 GiB"
    )
    assert finding.fixes == (Fix("end-programs-on-gpu", nvml_index=0, pids=(4242, 99)),)
    assert finding.remedies[0].commands == (
        "ps -o user,pid,etime,args -p 4242,99",
        "nvidia-smi -i 0 --query-compute-apps=pid,process_name,used_memory --format=csv",
    )


def test_another_device_with_free_memory_is_offered() -> None:
    devices = (device(21 * GIB, NOTEBOOK), device(GIB, index=1, uuid="GPU-1111"))
    (finding,) = run_check("gpu-memory-held-by-others", devices=devices, system=LINUX).findings
    assert finding.remedies[1].commands[:2] == ("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=1")


def test_in_a_container_the_programs_of_the_host_are_not_visible() -> None:
    container = System(os="linux", container="docker")
    (finding,) = run_check("gpu-memory-held-by-others", devices=(device(20 * GIB),), system=container).findings
    assert finding.summary.endswith("are in use, by programs that are not visible from here")
    assert all(not command.startswith("ps ") for command in finding.remedies[0].commands)


def test_many_programs_are_counted() -> None:
    processes = tuple(DeviceProcess(pid=n, name="worker", used_bytes=4 * GIB) for n in range(1, 6))
    (finding,) = run_check("gpu-memory-held-by-others", devices=(device(20 * GIB, *processes),)).findings
    assert finding.summary.endswith(" and 2 more")


def test_unknown_use_is_no_pass() -> None:
    result = run_check("gpu-memory-held-by-others", devices=(device(None),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices[0].memory_used_bytes is unknown")


def test_the_sizes_of_processes_suffice() -> None:
    assert run_check("gpu-memory-held-by-others", devices=(device(None, NOTEBOOK),)).outcome is Outcome.FOUND


def test_in_a_report_it_is_advice() -> None:
    """The programs may be the job that the report is about."""
    (finding,) = run_check("gpu-memory-held-by-others", devices=(device(20 * GIB),), symptoms=()).findings
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(("size", "outcome"), [(12 * GIB, Outcome.PASSED), (12 * GIB + 1, Outcome.FOUND)])
def test_a_program_of_unknown_size_adds_nothing(size: int, outcome: Outcome) -> None:
    processes = (DeviceProcess(pid=1, name="a", used_bytes=size), DeviceProcess(pid=2, name="b", used_bytes=None))
    assert run_check("gpu-memory-held-by-others", devices=(device(GIB, *processes),)).outcome is outcome
