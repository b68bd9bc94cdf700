"""NVML through the real pynvml, with stand-ins for libnvidia-ml.so.1 and nvidia-smi."""

import ctypes
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, Device, DeviceProcess, Driver, DriverVersion
from gpudoctor.nvml import LIBRARY, Gate
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.nvml import SMI_SECONDS, parse_devices, parse_nvml_driver, why_unknown
from gpudoctor.probes.workers import nvml_devices
from gpudoctor.processes import WorkerEnded, WorkerSilent
from tests.conftest import Install
from tests.environments import python_of
from tests.probes.asked import asked
from tests.stand_ins import (
    A10,
    GTX_1080,
    H100,
    H100_MIG,
    MISSING_IN_R450,
    RTX_4090,
    RTX_5090,
    Broken,
    Gpu,
    NvidiaSmi,
    Nvml,
    ask_worker,
    facts_of,
)

R590 = (Path(__file__).parent.parent / "parsers" / "nvidia_smi" / "r590.xml").read_text()
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"
FAILING_SMI = NvidiaSmi(stdout=MISMATCH, status=18)
MIB = 2**20


@pytest.fixture
def ask(driver_stand_in: Install, tmp_path: Path) -> Any:
    """Return a function from devices or a library to the worker's facts."""

    def ask(*devices: Gpu, nvml: Nvml | Broken | None = None, smi: NvidiaSmi = FAILING_SMI, **rest: Any) -> Any:
        environ = driver_stand_in(tmp_path, nvml=nvml or Nvml(devices=devices), nvidia_smi=smi)
        return facts_of("nvml_devices", {**environ, **rest.pop("environ", {})}, **rest)

    return ask


def only_device(facts: dict[str, Any]) -> Device:
    devices = parse_devices(facts)
    assert devices is not None
    assert len(devices) == 1
    return devices[0]


def answers_of(facts: dict[str, Any], index: int = 0) -> dict[str, Any]:
    answers: dict[str, Any] = facts["devices"][index]["answers"]
    return answers


@pytest.mark.parametrize(
    ("answer", "field", "least"),
    [
        (lambda number: {"compute_capability": [number, 0]}, "compute_capability", 1),
        (lambda number: {"compute_capability": [8, number]}, "compute_capability", 0),
        (lambda number: {"memory": {"total": number}}, "memory_total_bytes", 1),
        (lambda number: {"memory_v1": {"total": number}}, "memory_total_bytes", 1),
        (lambda number: {"memory": {"used": number}}, "memory_used_bytes", 0),
        (lambda number: {"power_draw": number}, "power_draw_watts", 0),
        (lambda number: {"clock_sm": number}, "clock_sm_mhz", 0),
        (lambda number: {"clock_sm_max": number}, "clock_sm_max_mhz", 1),
        (lambda number: {"event_reasons": number}, "throttle_reasons", 0),
        (lambda number: {"performance_state": number}, "performance_state", 0),
        (lambda number: {"utilization": {"gpu": number}}, "utilization_percent", 0),
        (lambda number: {"temperature": number}, "temperature_celsius", 0),
        (lambda number: {"temperature_slowdown": number}, "temperature_slowdown_celsius", 1),
        (lambda number: {"ecc_uncorrected_volatile": number}, "ecc_uncorrected_volatile", 0),
        (lambda number: {"retired_pages_pending": number}, "retired_pages_pending", 0),
        (lambda number: {"remapped_rows": [9, 9, number, 9]}, "remapped_rows_pending", 0),
        (lambda number: {"remapped_rows": [9, 9, 9, number]}, "remapped_rows_failed", 0),
        (lambda number: {"mig_mode": [number, 9]}, "mig_enabled", 0),
        (lambda number: {"persistence_mode": number}, "persistence_enabled", 0),
        (lambda number: {"pcie_generation": number}, "pcie_generation", 1),
        (lambda number: {"pcie_generation_max": number}, "pcie_generation_max", 1),
        (lambda number: {"pcie_width": number}, "pcie_width", 1),
        (lambda number: {"pcie_width_max": number}, "pcie_width_max", 1),
    ],
)
def test_the_least_that_is_believed(answer: Callable[[int], dict[str, Any]], field: str, least: int) -> None:
    def found(number: int) -> Any:
        answers = {name: {"value": value} for name, value in answer(number).items()}
        return getattr(only_device({"devices": [{"index": 0, "answers": answers}]}), field)

    assert found(least) is not None
    assert found(least - 1) is None


