"""What a compose file says of a service, as a container's setup."""

from typing import Any

import pytest

from gpudoctor.containers.compose.project import Service
from gpudoctor.containers.setups import _Look, parse_service
from gpudoctor.model import GpuRequest

CUDA_IMAGE: dict[str, Any] = {"Config": {"Env": ["PATH=/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all"]}}


def test_a_service() -> None:
    service = Service(
        name="train",
        images=("shop-train", "shop_train"),
        gpu_requests=(GpuRequest(driver="nvidia", count=-1, capabilities=("gpu",)),),
        environment={"NVIDIA_VISIBLE_DEVICES": "0", "HF_TOKEN": "not-to-be-kept", "CUDA_VISIBLE_DEVICES": None},
        memlock=-1,
        mount_targets=("/dev/shm",),
        devices=("/dev/infiniband",),
        shm_size_bytes=1 << 30,
        ipc="host",
    )
    found = parse_service(service, CUDA_IMAGE)
    assert found.gpu_requests == (GpuRequest(driver="nvidia", count=-1, capabilities=("gpu",)),)
    assert found.environment["NVIDIA_VISIBLE_DEVICES"] == "0"
    assert "HF_TOKEN" not in found.environment
    assert (found.image, found.memlock_bytes, found.has_own_shm) == ("shop-train", 0, True)
    assert (found.device_files, found.shm_size_bytes, found.ipc) == (("/dev/infiniband",), 1 << 30, "host")
    assert found.image_environment == {"NVIDIA_VISIBLE_DEVICES": "all"}


def test_a_service_whose_image_is_not_there_yet() -> None:
    found = parse_service(Service(name="train", image="x", memlock=64, mount_targets=("/data",)), None)
    assert (found.image, found.image_environment, found.memlock_bytes, found.has_own_shm) == ("x", None, 64, False)


class Api:
    """An engine that knows the log of one container."""

    def logs(self, container: str, **_: Any) -> list[bytes]:
        return [b"could not select device ", b"driver\n"]


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        pytest.param({"StartedAt": "2026-11-01T10:00:00Z"}, ["container-no-device-driver"], id="what it wrote"),
        pytest.param({"StartedAt": "0001-01-01T00:00:00Z"}, [], id="it never started"),
        pytest.param(
            {
                "StartedAt": "2026-11-01T10:00:00Z",
                "Error": 'could not select device driver "" with capabilities: [[gpu]]',
            },
            ["container-no-device-driver"],
            id="the engine did not start it",
        ),
    ],
)
def test_why_a_container_failed(state: dict[str, str], kinds: list[str]) -> None:
    pytest.importorskip("docker")
    look = _Look.__new__(_Look)
    look._api = Api()  # type: ignore[assignment]
    found = [symptom.kind for symptom in look._failures({"Id": "1", "State": state})]
    assert found == kinds
