"""What a compose file says of a service, as a container's setup."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError, DockerException
from requests import RequestException

from gpudoctor.containers import setups
from gpudoctor.containers.compose.project import Service
from gpudoctor.containers.compose.reader import read_project
from gpudoctor.containers.engines.connection import EngineUnavailable
from gpudoctor.containers.setups import _Look, parse_service
from gpudoctor.model import CudaVersion, GpuRequest, PackageVersion, Torch
from gpudoctor.model.codec import from_json
from gpudoctor.model.containers import Containers, ContainerSetup
from tests.containers.fake_engine import SECONDS, FakeEngine

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


SITE = "/usr/local/lib/python3.12/site-packages"
TORCH_FILES = {
    f"{SITE}/torch/version.py": "__version__ = '2.9.1+cu128'\ncuda: Optional[str] = '12.8'\n",
    f"{SITE}/torch-2.9.1+cu128.dist-info/METADATA": "Name: torch\nVersion: 2.9.1+cu128\n",
}
COMPOSE = """
services:
  train: {build: ., environment: {CUDA_VISIBLE_DEVICES: "1"}}
  inline: {build: {context: ., dockerfile_inline: "FROM inline/base"}}
  broken: {build: {context: ., dockerfile: nowhere}}
  wrong: {build: {context: ., dockerfile_inline: "RUN make"}}
  far: {build: "https://github.com/x/y.git"}
  db: {image: "postgres:17"}
"""
DOCKERFILE = "ARG V=3\nFROM python:$V AS base\nRUN make\nFROM base AS top\nRUN make\n"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Return the engine that is asked: with an image with PyTorch, and a container of it."""
    engine = FakeEngine()
    monkeypatch.setattr(setups, "connect", lambda environ, seconds: engine)
    monkeypatch.setattr(setups, "read_project", partial(read_project, command_seconds=0))
    config = {"Env": ["NVIDIA_VISIBLE_DEVICES=all"], "Cmd": ["python"]}
    image = engine.add_image("shop-train:latest", "shop-train", "app:1", tree=TORCH_FILES, Config=config)
    labels = {"com.docker.compose.project": "shop", "com.docker.compose.service": "train"}
    engine.add_container("shop-train-1", image, Config={"Image": "shop-train", "Labels": labels})
    return engine


def asked(engine: FakeEngine, folder: Path, **arguments: Any) -> Any:
    """Return the setups; else the whole answer."""
    answer = setups.look_at_setups({"directory": str(folder), **arguments}, {})
    if "containers" not in answer:
        return answer
    found = from_json(Containers, answer["containers"], "containers")
    assert (found.engine is not None) is engine.is_closed
    return list(found.setups)


TORCH = Torch(
    installed=True,
    version=PackageVersion("2.9.1+cu128"),
    build="cuda",
    cuda_version=CudaVersion(12, 8),
    location=f"{SITE}/torch",
)
ALL = {"NVIDIA_VISIBLE_DEVICES": "all"}
IMAGE = ContainerSetup(name="app:1", kind="image", image="app:1", environment=ALL, image_environment=ALL)
CONTAINER = ContainerSetup(
    name="shop-train-1",
    kind="container",
    service="train",
    image="shop-train",
    gpu_requests=(),
    device_files=(),
    is_privileged=False,
    runtime="",
    image_environment=ALL,
    ipc="private",
    has_own_shm=False,
)


def test_an_image_and_a_container_that_are_named(engine: FakeEngine, tmp_path: Path) -> None:
    (image,) = asked(engine, tmp_path, image="app:1")
    (container,) = asked(engine, tmp_path, container="shop-train-1")
    assert (image.torch, container.torch) == (TORCH, TORCH)
    assert (replace(image, torch=None), replace(container, torch=None)) == (IMAGE, CONTAINER)
    assert len(engine.removed) == 1, "for the image, whose files are those of a container that never runs"


