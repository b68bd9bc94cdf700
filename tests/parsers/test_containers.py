"""Configuration of container engines, and the answers of their API."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import ContainerEngine, ContainerSetup, GpuRequest
from gpudoctor.parsers.containers import (
    mentions_nvidia_runtime,
    names_nvidia_runtime,
    parse_cdi_devices,
    parse_container,
    parse_engine,
    parse_image,
)

CONFIGURED = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}, "log-driver": "json-file"}'
CDI_YAML = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args:
    - nvidia-ctk
    hookName: createContainer
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- containerEdits: {}
  name: all
kind: nvidia.com/gpu
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(CONFIGURED, True, id="runtime"),
        pytest.param('{"default-runtime": "nvidia"}', True, id="default"),
        pytest.param('{"runtimes": {"crun": {"path": "/usr/bin/crun"}}}', False, id="another runtime"),
        pytest.param('{"insecure-registries": ["nvidia.example"]}', False, id="the word elsewhere"),
        pytest.param('{"runtimes": null}', False, id="null"),
        pytest.param("", False, id="empty file"),
    ],
)
def test_daemon_json(text: str, named: bool) -> None:
    assert names_nvidia_runtime(text) is named


@pytest.mark.parametrize("text", ["[]", '{"runtimes": {"nvidia": {}},}', "[" * 100_000])
def test_broken_daemon_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        names_nvidia_runtime(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n', True),
        ('BinaryName = "/usr/bin/nvidia-container-runtime"\n', True),
        ('# BinaryName = "/usr/bin/nvidia-container-runtime"\n', False),
        ("version = 2\n", False),
    ],
)
def test_toml(text: str, named: bool) -> None:
    assert mentions_nvidia_runtime(text) is named


def test_cdi_devices() -> None:
    assert parse_cdi_devices(CDI_YAML) == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    text = '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": "all"}, 7]}'
    assert parse_cdi_devices(text) == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert parse_cdi_devices('kind: "amd.com/gpu"\n') == ()


@pytest.mark.parametrize("text", ["", "devices:\n- name: a\n", "{}", "{" * 100_000])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cdi_devices(text)


CUDA_IMAGE: dict[str, Any] = {
    "Id": "sha256:81474675a81f",
    "Config": {
        "Env": [
            "PATH=/usr/local/nvidia/bin:/usr/bin:/bin",
            "NVIDIA_VISIBLE_DEVICES=all",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            "CUDA_VERSION=13.0.1",
            "NVIDIA_REQUIRE_CUDA=cuda>=13.0",
        ]
    },
}
ALL = {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
CDI = {"Driver": "cdi", "Count": 0, "DeviceIDs": ["nvidia.com/gpu=all"], "Capabilities": None, "Options": None}


def inspected(**host: Any) -> dict[str, Any]:
    """Return what Docker 20.10 says of a container that was created."""
    return {
        "Id": "333861de52f2",
        "Name": "/trainer",
        "State": {"Status": "created", "Error": ""},
        "HostConfig": {
            "DeviceRequests": None,
            "Devices": [],
            "Runtime": "runc",
            "ShmSize": 67108864,
            "IpcMode": "private",
            "Ulimits": None,
            "Privileged": False,
            "Tmpfs": None,
            **host,
        },
        "Config": {"Image": "trainer:1", "Env": [*CUDA_IMAGE["Config"]["Env"], "HF_TOKEN=not-to-be-kept"]},
        "Mounts": [],
    }


def setup(engine: str = "docker", **host: Any) -> ContainerSetup:
    return parse_container(inspected(**host), CUDA_IMAGE, engine)


def test_a_container_as_docker_starts_it() -> None:
    found = setup()
    assert (found.name, found.kind, found.image, found.state) == ("trainer", "container", "trainer:1", "created")
    assert (found.gpu_requests, found.device_files, found.runtime) == ((), (), "runc")
    assert (found.shm_size_bytes, found.ipc, found.has_own_shm, found.memlock_bytes) == (
        67108864,
        "private",
        False,
        None,
    )


def test_only_variables_that_bear_on_gpus_are_kept() -> None:
    found = setup()
    assert set(found.environment) == {
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "CUDA_VERSION",
        "NVIDIA_REQUIRE_CUDA",
    }
    assert found.image_environment == found.environment


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(ALL, GpuRequest(count=-1, capabilities=("gpu",)), id="--gpus all"),
        pytest.param(
            {**ALL, "Count": 0, "DeviceIDs": ["0", "2"], "Capabilities": [["utility", "gpu"]]},
            GpuRequest(count=0, device_ids=("0", "2"), capabilities=("utility", "gpu")),
            id="--gpus device=0,2 with capabilities",
        ),
        pytest.param(CDI, GpuRequest(driver="cdi", count=0, device_ids=("nvidia.com/gpu=all",)), id="--device by CDI"),
    ],
)
def test_requests(request_: dict[str, Any], expected: GpuRequest) -> None:
    assert setup(DeviceRequests=[request_]).gpu_requests == (expected,)


def test_podman_shows_nothing_of_its_cdi_devices() -> None:
    assert setup("podman").gpu_requests is None


def test_device_nodes() -> None:
    devices = [{"PathOnHost": path} for path in ("/dev/nvidia0", "/dev/infiniband/uverbs0", "/dev/fuse")]
    assert setup(Devices=devices).device_files == ("/dev/nvidia0", "/dev/infiniband/uverbs0")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param([{"Name": "memlock", "Soft": -1, "Hard": -1}], 0, id="unlimited"),
        pytest.param([{"Name": "memlock", "Soft": 65536, "Hard": 65536}], 65536, id="64 KiB"),
        pytest.param([{"Name": "nofile", "Soft": 1024, "Hard": 1024}], None, id="the engine's default"),
    ],
)
def test_memlock(limits: list[dict[str, Any]], expected: int | None) -> None:
    assert setup(Ulimits=limits).memlock_bytes == expected


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"Tmpfs": {"/dev/shm": "size=8g"}}, id="--tmpfs"),
        pytest.param({"Mounts": [{"Type": "tmpfs", "Target": "/dev/shm"}]}, id="--mount"),
    ],
)
def test_another_shm(about: dict[str, Any]) -> None:
    assert setup(**about).has_own_shm is True


def test_an_image() -> None:
    found = parse_image("cuda:1", CUDA_IMAGE)
    assert (found.kind, found.image, found.gpu_requests) == ("image", "cuda:1", None)
    assert found.environment["CUDA_VERSION"] == "13.0.1"


DOCKER_20 = {
    "Runtimes": {"io.containerd.runc.v2": {"path": "runc"}, "runc": {"path": "runc"}},
    "DefaultRuntime": "runc",
    "CgroupDriver": "cgroupfs",
    "SecurityOptions": ["name=seccomp,profile=default"],
    "OperatingSystem": "Debian GNU/Linux 12 (bookworm)",
    "KernelVersion": "6.1.0-18-amd64",
}


SOCKET = "unix:///var/run/docker.sock"


def engine(*, address: str = SOCKET, version: dict[str, Any] | None = None, **info: Any) -> ContainerEngine:
    version = version or {"Version": "20.10.24+dfsg1", "Components": [{"Name": "Engine"}]}
    about = {**DOCKER_20, **info}
    return parse_engine(about, version, address=address, has_device_links=False)


def test_an_engine() -> None:
    assert engine() == ContainerEngine(
        name="docker",
        is_local=True,
        runtimes=("io.containerd.runc.v2", "runc"),
        default_runtime="runc",
        cgroup_driver="cgroupfs",
        has_device_links=False,
    )


def test_an_engine_that_knows_cdi() -> None:
    devices = [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}, {"Source": "cdi", "ID": "nvidia.com/gpu=all"}]
    found = engine(CDISpecDirs=["/etc/cdi", "/var/run/cdi"], DiscoveredDevices=devices)
    assert found.cdi_folders == ("/etc/cdi", "/var/run/cdi")
    assert found.cdi_devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")


def test_cdi_switched_off_is_not_unknown() -> None:
    assert engine(CDISpecDirs=[]).cdi_folders == ()
    assert engine(CDISpecDirs=None).cdi_folders is None


def test_podman() -> None:
    version = {"Version": "5.4.0", "Components": [{"Name": "Podman Engine"}]}
    assert engine(version=version).name == "podman"


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        pytest.param({"address": "tcp://host:2376"}, False, id="over the network"),
        pytest.param({"address": "npipe:////./pipe/docker_engine"}, True, id="of Windows"),
        pytest.param({"OperatingSystem": "Docker Desktop"}, False, id="a virtual machine"),
        pytest.param(
            {"OperatingSystem": "Docker Desktop", "KernelVersion": "6.6.87.2-microsoft-standard-WSL2"},
            True,
            id="WSL, whose driver is the one here",
        ),
    ],
)
def test_whose_driver_it_has(about: dict[str, Any], expected: bool) -> None:
    found = engine(**about)
    assert found.is_local is expected
    assert found.has_device_links is (False if expected else None)


def test_what_a_stranger_wrote_stays_on_one_line() -> None:
    about = inspected(Runtime="nvidia\x1b[31m\n")
    about["Config"]["Env"] = ["NVIDIA_VISIBLE_DEVICES=void\r\n\x1b]0;owned\x07"]
    found = parse_container(about, None, "docker")
    assert found.environment["NVIDIA_VISIBLE_DEVICES"].isprintable()
    assert found.runtime is not None
    assert found.runtime.isprintable()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA")),
        *((name, True) for name in ("NVIDIA_DISABLE_REQUIRE", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES")),
        ("NVIDIA_API_KEY", False),
    ],
)
def test_each_variable_of_a_container(name: str, kept: bool) -> None:
    content = {**inspected(), "Config": {"Image": "trainer:1", "Env": [f"{name}=1"]}}
    found = parse_container(content, {"Id": "sha256:0", "Config": {"Env": []}}, "docker")
    assert dict(found.environment) == ({name: "1"} if kept else {})