@pytest.mark.parametrize(
    ("answer", "field", "most"),
    [
        (lambda number: {"compute_capability": [number, 0]}, "compute_capability", 99),
        (lambda number: {"compute_capability": [8, number]}, "compute_capability", 9),
        (lambda number: {"performance_state": number}, "performance_state", 15),
        (lambda number: {"utilization": {"gpu": number}}, "utilization_percent", 100),
        (lambda number: {"retired_pages_pending": number}, "retired_pages_pending", 1),
        (lambda number: {"pcie_generation": number}, "pcie_generation", 16),
        (lambda number: {"pcie_width_max": number}, "pcie_width_max", 64),
        (lambda number: {"pcie_width": number}, "pcie_width", 64),
        (lambda number: {"pcie_generation_max": number}, "pcie_generation_max", 16),
        (lambda number: {"memory": {"total": number}}, "memory_total_bytes", 2**50),
        (lambda number: {"memory": {"used": number}}, "memory_used_bytes", 2**50),
        (lambda number: {"power_draw": number}, "power_draw_watts", 100_000_000),
        (lambda number: {"power_limit": number}, "power_limit_watts", 100_000_000),
    ],
)
def test_the_most_that_is_believed(answer: Callable[[int], dict[str, Any]], field: str, most: int) -> None:
    def found(number: int) -> Any:
        answers = {name: {"value": value} for name, value in answer(number).items()}
        return getattr(only_device({"devices": [{"index": 0, "answers": answers}]}), field)

    assert found(most) is not None
    assert found(most + 1) is None


def test_a_device_in_full(ask: Any) -> None:
    busy = RTX_4090.but(
        memory_used=2000 * MIB,
        compute_process=["4000001 1900000000", "4000002"],
        graphics_process=["4000001 1900000000", "4000003 90000000"],
        event_reasons=0x4,
    )
    nvml = Nvml(devices=(busy,), process_names={4000001: "/usr/bin/python3"})
    assert only_device(ask(nvml=nvml)) == Device(
        nvml_index=0,
        name="NVIDIA GeForce RTX 4090",
        uuid="GPU-0a4090aa-1111-2222-3333-444444444444",
        compute_capability=ComputeCapability(8, 9),
        pci_address="0000:01:00.0",
        pci_device_id="2684",
        memory_total_bytes=24564 * MIB,
        memory_used_bytes=2000 * MIB,
        processes=(
            DeviceProcess(pid=4000001, name="/usr/bin/python3", used_bytes=1900000000),
            DeviceProcess(pid=4000002),
            DeviceProcess(pid=4000003, used_bytes=90000000),
        ),
        power_draw_watts=21.34,
        power_limit_watts=450.0,
        power_limit_default_watts=450.0,
        clock_sm_mhz=210,
        clock_sm_max_mhz=3120,
        throttle_reasons=("sw_power_cap",),
        performance_state=8,
        utilization_percent=0,
        temperature_celsius=34,
        temperature_slowdown_celsius=92,
        remapped_rows_pending=False,
        remapped_rows_failed=False,
        mig_enabled=False,
        mig_uuids=(),
        persistence_enabled=True,
        compute_mode="default",
        pcie_generation=1,
        pcie_generation_max=4,
        pcie_width=16,
        pcie_width_max=16,
        fabric_state="not-supported",
    )


def test_several_devices_and_the_driver(ask: Any) -> None:
    facts = ask(nvml=Nvml(devices=(A10, RTX_5090, GTX_1080), driver_version="580.95.05", cuda_version=13000))
    devices = parse_devices(facts)
    assert devices is not None
    assert [(device.nvml_index, device.name, str(device.compute_capability)) for device in devices] == [
        (0, "NVIDIA A10", "8.6"),
        (1, "NVIDIA GeForce RTX 5090", "12.0"),
        (2, "NVIDIA GeForce GTX 1080", "6.1"),
    ]
    assert parse_nvml_driver(facts) == Driver(
        installed=True,
        version=DriverVersion.parse("580.95.05"),
        cuda_version=CudaVersion(13, 0),
        nvml_code=0,
        nvml_error="",
    )
    assert facts["commands"] == {}


def test_no_devices(ask: Any) -> None:
    facts = ask()
    driver = parse_nvml_driver(facts)
    assert parse_devices(facts) == ()
    assert driver is not None
    assert driver.nvml_code == 0


def test_instances_links_and_fabric(ask: Any) -> None:
    device = only_device(ask(H100_MIG.but(nvlinks=(1, 0, 1), fabric=(2, 999))))
    assert (device.mig_enabled, device.mig_uuids) == (
        True,
        ("MIG-1b1b1b1b-5555-6666-7777-888888888888", "MIG-2c2c2c2c-5555-6666-7777-888888888888"),
    )
    assert (device.nvlinks_active, device.fabric_state) == (2, "in-progress")


def test_mig_without_an_instance(ask: Any) -> None:
    device = only_device(ask(H100_MIG.but(mig_uuid=None)))
    assert (device.mig_enabled, device.mig_uuids) == (True, ())


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"value": {"state": 0}}, "not-supported"),
        ({"value": {"state": 1}}, "not-started"),
        ({"value": {"state": 2}}, "in-progress"),
        ({"value": {"state": 3}}, "completed"),
        ({"value": {"state": 4}}, None),
        ({"error": 3, "text": "Not Supported"}, "not-supported"),
        ({"error": 13, "text": "Function Not Found"}, None),
    ],
)
def test_fabric(answer: dict[str, Any], state: str | None) -> None:
    assert only_device({"devices": [{"index": 0, "answers": {"fabric": answer}}]}).fabric_state == state