def test_the_python_that_is_first_on_path_counts(engine: FakeEngine, tmp_path: Path) -> None:
    place = "/opt/venv/lib/python3.12/site-packages"
    files = {f"{place}/torch/version.py": "__version__ = '2.9.1+cpu'\ncuda = None\n", "/opt/venv/pyvenv.cfg": ""}
    files |= {"/opt/venv/bin/python": "", "/opt/venv/bin/python3": "", **TORCH_FILES}
    config = {"Env": ["PATH=/opt/venv/bin:/usr/local/bin"], "Cmd": ["python"]}
    image = engine.add_image("venv:1", tree=files, Config=config)
    engine.add_container("venv", image, Config={"Image": "venv:1", **config})
    for named in ({"image": "venv:1"}, {"container": "venv"}):
        (found,) = asked(engine, tmp_path, **named)
        assert found.torch.location == f"{place}/torch"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"image": "none:1"}, "there is no image none:1: docker pull it, or build it"),
        ({"container": "none"}, "there is no container none"),
        ({"compose": "none.yaml"}, "there is no compose file none.yaml"),
        ({"dockerfile": "Dockerfile", "target": "none"}, "Dockerfile: there is no stage none"),
    ],
)
def test_what_is_not_there(arguments: dict[str, str], reason: str, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    answer = asked(engine, tmp_path, **arguments)
    assert set(answer) == {"unavailable"}
    assert reason.rpartition(" ")[2] in answer["unavailable"]


@pytest.mark.parametrize(
    ("arguments", "base"),
    [
        ({}, "python:3"),
        ({"target": "base"}, "python:3"),
        ({"build_arguments": ["V=2=x", "W"]}, "python:2=x"),
        ({"dockerfile": "sub/other"}, "scratch"),
        ({"context": "sub"}, "sub/base"),
        ({"context": "sub", "dockerfile": "sub/other"}, "scratch"),
        ({"image": "app:1"}, "python:3"),
        ({"container": "shop-train-1"}, None),
        ({"container": "shop-train-1", "dockerfile": "Dockerfile"}, "python:3"),
        ({"image": "app:1", "dockerfile": "none"}, None),
    ],
)
def test_the_base_of_the_dockerfile(
    arguments: dict[str, Any], base: str | None, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other").write_text("FROM scratch")
    (tmp_path / "sub" / "Dockerfile").write_text("FROM sub/base")
    (found,) = asked(engine, tmp_path, **arguments)
    assert found.base == base
    if not {"image", "container"} & arguments.keys():
        assert found == ContainerSetup(name="Dockerfile", kind="image", base=base)


@pytest.mark.parametrize("wanted", [None, "train"])
def test_the_services_of_a_project_with_their_containers(
    wanted: str | None, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "compose.yaml").write_text(COMPOSE)
    (tmp_path / "shop" / "Dockerfile").write_text(DOCKERFILE)
    found = asked(engine, tmp_path / "shop", **({"service": wanted} if wanted else {}))
    assert [(setup.name, setup.kind, setup.base, setup.torch) for setup in found] == [
        ("train", "service", "python:3", TORCH),
        ("shop-train-1", "container", None, TORCH),
        *([] if wanted else [("inline", "service", "inline/base", None), ("broken", "service", None, None)]),
        *([] if wanted else [(name, "service", None, None) for name in ("wrong", "far", "db")]),
    ]
    assert found[0].environment == {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "1"}
    assert found[1].service == "train"


def test_without_an_engine_the_files_still_show(
    engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: Any) -> Any:
        raise EngineUnavailable("none here")

    monkeypatch.setattr(setups, "connect", unavailable)
    assert asked(engine, tmp_path) == {}
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    assert asked(engine, tmp_path) == [ContainerSetup(name="Dockerfile", kind="image", base="python:3")]
    assert asked(engine, tmp_path, image="app:1") == {"unavailable": "none here"}
    assert asked(engine, tmp_path, container="web") == {"unavailable": "none here"}
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    assert [setup.name for setup in asked(engine, tmp_path)] == ["train", "inline", "broken", "wrong", "far", "db"]
    assert [setup.name for setup in asked(engine, tmp_path, service="db")] == ["db"]
    assert asked(engine, tmp_path, dockerfile="Dockerfile")[0].kind == "image"


def test_an_engine_that_refuses(engine: FakeEngine, tmp_path: Path) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise APIError("no", explanation="no archives")

    engine.create_container = refuse  # type: ignore[method-assign]
    (image,) = asked(engine, tmp_path, image="app:1")
    assert image == IMAGE
    engine.logs = refuse  # type: ignore[method-assign]
    assert asked(engine, tmp_path, container="shop-train-1")[0].failures == ()
    engine.info = refuse  # type: ignore[method-assign]
    refused = "the engine refuses, or its answer cannot be read: no archives"
    assert asked(engine, tmp_path, image="app:1") == {"unavailable": refused}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DockerException("no"), "the engine refuses, or its answer cannot be read: DockerException: no"),
        (RequestException("no"), "the engine refuses, or its answer cannot be read: RequestException: no"),
        (ValueError("of an answer"), "of an answer"),
    ],
)
def test_every_way_to_fail_leaves_the_setups_unknown(
    error: Exception, told: str, engine: FakeEngine, tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    engine.info = fail  # type: ignore[method-assign]
    assert asked(engine, tmp_path, image="app:1") == {"unavailable": told}
    assert engine.is_closed


@pytest.mark.parametrize("named", [{"image": "app:1"}, {"container": "shop-train-1"}, {"dockerfile": "Dockerfile"}])
def test_if_something_is_named_the_project_is_not_read(
    named: dict[str, str], engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "compose.yaml").write_text("services: [")
    (tmp_path / "Dockerfile").write_text("FROM app:1\n")
    assert [setup.kind for setup in asked(engine, tmp_path, **named)] == [
        "container" if "container" in named else "image"
    ]
    assert "compose.yaml" in asked(engine, tmp_path)["unavailable"]


@pytest.mark.parametrize("error", [APIError("no archives"), ValueError("no archive")])
def test_files_that_cannot_be_read_leave_torch_unknown(
    error: Exception, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(setups, "find_torch", fail)
    assert asked(engine, tmp_path, image="app:1") == [IMAGE]
    assert asked(engine, tmp_path, container="shop-train-1") == [CONTAINER]


def test_the_log_since_the_last_start(engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"could not select device driver with capabilities: [[gpu]]"
    engine.log = b"x" * 50 + b"\n" + text
    (found,) = asked(engine, tmp_path, container="shop-train-1")
    assert [symptom.kind for symptom in found.failures] == ["container-no-device-driver"]
    assert ("logs", f"200 since {SECONDS + 50}") in engine.asked
    monkeypatch.setattr(setups, "LARGEST_LOG_BYTES", 40)
    assert asked(engine, tmp_path, container="shop-train-1")[0].failures == ()


@pytest.mark.parametrize(
    ("names", "linked"), [(["1:3", "195:0"], True), (["1:3", "1195:0"], False), ([], False), (None, None)]
)
def test_links_to_the_device_nodes_of_the_driver(
    names: list[str] | None, linked: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(path: str) -> list[str]:
        if names is None:
            raise OSError
        return names

    monkeypatch.setattr(os, "listdir", listed)
    assert setups._has_device_links() is linked


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("could not select device driver", ["container-no-device-driver"]),
        ("DataLoader worker (pid 7) is killed by signal: Bus error.", ["shm-bus-error"]),
        ("ibv_reg_mr failed: Cannot allocate memory", ["memlock-exceeded"]),
        (
            "nvidia-container-cli: initialization error: load library failed: libcuda.so.1: cannot open shared object",
            ["libcuda-not-found-by-container"],
        ),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", []),
        ("  \n", []),
        ("", []),
    ],
)
def test_only_failures_of_the_container_are_kept(text: str, kinds: list[str]) -> None:
    assert [symptom.kind for symptom in setups.recognised(text)] == kinds


STAGES = "FROM a AS one\nRUN make\nFROM b AS two\nCOPY --from=one /x /x\nFROM two AS three\nRUN make\nFROM scratch\n"


@pytest.mark.parametrize(
    ("target", "base"), [("one", "a"), ("two", "b"), ("three", "b"), ("2", "b"), (None, "scratch"), ("3", "scratch")]
)
def test_the_base_is_the_one_that_the_target_goes_back_to(target: str | None, base: str) -> None:
    assert setups.base_image(STAGES, target, {}) == base
