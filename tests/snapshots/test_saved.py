"""A snapshot file: read, refused with its reason, or none at all."""

import json

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model import System
from gpudoctor.snapshots.saved import read_snapshot

SCHEMA = "gpudoctor/snapshot/1"


def read(document: object) -> object:
    return read_snapshot(json.dumps(document).encode(), "old.json")


def test_facts_of_an_older_gpudoctor_are_passed_over() -> None:
    found = read_snapshot(
        json.dumps(
            {
                "schema": SCHEMA,
                "system": {"os": "linux", "user_groups": ["video"], "cpu_limit": 4.0},
                "devices": [{"nvml_index": 0, "fan_percent": 30, "retired_pages": 1}],
                "torch_runtime": {"nccl_version": "2.27.3", "device_uuids": ["GPU-1"]},
            }
        ).encode(),
        "old.json",
    )
    assert found is not None
    assert found.system == System(os="linux")
    assert [device.nvml_index for device in found.devices or ()] == [0]


def test_a_report_has_its_snapshot_inside() -> None:
    assert read({"schema": "gpudoctor/report/1", "snapshot": {"schema": SCHEMA}}) is not None


@pytest.mark.parametrize(
    "data", [b"", b"PyTorch version: 2.9.0", b'{"schema": "other/1"}', b'["gpudoctor/snapshot/1"]']
)
def test_what_is_no_snapshot(data: bytes) -> None:
    assert read_snapshot(data, "x") is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"schema": "gpudoctor/snapshot/1"', "old.json: a snapshot that is cut off or damaged"),
        (b'{"schema": "gpudoctor/snapshot/2"}', "its schema is gpudoctor/snapshot/2, this gpudoctor reads"),
        (b'{"schema": "gpudoctor/snapshot/1", "torch": 3}', r"a damaged snapshot: old.json.torch: expected dict"),
    ],
)
def test_a_snapshot_that_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_snapshot(data, "old.json")