def test_memory_errors(ask: Any) -> None:
    device = only_device(
        ask(GTX_1080.but(ecc_uncorrected_volatile=2, retired_pages_pending=1, remapped_rows=(0, 4, 1, 0)))
    )
    assert (device.ecc_uncorrected_volatile, device.retired_pages_pending) == (2, True)
    assert (device.remapped_rows_pending, device.remapped_rows_failed) == (True, False)


def test_an_old_driver_lacks_functions_and_no_facts(ask: Any) -> None:
    nvml = Nvml(
        devices=(A10.but(compute_process=["4000001 50"]), H100_MIG),
        driver_version="450.80.02",
        cuda_version=11000,
        missing=MISSING_IN_R450,
    )
    facts = ask(nvml=nvml)
    a10, h100 = parse_devices(facts) or ()
    assert answers_of(facts)["fabric"]["error"] == 13
    assert (a10.fabric_state, h100.fabric_state) == (None, None)
    assert a10.memory_used_bytes == 435 * MIB  # the first version counts what the driver reserves
    assert (a10.processes, a10.throttle_reasons) == ((DeviceProcess(pid=4000001, used_bytes=50),), ("gpu_idle",))
    assert len(h100.mig_uuids or ()) == 2


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param(18, "Driver/library version mismatch", id="mismatch"),
        pytest.param(9, "Driver Not Loaded", id="not loaded"),
        pytest.param(4, "Insufficient Permissions", id="no permission"),
        pytest.param(999, "Unknown Error", id="unknown"),
    ],
)
def test_nvml_that_does_not_initialise(ask: Any, code: int, text: str) -> None:
    facts = ask(nvml=Nvml(devices=(RTX_4090,), fail={"nvmlInit": code}))
    driver = parse_nvml_driver(facts)
    assert parse_devices(facts) is None
    assert driver is not None
    assert (driver.installed, driver.nvml_code, driver.nvml_error) == (True, code, text)
    assert (driver.version, driver.cuda_version) == (None, None)
    assert why_unknown(facts) == f"NVML: {text}; nvidia-smi: {' '.join(MISMATCH.split())}"


def test_a_count_that_nvml_refuses(ask: Any) -> None:
    facts = ask(nvml=Nvml(devices=(RTX_4090,), fail={"nvmlDeviceGetCount": 999}))
    assert parse_devices(facts) is None
    assert why_unknown(facts).startswith("NVML: Unknown Error; ")


def test_not_supported_no_permission_and_lost_are_different_answers(ask: Any) -> None:
    facts = ask(RTX_4090.but(clock_sm=None, fail={"nvmlDeviceGetPowerUsage": 4, "nvmlDeviceGetUtilizationRates": 3}))
    answers = answers_of(facts)
    assert [answers[name] for name in ("clock_sm", "power_draw")] == [
        {"error": 3, "text": "Not Supported"},
        {"error": 4, "text": "Insufficient Permissions"},
    ]
    device = only_device(facts)
    assert (device.error, device.clock_sm_mhz, device.power_draw_watts, device.utilization_percent) == (
        "",
        None,
        None,
        None,
    )
    assert device.temperature_celsius == 34


@pytest.mark.parametrize(
    ("function", "code", "error"),
    [
        pytest.param("nvmlDeviceGetMemoryInfo", 15, "GPU is lost", id="lost in a call"),
        pytest.param("nvmlDeviceGetHandleByIndex", 15, "GPU is lost", id="lost at once"),
        pytest.param("nvmlDeviceGetMemoryInfo", 16, "GPU requires reset", id="reset required"),
        pytest.param("nvmlDeviceGetHandleByIndex", 4, "Insufficient Permissions", id="device node closed"),
        pytest.param("nvmlDeviceGetHandleByIndex", 999, "Unknown Error", id="unknown error"),
    ],
)
def test_one_of_two_devices_cannot_be_reached(ask: Any, function: str, code: int, error: str) -> None:
    lost, fine = parse_devices(ask(A10.but(fail={function: code}), RTX_4090)) or ()
    assert (lost.nvml_index, lost.error, lost.memory_total_bytes, lost.processes) == (0, error, None, None)
    assert lost.uuid == (A10.facts["uuid"] if function == "nvmlDeviceGetMemoryInfo" else None)
    assert (fine.nvml_index, fine.error, fine.name) == (1, "", "NVIDIA GeForce RTX 4090")


def test_a_device_that_is_lost_is_not_asked_on(ask: Any) -> None:
    facts = ask(A10.but(fail={"nvmlDeviceGetName": 15, "nvmlDeviceGetPciInfo": "hang"}))
    assert list(answers_of(facts)) == ["uuid", "name"]


def test_a_hang_is_left_to_the_time_limit(driver_stand_in: Install, tmp_path: Path) -> None:
    environ = driver_stand_in(tmp_path, nvml=Nvml(fail={"nvmlInit": "hang"}))
    with pytest.raises(WorkerSilent):
        ask_worker("nvml_devices", environ, timeout=2)


