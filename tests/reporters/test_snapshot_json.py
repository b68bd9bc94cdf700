"""The snapshot as JSON, fit to be posted."""

import json

from gpudoctor.model import Device, Environment, Snapshot
from gpudoctor.model.codec import from_json
from gpudoctor.reporters import json_report

UUIDS = ("GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab", "GPU-77777777-11aa-22bb-33cc-0123456789ab")
SNAPSHOT = Snapshot(
    devices=tuple(Device(nvml_index=n, uuid=uuid) for n, uuid in enumerate(UUIDS)),
    environment=Environment(variables={"CUDA_VISIBLE_DEVICES": UUIDS[1].upper().replace("GPU", "GPU")}),
)


def test_uuids_are_numbered_and_still_the_same_devices() -> None:
    document = json.loads(json_report.render_snapshot(SNAPSHOT))
    first, second = (device["uuid"] for device in document["devices"])
    assert first == "GPU-00000000-0000-0000-0000-000000000001"
    assert document["environment"]["variables"]["CUDA_VISIBLE_DEVICES"] == second


def test_writing_twice_changes_nothing() -> None:
    text = json_report.render_snapshot(SNAPSHOT)
    assert text.startswith('{\n  "schema": "gpudoctor/snapshot/1",\n  "devices": [\n    {\n')
    assert json_report.render_snapshot(from_json(Snapshot, json.loads(text))) == text
