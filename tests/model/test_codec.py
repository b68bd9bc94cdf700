"""Facts survive the way to JSON and back, and data that does not fit is refused with its place."""

import json
import math

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    DeviceProcess,
    Driver,
    DriverVersion,
    Environment,
    PackageVersion,
    PrecisionResult,
    ProbeReport,
    Snapshot,
    System,
    Torch,
)
from gpudoctor.model.codec import from_json, to_json

MACHINE = Snapshot(
    taken_at="2026-01-02T03:04:05Z",
    system=System(os="linux"),
    driver=Driver(version=DriverVersion.parse("535.129.03"), cuda_version=CudaVersion(12, 2), libcuda_error=""),
    devices=(
        Device(
            nvml_index=0,
            compute_capability=ComputeCapability(8, 6),
            processes=(DeviceProcess(pid=7, name="python", used_bytes=2**30),),
        ),
    ),
    torch=Torch(installed=True, version=PackageVersion("2.9.0+cu128"), architectures=("sm_80", "sm_90")),
    environment=Environment(variables={"CUDA_VISIBLE_DEVICES": ""}),
    reports=(ProbeReport(section="cupy_runtime", state="failed", detail="killed by SIGSEGV"),),
)


def test_a_snapshot_comes_back_the_same() -> None:
    assert from_json(Snapshot, json.loads(json.dumps(to_json(MACHINE)))) == MACHINE


def test_unknown_is_left_out_and_a_known_absence_is_kept() -> None:
    written = to_json(MACHINE)["driver"]
    assert "nvml_code" not in written
    assert written["libcuda_error"] == ""
    assert from_json(Snapshot, {"devices": []}).devices == ()


@pytest.mark.parametrize("error", [math.inf, -math.inf])
def test_a_number_that_json_does_not_have(error: float) -> None:
    result = PrecisionResult(device="cuda:0", precision="fp16", relative_error=error)
    assert from_json(PrecisionResult, json.loads(json.dumps(to_json(result), allow_nan=False))) == result


def test_a_name_that_this_version_does_not_know_is_passed_over() -> None:
    assert from_json(Snapshot, {"quantum": {}, "torch": {"installed": False, "colour": "red"}}).torch == Torch(
        installed=False
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"torch": 3}, "Snapshot.torch: expected dict, found int"),
        ({"devices": [{"nvml_index": "0"}]}, r"Snapshot.devices\[0\].nvml_index: expected int, found str"),
        ({"devices": [{}]}, r"Snapshot.devices\[0\]: .*nvml_index"),
        ({"driver": {"version": "new"}}, "Snapshot.driver.version: not a driver version: 'new'"),
        ({"driver": {"cuda_init_code": True}}, "Snapshot.driver.cuda_init_code: expected int, found bool"),
    ],
)
def test_data_that_does_not_fit_is_refused_with_its_place(data: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(Snapshot, data)