def test_a_crash_takes_the_worker_only(driver_stand_in: Install, tmp_path: Path) -> None:
    environ = driver_stand_in(tmp_path, nvml=Nvml(devices=(A10.but(fail={"nvmlDeviceGetMemoryInfo": "crash"}),)))
    with pytest.raises(WorkerEnded, match="killed by SIGSEGV"):
        ask_worker("nvml_devices", environ)


def test_texts_are_made_fit_to_show(ask: Any) -> None:
    device = only_device(
        ask(RTX_4090.but(name=b"\x1b[31mEvil\xff\x07\x9b2J GPU\xe2\x80\xae", uuid=b"GPU-\x1b]0;x\x07"))
    )
    assert (device.name, device.uuid) == (
        "[31mEvil\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}2J GPU",
        "GPU-]0;x",
    )


@pytest.mark.parametrize(("number", "mode"), [(1, None), (2, "prohibited"), (3, "exclusive-process")])
def test_the_compute_mode(number: int, mode: str | None, ask: Any) -> None:
    assert only_device(ask(RTX_4090.but(compute_mode=number))).compute_mode == mode


def test_numbers_that_cannot_be_are_unknown(ask: Any) -> None:
    nothing = 2**64 - 1
    device = only_device(
        ask(
            RTX_4090.but(
                compute_capability=(4294967295, 0),
                memory_total=nothing,
                temperature=0xFFFFFFFF,
                utilization=4_000_000,
                performance_state=32,
                event_reasons=nothing,
                compute_mode=77,
                pcie_generation=0xFFFFFFFF,
                pci_bus_id="; rm -rf /",
                pci_device_id=0xFFFFFFFF,
                process_count=2**31,
                mig_mode=(0xFFFFFFFF, 0),
                power_draw=0xFFFFFFFF,
                ecc_uncorrected_volatile=nothing,
                nvlinks=(1,) * 64,
            )
        )
    )
    assert device.name == "NVIDIA GeForce RTX 4090"
    unknown = (
        device.compute_capability,
        device.memory_total_bytes,
        device.temperature_celsius,
        device.utilization_percent,
        device.performance_state,
        device.throttle_reasons,
        device.compute_mode,
        device.pcie_generation,
        device.pci_address,
        device.pci_device_id,
        device.processes,
        device.mig_enabled,
        device.power_draw_watts,
        device.ecc_uncorrected_volatile,
    )
    assert unknown == (None,) * len(unknown)
    assert device.nvlinks_active == 36


def test_a_reason_without_a_name_is_kept(ask: Any) -> None:
    device = only_device(ask(RTX_4090.but(event_reasons=0x8 | 0x40 | 1 << 40)))
    assert device.throttle_reasons == ("hw_slowdown", "hw_thermal_slowdown", "reason_0x10000000000")


@pytest.mark.parametrize(("unnamed", "known"), [(0, 0), (4, 4), (5, None)])
def test_a_mask_of_mostly_unnamed_bits_is_none(unnamed: int, known: int | None) -> None:
    mask = sum(1 << bit for bit in range(40, 40 + unnamed)) | 0x8
    device = only_device({"devices": [{"index": 0, "answers": {"event_reasons": {"value": mask}}}]})
    expected = None if known is None else ("hw_slowdown", *(f"reason_{1 << bit:#x}" for bit in range(40, 40 + known)))
    assert device.throttle_reasons == expected
    last = only_device({"devices": [{"index": 0, "answers": {"event_reasons": {"value": 1 << 63}}}]})
    assert last.throttle_reasons == ("reason_0x8000000000000000",)


def test_more_devices_counted_than_there_are(ask: Any) -> None:
    devices = parse_devices(ask(nvml=Nvml(devices=(RTX_4090, A10), device_count=4_000_000_000)))
    assert [device.name for device in devices or ()] == ["NVIDIA GeForce RTX 4090", "NVIDIA A10"]


def test_processes_of_this_run_are_left_out(ask: Any) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        own, child = os.getpid(), sleeper.pid
        device = only_device(ask(RTX_4090.but(compute_process=[f"{own} 10", f"{child} 20", "1 30", "4000001 40"])))
        sleeper.kill()
    assert [process.pid for process in device.processes or ()] == [1, 4000001]


def test_processes_named_by_the_question_are_left_out(ask: Any) -> None:
    device = only_device(ask(RTX_4090.but(compute_process=["4000001 1", "4000002 2"]), own_pids=[4000002]))
    assert [process.pid for process in device.processes or ()] == [4000001]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("raise RuntimeError('no')", "RuntimeError: no", id="fails"),
        pytest.param("__version__ = '8.0'", "the module pynvml is not from nvidia-ml-py", id="another one"),
    ],
)
def test_a_wrong_module_of_that_name(ask: Any, tmp_path: Path, source: str, text: str) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "pynvml.py").write_text(source)
    smi = NvidiaSmi(stdout=R590)
    facts = ask(RTX_4090, smi=smi, environ={"PYTHONPATH": str(tmp_path / "wrong")})
    driver = parse_nvml_driver(facts)
    assert facts["module"]["error"] == text
    assert facts["module"].get("version", "") in ("8.0", "")
    assert [device.name for device in parse_devices(facts) or ()] == ["NVIDIA RTX 6000 Ada Generation"]
    assert driver is not None
    assert (driver.nvml_code, str(driver.version)) == (None, "590.44.01")


