"""The reader of what Docker and NVIDIA's container tools print, and of their configuration."""

import pytest

from gpudoctor.model import Container, CudaVersion
from gpudoctor.readers.docker_info import read
from gpudoctor.readers.text import clean_text

COMPOSE = """\
services:
  app:
    image: pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime
    shm_size: '8gb'
    environment:
      - NVIDIA_VISIBLE_DEVICES=all
      - SECRET_NUMBER=1
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""


def container(text: str) -> Container:
    found = read(clean_text(text, "r")).get("container", Container())
    assert isinstance(found, Container)
    return found


def test_docker_info_without_the_runtime() -> None:
    found = container(
        "Server:\n Server Version: 26.1.3\n Runtimes: io.containerd.runc.v2 runc\n Default Runtime: runc\n"
    )
    assert (found.docker_installed, found.nvidia_runtime_configured) == (True, False)


def test_docker_info_with_the_runtime() -> None:
    assert container(" Runtimes: runc io.containerd.runc.v2 nvidia\n Default Runtime: runc\n").nvidia_runtime_configured


@pytest.mark.parametrize(
    ("text", "configured"),
    [
        ('{\n "runtimes": {\n  "nvidia": {\n   "path": "nvidia-container-runtime"\n  }\n }\n}\n', True),
        ('cat /etc/docker/daemon.json\n{\n "log-driver": "json-file"\n}\n', False),
        ('{\n "log-driver": "json-fi', None),
        ('{\n "model": "x"\n}', None),
    ],
)
def test_daemon_json(text: str, configured: bool | None) -> None:
    assert container(text).nvidia_runtime_configured is configured


@pytest.mark.parametrize(
    ("text", "installed"),
    [
        ("NVIDIA Container Toolkit CLI version 1.14.3\n", True),
        ("ii  nvidia-container-toolkit  1.16.2-1  amd64\n", True),
        ("bash: nvidia-ctk: command not found\n", False),
        ('exec: "nvidia-container-runtime-hook": executable file not found in $PATH', False),
        ("see the NVIDIA Container Toolkit documentation", None),
    ],
)
def test_toolkit(text: str, installed: bool | None) -> None:
    assert container(text).toolkit_installed is installed


def test_cdi_devices() -> None:
    found = container("INFO[0000] Found 2 CDI devices\nnvidia.com/gpu=0\nnvidia.com/gpu=all\n")
    assert found.cdi_devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert container("INFO[0000] Found 0 CDI devices\n").cdi_devices == ()


def test_a_compose_file_that_asks_for_gpus() -> None:
    facts = read(clean_text(COMPOSE, "r"))
    found = facts["container"]
    assert (found.gpus_requested, found.compose, found.shm_size_bytes) == (True, True, 8 * 2**30)
    assert (found.image, found.image_cuda_version) == (
        "pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime",
        CudaVersion(12, 1),
    )
    assert dict(facts["environment"].variables) == {"NVIDIA_VISIBLE_DEVICES": "all"}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param("\n".join(COMPOSE.splitlines()[:7]), False, id="nothing of GPUs"),
        pytest.param(
            COMPOSE.replace("    deploy", "#    deploy").replace("              cap", "#  cap"), False, id="comment"
        ),
        pytest.param("services:\n  app:\n    build: .\n    runtime: nvidia\n", True, id="runtime"),
        pytest.param("services:\n  app:\n    build: .\n    gpus: all\n", True, id="gpus"),
        pytest.param("services:\n  app:\n    build: .\n    ...\n", None, id="cut"),
        pytest.param("services:\n  db:\n    image: a/b\n  app:\n    image: c/d\n", None, id="two services"),
    ],
)
def test_what_a_compose_file_asks_for(text: str, asked: bool | None) -> None:
    assert container(text).gpus_requested is asked


def test_docker_inspect() -> None:
    found = container('"HostConfig": {\n "Runtime": "runc",\n "ShmSize": 67108864,\n "DeviceRequests": null,')
    assert (found.gpus_requested, found.shm_size_bytes) == (False, 67108864)


@pytest.mark.parametrize(
    "text", ["sudo snap install docker\n", "/var/lib/snapd/snap/bin/docker: /snap/docker/2915/x\n"]
)
def test_a_snap(text: str) -> None:
    assert container(text).docker_snap


def test_the_engine_by_its_version() -> None:
    assert container("Docker version 20.10.21, build baeda1f\n").docker_installed
    assert container("Operating System: Docker Desktop\n").docker_desktop


INSPECTED = """\
"Config": {"Image": "pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime"},
"HostConfig": {"Runtime": "nvidia", "ShmSize": 67108864, "DeviceRequests": null}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            INSPECTED,
            Container(
                engine="docker",
                docker_installed=True,
                gpus_requested=True,
                shm_size_bytes=2**26,
                image="pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime",
                image_cuda_version=CudaVersion(12, 1),
            ),
            id="the runtime gives the GPU",
        ),
        pytest.param(
            '"Image": "sha256:0123abcd", "HostConfig": {"DeviceRequests": [{"Capabilities": [["gpu"]]}]}',
            Container(engine="docker", docker_installed=True, gpus_requested=True),
            id="--gpus, and an image without a name",
        ),
        pytest.param(
            '"HostConfig": {"Runtime": "runc", "DeviceRequests": [{"Driver": "nvidia"}]}',
            Container(engine="docker", docker_installed=True, gpus_requested=True),
            id="the driver by its name",
        ),
        pytest.param(
            '"HostConfig": {"Runtime": "runc", "DeviceRequests": [{"Capabilities": [["tpu"]]}]}',
            Container(engine="docker", docker_installed=True, gpus_requested=False),
            id="another device",
        ),
        pytest.param(
            '"HostConfig": {"Binds": []}', Container(engine="docker", docker_installed=True), id="cut off before"
        ),
        pytest.param('"Runtime": "nvidia", "ShmSize": 1', Container(), id="of another text"),
    ],
)
def test_all_that_docker_inspect_says(text: str, expected: Container) -> None:
    assert container(text) == expected


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA")),
        *((name, True) for name in ("NVIDIA_DISABLE_REQUIRE", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES")),
        ("NVIDIA_API_KEY", False),
    ],
)
def test_variables_that_bear_on_gpus_are_kept(name: str, kept: bool) -> None:
    facts = read(clean_text(COMPOSE.replace("SECRET_NUMBER", name).replace("NVIDIA_VISIBLE_DEVICES=all", "A=b"), "r"))
    variables = facts["environment"].variables if "environment" in facts else {}
    assert dict(variables) == ({name: "1"} if kept else {})
