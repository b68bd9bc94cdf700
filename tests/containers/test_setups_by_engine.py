"""How containers are started, as a real engine tells it. Nothing of the images is run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.setups import look_at_setups
from gpudoctor.model import Containers, ContainerSetup
from gpudoctor.model.codec import from_json
from tests.containers.engine import docker, image, missing_engine

pytestmark = pytest.mark.engine

__all__ = ["image"]

BUSYBOX = shutil.which("busybox") or "/bin/busybox"
TORCH = "usr/local/lib/python3.11/site-packages/torch/version.py"
CPU = "__version__ = '2.9.0+cpu'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"
CUDA_ENVIRONMENT = 'ENV NVIDIA_VISIBLE_DEVICES=all CUDA_VERSION=13.0.1 NVIDIA_REQUIRE_CUDA="cuda>=13.0" SECRET=hush\n'


@pytest.fixture
def container() -> Iterator[str]:
    """Return a name for a container, which is removed after the test."""
    if missing_engine():
        pytest.skip(missing_engine())
    name = f"gpudoctor-test-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    docker("rm", "-f", name)


def build(folder: Path, tag: str, files: dict[str, str], dockerfile: str = "") -> None:
    """Build an image FROM scratch with `files`, by their path in it."""
    for path, text in files.items():
        target = folder / "root" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (folder / "Dockerfile").write_text(f"FROM scratch\nCOPY root /\n{CUDA_ENVIRONMENT}{dockerfile}")
    docker("build", "--quiet", "--tag", tag, str(folder))


def look(folder: Path, **arguments: Any) -> Containers:
    facts = look_at_setups({"directory": str(folder), **arguments}, os.environ)
    assert "unavailable" not in facts, facts
    return from_json(Containers, facts["containers"])


def one(folder: Path, **arguments: Any) -> ContainerSetup:
    (setup,) = look(folder, **arguments).setups
    return setup


def test_a_container_that_was_created(tmp_path: Path, image: str, container: str) -> None:
    build(tmp_path, image, {TORCH: CPU})
    options = (
        "--gpus",
        "all",
        "--shm-size",
        "1g",
        "--ulimit",
        "memlock=65536",
        "--device",
        "/dev/null",
        "-e",
        "TOKEN=x",
    )
    docker("create", "--name", container, *options, image, "/never")
    setup = one(tmp_path, container=container)
    assert (setup.kind, setup.name, setup.image, setup.state) == ("container", container, image, "created")
    assert setup.gpu_requests is not None
    assert (setup.gpu_requests[0].count, setup.gpu_requests[0].capabilities) == (-1, ("gpu",))
    assert (setup.shm_size_bytes, setup.memlock_bytes, setup.ipc) == (1 << 30, 65536, "private")
    assert set(setup.environment) == {"NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION", "NVIDIA_REQUIRE_CUDA"}
    assert setup.torch is not None
    assert (str(setup.torch.version), setup.torch.build) == ("2.9.0+cpu", "cpu")


def test_why_it_did_not_start(tmp_path: Path, image: str, container: str) -> None:
    build(tmp_path, image, {"hello": "world"})
    docker("create", "--name", container, "--gpus", "all", image, "/never")
    with pytest.raises(AssertionError, match="could not select device driver|nvidia|CDI"):
        docker("start", container)
    setup = one(tmp_path, container=container)
    assert setup.failures
    assert setup.failures[0].kind.startswith("container-")


@pytest.mark.skipif(not os.path.exists(BUSYBOX), reason="no busybox")
def test_its_log_is_read(tmp_path: Path, image: str, container: str) -> None:
    (tmp_path / "root" / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, tmp_path / "root" / "bin" / "sh")
    build(tmp_path, image, {"hello": "world"})
    said = "echo hush; echo Failed to initialize NVML: Unknown Error"
    docker("run", "--name", container, "--network", "none", image, "/bin/sh", "-c", said)
    setup = one(tmp_path, container=container)
    assert [message.kind for message in setup.failures] == ["container-nvml-unknown-error"]
    assert "hush" not in repr(setup)


@pytest.mark.parametrize(
    ("files", "dockerfile", "expected"),
    [
        pytest.param({TORCH: CPU}, "", ("2.9.0+cpu", "cpu"), id="no Python on PATH"),
        pytest.param(
            {"opt/env/bin/python3.12": "", "opt/env/lib/python3.12/site-packages/torch/version.py": CPU},
            "ENV PATH=/opt/env/bin:/bin\n",
            ("2.9.0+cpu", "cpu"),
            id="an environment on PATH",
        ),
        pytest.param(
            {"usr/local/lib/python3.11/site-packages/torch-2.9.0+cu128.dist-info/METADATA": "Name: torch\n"},
            "",
            ("2.9.0+cu128", "cuda"),
            id="metadata only",
        ),
        pytest.param({"srv/torch/version.py": CPU}, "ENV PYTHONPATH=/srv\n", ("2.9.0+cpu", "cpu"), id="PYTHONPATH"),
        pytest.param({TORCH: "x = 1\n"}, "", None, id="another file"),
        pytest.param({"hello": "world"}, "", None, id="none"),
    ],
)
def test_the_torch_of_an_image(
    tmp_path: Path, image: str, files: dict[str, str], dockerfile: str, expected: tuple[str, str] | None
) -> None:
    for path in files:
        if "/bin/python3." in path:
            (tmp_path / "root" / path).parent.mkdir(parents=True)
            (tmp_path / "root" / path).parent.joinpath("python3").symlink_to(Path(path).name)
    build(tmp_path, image, files, dockerfile)
    setup = one(tmp_path, image=image)
    assert (setup.kind, setup.gpu_requests) == ("image", None)
    assert (setup.torch and (str(setup.torch.version), setup.torch.build)) == expected


def test_nothing_is_left_behind(tmp_path: Path, image: str) -> None:
    build(tmp_path, image, {TORCH: CPU})
    look(tmp_path, image=image)
    assert docker("ps", "-aq", "--filter", f"ancestor={image}") == b""


def test_services_of_a_compose_file(tmp_path: Path, image: str) -> None:
    build(tmp_path, image, {TORCH: CPU})
    (tmp_path / "compose.yaml").write_text(
        f"""services:
  train:
    image: {image}
    shm_size: 2gb
    ulimits: {{memlock: -1}}
    deploy: {{resources: {{reservations: {{devices: [{{driver: nvidia, count: all, capabilities: [gpu]}}]}}}}}}
  web:
    image: {image}