def test_a_wrong_module_and_no_answer_of_nvidia_smi(ask: Any, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise RuntimeError('no')")
    facts = ask(RTX_4090, environ={"PYTHONPATH": str(tmp_path)})
    assert parse_devices(facts) is None
    assert why_unknown(facts).startswith("NVML: RuntimeError: no; nvidia-smi: Failed to initialize NVML")


@pytest.mark.environments
def test_the_old_package_pynvml(driver_stand_in: Install, tmp_path: Path) -> None:
    """Its structure for the fabric has fields in other places than NVML's."""
    environ = driver_stand_in(tmp_path, nvml=Nvml(devices=(H100.but(compute_process=["4000001 50"]),)))
    facts = facts_of("nvml_devices", environ, interpreter=str(python_of("pynvml-twice")))
    device = only_device(facts)
    assert facts["module"]["version"] == "11.5.3"
    assert (device.error, device.name, device.memory_used_bytes) == ("", "NVIDIA H100 80GB HBM3", 0)
    assert (device.fabric_state, device.nvlinks_active) == ("completed", 18)
    assert device.processes == (DeviceProcess(pid=4000001, used_bytes=50),)


def test_nvidia_smi_answers_if_nvml_does_not(ask: Any) -> None:
    facts = ask(nvml=Broken(), smi=NvidiaSmi(stdout=R590))
    driver = parse_nvml_driver(facts)
    assert [device.name for device in parse_devices(facts) or ()] == ["NVIDIA RTX 6000 Ada Generation"]
    assert driver is not None
    assert (driver.nvml_code, driver.cuda_version) == (12, CudaVersion(13, 1))
    assert "file too short" in (driver.nvml_error or "")


def test_nvidia_smi_without_devices(ask: Any) -> None:
    facts = ask(nvml=Broken(), smi=NvidiaSmi(stdout="No devices were found\n", status=6))
    assert parse_devices(facts) == ()


@pytest.mark.parametrize(
    ("smi", "text"),
    [
        pytest.param(NvidiaSmi(stdout="what?"), "its XML cannot be read", id="no XML"),
        pytest.param(NvidiaSmi(stdout=R590, hangs=True), "no end after 0.5 s", id="hangs"),
        pytest.param(NvidiaSmi(stderr="\x1b[2Jkilled", status=9), "[2Jkilled", id="fails"),
    ],
)
def test_nvidia_smi_that_fails_too(ask: Any, smi: NvidiaSmi, text: str) -> None:
    facts = ask(nvml=Broken(), smi=smi, nvidia_smi_seconds=0.5)
    assert parse_devices(facts) is None
    assert why_unknown(facts).endswith(f"; nvidia-smi: {text}")


@pytest.mark.parametrize("ends", [True, False])
def test_what_nvidia_smi_prints(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[Any] = []

    def wait(seconds: float) -> int:
        did.append(seconds)
        if not ends:
            raise subprocess.TimeoutExpired("nvidia-smi", seconds)
        return 6

    output = {"stdout": io.BytesIO(b"\xff-q -x" + b"x" * 9 * MIB), "stderr": io.BytesIO(b"y" * 5000)}
    process = SimpleNamespace(**output, wait=wait, kill=lambda: did.append("killed"))
    monkeypatch.setattr(nvml_devices, "_start_nvidia_smi", lambda: process)
    assert nvml_devices._run_nvidia_smi(2.5) == {
        "nvidia-smi": {
            "status": 6 if ends else None,
            "stdout": "\ufffd-q -x" + "x" * (8 * MIB - 6),
            "stderr": "y" * 4096,
            "error": "" if ends else "no end after 2.5 s",
        }
    }
    assert did == ([2.5] if ends else [2.5, "killed"])


MISSING = {"signs": [], "commands": {}, "library_error": "libnvidia-ml.so.1: cannot open", "library_missing": True}


def test_no_driver_at_all() -> None:
    assert parse_devices(MISSING) == ()
    assert parse_nvml_driver(MISSING) is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"signs": ["/dev/nvidiactl"]}, id="a device node"),
        pytest.param({"library_missing": False}, id="a library that does not load"),
        pytest.param({"commands": {"nvidia-smi": {"status": 1, "stdout": "no"}}}, id="nvidia-smi"),
    ],
)
def test_a_trace_of_a_driver_leaves_devices_unknown(change: dict[str, Any]) -> None:
    facts = {**MISSING, **change}
    driver = parse_nvml_driver(facts)
    assert parse_devices(facts) is None
    assert driver is not None
    assert (driver.installed, driver.nvml_code, driver.nvml_error) == (None, 12, "libnvidia-ml.so.1: cannot open")


def test_no_answer_is_unknown() -> None:
    assert parse_devices({}) is None
    assert parse_nvml_driver({}) == Driver()


def test_the_machine_that_runs_the_tests_is_asked_without_stand_ins() -> None:
    facts = facts_of("nvml_devices")
    devices = parse_devices(facts)
    assert devices is not None or why_unknown(facts)


def test_the_question() -> None:
    question = asked("nvml", ProbeContext(environ={}, directory="/", timeout_seconds=8))
    assert (question.name, question.worker, question.in_environment) == ("nvml", "nvml_devices", False)
    assert question.arguments == {"nvidia_smi_seconds": 4.0}
    assert asked("nvml", ProbeContext(environ={}, directory="/")).arguments == {"nvidia_smi_seconds": 10.0}
    assert SMI_SECONDS == nvml_devices.SMI_SECONDS


def test_an_nvidia_smi_that_nobody_may_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("no program", encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvml_devices, "SMI_PLACES", ())
    assert nvml_devices._run_nvidia_smi(1.0) == {}


# WSL and NixOS keep them where PATH and the loader leave them out; Jetson has nodes of its own.
SIGNS = """
    /proc/driver/nvidia/version /dev/nvidiactl /dev/nvidia0 /dev/dxg /dev/nvmap /dev/nvgpu /dev/nvhost-gpu
    /etc/nv_tegra_release /usr/lib/wsl/lib/libnvidia-ml.so.1 /run/opengl-driver/lib/libnvidia-ml.so.1
"""


@pytest.mark.parametrize("sign", SIGNS.split())
def test_a_sign_of_a_driver(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_devices, "LIBRARY", "libmissing-nvml.so.1")
    monkeypatch.setattr(nvml_devices, "_run_nvidia_smi", lambda seconds: {})
    monkeypatch.setattr(os.path, "exists", lambda path: path == sign)
    assert nvml_devices.collect({})["signs"] == [sign]