"""
    )
    found = look(tmp_path)
    train, web = found.setups
    assert (train.kind, train.service, train.shm_size_bytes, train.memlock_bytes) == ("service", "train", 2 << 30, 0)
    assert train.gpu_requests
    assert web.gpu_requests == ()
    assert train.torch == web.torch
    assert train.torch is not None
    assert found.engine is not None
    assert found.engine.runtimes
    assert [setup.name for setup in look(tmp_path, service="web").setups] == ["web"]


def test_the_container_of_a_service(tmp_path: Path, image: str, container: str) -> None:
    build(tmp_path, image, {"hello": "world"})
    (tmp_path / "compose.yaml").write_text(f"services: {{train: {{image: {image}}}}}\n")
    labels = {
        "com.docker.compose.project": tmp_path.name.lower(),
        "com.docker.compose.service": "train",
        "com.docker.compose.project.working_dir": str(tmp_path),
    }
    options = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    docker("create", "--name", container, *options, image, "/never")
    service, made = look(tmp_path).setups
    assert (service.kind, made.kind, made.service, made.name) == ("service", "container", "train", container)


def test_from_of_a_dockerfile(tmp_path: Path) -> None:
    text = "ARG TAG=13.0.1\nFROM nvidia/cuda:${TAG}-base-ubuntu24.04 AS base\nRUN true\nFROM base\nCOPY . /app\n"
    (tmp_path / "Dockerfile").write_text(text)
    facts = look_at_setups({"directory": str(tmp_path), "build_arguments": ["TAG=12.4.1"]}, os.environ)
    (setup,) = from_json(Containers, facts["containers"]).setups
    assert (setup.name, setup.base) == ("Dockerfile", "nvidia/cuda:12.4.1-base-ubuntu24.04")


def test_without_an_engine_the_files_still_show(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {train: {image: nvidia/cuda:13.0.1-base, ipc: host}}\n")
    environ = {**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:1"}
    found = from_json(Containers, look_at_setups({"directory": str(tmp_path)}, environ)["containers"])
    assert found.engine is None
    assert (found.setups[0].image, found.setups[0].ipc, found.setups[0].gpu_requests) == (
        "nvidia/cuda:13.0.1-base",
        "host",
        (),
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"container": "gpudoctor-no-such-container"}, "there is no container", id="container"),
        pytest.param({"image": "gpudoctor-no-such-image:1"}, "there is no image", id="image"),
        pytest.param({"compose": "nope.yaml"}, "there is no compose file nope.yaml", id="compose file"),
    ],
)
def test_what_is_not_there(tmp_path: Path, arguments: dict[str, str], words: str) -> None:
    if missing_engine() and "compose" not in arguments:
        pytest.skip(missing_engine())
    assert words in look_at_setups({"directory": str(tmp_path), **arguments}, os.environ)["unavailable"]


def test_if_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "compose").mkdir()
    assert look_at_setups({"directory": "/"}, os.environ) == {}


def test_a_large_image_costs_little(tmp_path: Path, image: str) -> None:
    """A package of 64 MB beside torch/version.py is not transferred."""
    large = tmp_path / "root" / "usr/local/lib/python3.11/site-packages/torch/lib"
    large.mkdir(parents=True)
    with (large / "libtorch_cuda.so").open("wb") as file:
        file.write(os.urandom(1 << 20) * 64)
    build(tmp_path, image, {TORCH: CPU})
    began = time.monotonic()
    assert one(tmp_path, image=image).torch is not None
    assert time.monotonic() - began < 3.0


def test_nothing_of_an_image_is_started(tmp_path: Path, image: str) -> None:
    build(tmp_path, image, {TORCH: CPU})
    look(tmp_path, image=image)
    options = ("--since", "30s", "--until", "0s", "--filter", f"image={image}", "--filter", "event=start")
    assert docker("events", *options) == b""