@pytest.mark.parametrize("place", ["/usr/lib/wsl/lib/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi"])
def test_nvidia_smi_if_path_leaves_it_out(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def popen(command: list[str], **_: Any) -> str:
        started.append(command)
        if command[0] != place:
            raise FileNotFoundError
        return "process"

    monkeypatch.setattr("subprocess.Popen", popen)
    assert str(nvml_devices._start_nvidia_smi()) == "process"
    assert [command[1:] for command in started] == [["-q", "-x"]] * len(started)
    assert started[0][0] == "nvidia-smi"


class Refused(Exception):
    """As NVMLError of pynvml."""

    def __init__(self, value: int) -> None:
        self.value = value


class Module:
    """As pynvml: each function answers as `answers` say, an int that is an error code as Refused, or what it was asked.

    A name without an answer is a function that the library lacks.
    """

    NVMLError = Refused
    __version__ = "12.0"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def nvmlErrorString(self, code: int) -> str:  # noqa: N802
        return f"code {code}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.answers:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> Any:
        self.asked.append((name, *arguments))
        answer = self.answers[name]
        answer = answer(*arguments) if callable(answer) else answer
        if isinstance(answer, Refused):
            raise answer
        return answer


def refused(code: int) -> dict[str, Any]:
    return {"error": code, "text": f"code {code}"}


NO_FUNCTION = {"error": 13, "text": "Function Not Found"}
ASKED = """\
uuid nvmlDeviceGetUUID
name nvmlDeviceGetName
pci nvmlDeviceGetPciInfo
compute_capability nvmlDeviceGetCudaComputeCapability
memory nvmlDeviceGetMemoryInfo 33554472
power_draw nvmlDeviceGetPowerUsage
power_limit nvmlDeviceGetEnforcedPowerLimit
power_limit_default nvmlDeviceGetPowerManagementDefaultLimit
clock_sm nvmlDeviceGetClockInfo 1
clock_sm_max nvmlDeviceGetMaxClockInfo 1
event_reasons nvmlDeviceGetCurrentClocksEventReasons
performance_state nvmlDeviceGetPerformanceState
utilization nvmlDeviceGetUtilizationRates
temperature nvmlDeviceGetTemperatureV 0
temperature_slowdown nvmlDeviceGetTemperatureThreshold 1
ecc_uncorrected_volatile nvmlDeviceGetTotalEccErrors 1 0
retired_pages_pending nvmlDeviceGetRetiredPagesPendingStatus
remapped_rows nvmlDeviceGetRemappedRows
mig_mode nvmlDeviceGetMigMode
persistence_mode nvmlDeviceGetPersistenceMode
compute_mode nvmlDeviceGetComputeMode
pcie_generation nvmlDeviceGetCurrPcieLinkGeneration
pcie_generation_max nvmlDeviceGetMaxPcieLinkGeneration
pcie_width nvmlDeviceGetCurrPcieLinkWidth
pcie_width_max nvmlDeviceGetMaxPcieLinkWidth"""


def test_all_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is what was asked. Of five devices one is not reached, one is lost, and two are not there."""
    questions = {fact: (name, *map(int, numbers)) for fact, name, *numbers in map(str.split, ASKED.splitlines())}
    handles = ["first", Refused(999), "lost", Refused(2), "never asked"]
    echoes: dict[str, Any] = {
        name: lambda device, *rest, name=name: [name, *rest] for name in (str(asked[0]) for asked in questions.values())
    }
    module = Module(
        **echoes,
        **dict.fromkeys(("nvmlInit", "nvmlShutdown")),
        nvmlSystemGetDriverVersion=b"550.54.15",
        nvmlSystemGetCudaDriverVersion=12040,
        nvmlDeviceGetCount=5,
        nvmlDeviceGetHandleByIndex=handles.__getitem__,
    )
    mode = module.answers["nvmlDeviceGetMigMode"]
    module.answers |= {
        "nvmlDeviceGetMigMode": lambda device: [0, *mode(device)],
        "nvmlDeviceGetName": lambda device: ["nvmlDeviceGetName"] if device == "first" else Refused(15),
    }
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(os.path, "exists", lambda path: path == "/dev/nvidia0")
    assert nvml_devices.collect({}) == {
        "signs": ["/dev/nvidia0"],
        "commands": {},
        "module": {"file": "", "version": "12.0"},
        "init": {"value": None},
        "driver_version": {"value": "550.54.15"},
        "cuda_version": {"value": 12040},
        "device_count": {"value": 5},
        "devices": [
            {
                "index": 0,
                "answers": {fact: {"value": list(asked)} for fact, asked in questions.items()}
                | {"mig_mode": {"value": [0, "nvmlDeviceGetMigMode"]}, "mig_uuids": {"value": []}}
                | {"nvlinks": NO_FUNCTION, "fabric": NO_FUNCTION, "processes": NO_FUNCTION},
            },
            {"index": 1, "answers": {"handle": refused(999)}},
            {"index": 2, "answers": {"uuid": {"value": ["nvmlDeviceGetUUID"]}, "name": refused(15)}},
        ],
    }
    assert [asked[0] for asked in module.asked if asked[0].startswith("nvmlS")][-1] == "nvmlShutdown"


@pytest.mark.parametrize(
    ("error", "is_missing"),
    [
        (FileNotFoundError("nvml.dll"), True),
        (OSError(f"{LIBRARY}: cannot open shared object file: No such file or directory"), True),
        (OSError("libnvidia-x.so: cannot open shared object file: No such file or directory"), False),
        (OSError(f"{LIBRARY}: file too short"), False),
    ],
)
def test_a_missing_library_is_not_a_broken_one(
    error: OSError, is_missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(nvml_devices, "_run_nvidia_smi", lambda seconds: {"seconds": seconds})
    facts = nvml_devices.collect({"nvidia_smi_seconds": "3"})
    facts.pop("signs")
    assert facts == {"commands": {"seconds": 3.0}, "library_error": str(error), "library_missing": is_missing}
    assert nvml_devices.collect({})["commands"] == {"seconds": 10.0}


def gate_of(**answers: Any) -> Gate:
    lists = {f"nvmlDeviceGet{kind}RunningProcesses_v{n}" for kind in ("Compute", "Graphics") for n in (2, 3)}
    library = SimpleNamespace(**dict.fromkeys(lists & {*answers}, lambda *_: None))
    return Gate(Module(**answers), library)


@pytest.mark.parametrize(
    ("mode", "most", "instances", "answer"),
    [
        pytest.param(refused(3), 1, ["a"], refused(3), id="no such mode"),
        pytest.param({"value": [0, 1]}, 1, ["a"], {"value": []}, id="off"),
        pytest.param({"value": [1, 1]}, Refused(4), ["a"], refused(4), id="nobody says how many"),
        pytest.param({"value": [1, 0]}, 2, ["a", "b", "c"], {"value": ["a", "b"]}, id="as many as there can be"),
        pytest.param({"value": [1, 1]}, 3, [Refused(6), "b", Refused(2)], {"value": ["b"]}, id="empty places"),
        pytest.param({"value": [1, 1]}, 2, [Refused(6), Refused(2)], {"value": []}, id="no instance"),
        pytest.param({"value": [1, 1]}, 3, [Refused(6), Refused(4), Refused(2)], refused(4), id="refused"),
        pytest.param({"value": [1, 1]}, 2, [Refused(4), "b"], {"value": ["b"]}, id="one of two refused"),
    ],
)
def test_instances(mode: dict[str, Any], most: Any, instances: list[Any], answer: dict[str, Any]) -> None:
    gate = gate_of(
        nvmlDeviceGetMaxMigDeviceCount=most,
        nvmlDeviceGetMigDeviceHandleByIndex=lambda device, index: instances[index],
        nvmlDeviceGetUUID=lambda instance: instance,
    )
    assert nvml_devices._mig_uuids(gate, "gpu", mode) == answer


@pytest.mark.parametrize(
    ("links", "asked", "answer"),
    [
        pytest.param([1, Refused(3), 0, Refused(2), 1], 4, {"value": [1, 0]}, id="until there are no more"),
        pytest.param([Refused(3)] * 40, 36, refused(3), id="no links"),
        pytest.param([Refused(3), Refused(2)], 2, refused(3), id="the first failure is told"),
        pytest.param([Refused(4), 1], 1, refused(4), id="no permission"),
    ],
)
def test_links(links: list[Any], asked: int, answer: dict[str, Any]) -> None:
    gate = gate_of(nvmlDeviceGetNvLinkState=lambda device, link: links[link])
    assert nvml_devices._links(gate, "gpu") == answer
    assert gate.module.asked == [("nvmlDeviceGetNvLinkState", "gpu", link) for link in range(asked)]


@pytest.mark.parametrize(
    ("versioned", "first", "answer"),
    [
        pytest.param(3, None, {"value": {"state": 3}}, id="today's NVML"),
        pytest.param(None, 2, {"value": {"state": 2}}, id="older NVML"),
        pytest.param(None, Refused(3), refused(3), id="no fabric"),
        pytest.param(Refused(3), 1, {"value": {"state": 1}}, id="another version of the structure"),
        pytest.param(Refused(15), 1, refused(15), id="lost"),
        pytest.param(None, None, NO_FUNCTION, id="no function"),
    ],
)
def test_the_state_of_the_fabric(versioned: Any, first: Any, answer: dict[str, Any]) -> None:
    def fill(state: Any) -> Any:
        def function(device: str, pointer: Any) -> Any:
            if isinstance(state, Refused):
                return state
            info = pointer._obj
            assert getattr(info, "version", 0x02000024) == 0x02000024
            info.state = state
            return 0

        return function

    functions = {"nvmlDeviceGetGpuFabricInfoV": versioned, "nvmlDeviceGetGpuFabricInfo": first}
    gate = gate_of(**{name: fill(state) for name, state in functions.items() if state is not None})
    assert nvml_devices._fabric(gate, "gpu") == answer


def test_the_structures_of_the_fabric_are_those_of_nvml() -> None:
    old, new = nvml_devices.FabricInfo, nvml_devices.FabricInfoV
    assert [old.status.offset, old.clique.offset, old.state.offset, ctypes.sizeof(old)] == [16, 20, 24, 28]
    assert [new.cluster.offset, new.state.offset, new.health.offset, ctypes.sizeof(new)] == [4, 28, 32, 0x24]


@pytest.mark.parametrize(
    ("compute", "graphics", "answer"),
    [
        pytest.param(Refused(4), Refused(3), refused(4), id="neither list"),
        pytest.param(Refused(3), [(5, 70)], {"value": [(5, "five", 70)]}, id="one list"),
        pytest.param(
            [(5, 50), (7, None)],
            [(5, 70), (8, 80), (9, 90)],
            {"value": [(5, "five", 50), (7, "", None), (9, "in 9", 90)]},
            id="each once, without its own",
        ),
    ],
)
def test_processes(compute: Any, graphics: Any, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(processes: Any) -> Any:
        if isinstance(processes, Refused):
            return processes
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in processes]

    comm = {"/proc/9/comm": "in 9\n"}
    monkeypatch.setattr(nvml_devices, "read_start", lambda path: comm.get(path, ""))
    gate = gate_of(
        nvmlDeviceGetComputeRunningProcesses_v3=lambda device: listed(compute),
        nvmlDeviceGetGraphicsRunningProcesses_v2=lambda device: listed(graphics),
        nvmlSystemGetProcessName=lambda pid: "five" if pid == 5 else Refused(6),
    )
    found = nvml_devices._processes(gate, "gpu", {8})
    if "value" in found:
        found = {"value": [(process["pid"], process["name"], process["used_bytes"]) for process in found["value"]]}
    assert found == answer


@pytest.mark.parametrize(("mask", "reasons"), [(1 << 63, ("reason_0x8000000000000000",)), (1 << 64, None)])
def test_the_highest_bit_of_a_mask(mask: int, reasons: tuple[str, ...] | None) -> None:
    answers = {"event_reasons": {"value": mask}}
    assert only_device({"devices": [{"index": 0, "answers": answers}]}).throttle_reasons == reasons


@pytest.mark.parametrize(
    ("facts", "code", "text"),
    [
        ({"init": {"value": None}}, 0, ""),
        ({"init": {"error": 9, "text": "Driver Not Loaded"}}, 9, "Driver Not Loaded"),
        ({"library_error": "no such file", "init": {"value": None}}, 12, "no such file"),
        ({"commands": {"nvidia-smi": {"status": 9, "stdout": "it failed"}}}, None, "it failed"),
        ({"commands": {"nvidia-smi": {"status": 0, "stdout": "fine"}}}, None, None),
        ({}, None, None),
    ],
)
def test_how_nvml_started(facts: dict[str, Any], code: int | None, text: str | None) -> None:
    driver = parse_nvml_driver({"signs": ["/dev/nvidia0"], **facts})
    assert driver is not None
    assert (driver.nvml_code, driver.nvml_error) == (code, text)
