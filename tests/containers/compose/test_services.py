"""The fields of a service, each in the forms that users may write."""

from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.compose.project import Build, Service
from gpudoctor.containers.compose.services import service_fields, service_of
from gpudoctor.model import GpuRequest

GIB = 2**30


def service(folder: Path = Path("/p"), environ: dict[str, str] | None = None, **fields: Any) -> Service:
    known = environ or {}
    return service_of("web", "demo", service_fields(fields, folder, known), known)


@pytest.mark.parametrize("word", ["true", "yes", "y", "on", "1", "TRUE", True])
def test_words_for_yes(word: Any) -> None:
    assert service(privileged=word).privileged is True


@pytest.mark.parametrize("word", ["false", "no", "n", "off", "0", "Off", False])
def test_words_for_no(word: Any) -> None:
    assert service(privileged=word).privileged is False


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [
        ("64", 64),
        ("7b", 7),
        ("1k", 2**10),
        ("1KB", 2**10),
        ("2mb", 2**21),
        ("1.5g", 3 * GIB // 2),
        ("1 GiB", GIB),
        ("1t", 2**40),
        ("1p", 2**50),
        (1024, 1024),
    ],
)
def test_sizes(size: Any, size_bytes: int) -> None:
    assert service(shm_size=size).shm_size_bytes == size_bytes


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"privileged": "maybe"}, "privileged: true or false is expected"),
        ({"shm_size": "much"}, "shm_size: 'much' is not a size"),
        ({"ulimits": {"memlock": "1.5"}}, "ulimits: '1.5' is not a whole number"),
        ({"devices": "x"}, "devices: a sequence is expected"),
        ({"ulimits": ["x"]}, "ulimits: a mapping is expected"),
        ({"volumes": [{"source": "/a"}]}, "volumes: .* is not SOURCE:TARGET:MODE"),
        ({"env_file": [{"required": True}]}, "env_file: `path` is missing"),
        ({"env_file": [{"path": "a", "format": "raw"}]}, "env_file: .*`format` is set"),
        ({"env_file": "gone.env"}, "env_file: there is no file /p/gone.env"),
        ({"env_file": "/" + "x" * 300}, "env_file: /x+ cannot be read: File name too long"),
        ({"extends": {"service": "x"}}, "`extends` needs `docker compose`"),
    ],
)
def test_what_is_not_understood(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        service(**fields)


@pytest.mark.parametrize(
    ("fields", "requests"),
    [
        ({"gpus": "all"}, [GpuRequest(count=-1, capabilities=("gpu",))]),
        ({"gpus": [{"count": 2}]}, [GpuRequest(count=2, capabilities=("gpu",))]),
        ({"gpus": [{"count": "all"}]}, [GpuRequest(count=-1, capabilities=("gpu",))]),
        ({"gpus": [{"device_ids": ["0", 1]}]}, [GpuRequest(device_ids=("0", "1"), capabilities=("gpu",))]),
        (
            {"gpus": [{"driver": "nvidia", "device_ids": ["0"], "count": 1, "capabilities": ["compute"]}]},
            [GpuRequest(driver="nvidia", count=1, device_ids=("0",), capabilities=("compute",))],
        ),
        ({"deploy": {"resources": {"reservations": {"devices": [{"count": 1}]}}}}, [GpuRequest(count=1)]),
        ({"deploy": {"resources": None}}, []),
        ({"deploy": {"replicas": 2}}, []),
    ],
)
def test_gpus(fields: dict[str, Any], requests: list[GpuRequest]) -> None:
    assert list(service(**fields).gpu_requests) == requests


@pytest.mark.parametrize(
    ("volume", "target"),
    [
        ("/a:/b", "/b"), ("/a:/b:ro", "/b"), ("/b/", "/b"), ("c:/a:/b", "/b"), ("C:\\a:/b:rw", "/b"), ("c:/b", "/b"),
        ("name:/b/../c", "/c"), ({"type": "volume", "target": "/b/"}, "/b"),
    ],
)  # fmt: skip
def test_where_a_volume_lies(volume: Any, target: str) -> None:
    assert service(volumes=[volume]).mount_targets == (target,)


def test_volumes_and_memory_lie_over_paths_once() -> None:
    assert service(volumes=["/a:/x", "/b:/y"], tmpfs="/z:size=1g").mount_targets == ("/x", "/y", "/z")
    assert service(volumes=["/a:/x"], tmpfs=["/x/", "/z"]).mount_targets == ("/x", "/z")


@pytest.mark.parametrize(
    ("device", "source"),
    [
        ("/dev/nvidia0", "/dev/nvidia0"),
        ("/dev/nvidia0:/dev/gpu:rwm", "/dev/nvidia0"),
        ("nvidia.com/gpu=all", "nvidia.com/gpu=all"),
        ({"source": "/dev/nvidia0", "target": "/dev/gpu"}, "/dev/nvidia0"),
        ({"source": "/dev/nvidia0"}, "/dev/nvidia0"),
    ],
)
def test_devices(device: Any, source: str) -> None:
    assert service(devices=[device]).devices == (source,)


def test_the_last_of_two_devices_at_one_place_counts() -> None:
    assert service(devices=["/dev/a:/dev/x", "/dev/b:/dev/x"]).devices == ("/dev/b",)
    both = [{"source": "/dev/a", "target": "/dev/x"}, {"source": "/dev/b", "target": "/dev/x"}]
    assert service(devices=both).devices == ("/dev/b",)


@pytest.mark.parametrize(
    ("limit", "memlock"), [(-1, -1), ("+64", 64), ({"soft": 1, "hard": 2}, 1), ({"soft": "-1", "hard": 2}, -1)]
)
def test_memlock(limit: Any, memlock: int) -> None:
    assert service(ulimits={"memlock": limit}).memlock == memlock
    assert service(ulimits={"nofile": 5}).memlock is None


@pytest.mark.parametrize("form", [["A=1", "B", "C=x=y", "D="], {"A": 1, "B": None, "C": "x=y", "D": ""}])
def test_variables(form: Any) -> None:
    assert service(environment=form, environ={"B": "b"}).environment == {"A": "1", "B": "b", "C": "x=y", "D": ""}
    assert service(environment=form).environment["B"] is None


def test_variables_win_over_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.env").write_text("A=1\nB=1\n", encoding="utf-8")
    (tmp_path / "b.env").write_text("B=2\nC=2\n", encoding="utf-8")
    files = ["a.env", {"path": "b.env"}, {"path": "gone.env", "required": False}]
    assert service(tmp_path, env_file=files, environment={"C": "3"}).environment == {"A": "1", "B": "2", "C": "3"}


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (".", Build(context="/p", dockerfile="/p/Dockerfile")),
        ({"dockerfile": "x/D"}, Build(context="/p", dockerfile="/p/x/D")),
        ({"context": "../a", "dockerfile": "../D"}, Build(context="/a", dockerfile="/D")),
        ({"context": "/a", "target": "t"}, Build(context="/a", dockerfile="/a/Dockerfile", target="t")),
        ({"dockerfile_inline": "FROM a"}, Build(context="/p", dockerfile="", dockerfile_inline="FROM a")),
        ("https://x/y.git", Build(context="https://x/y.git", is_remote=True)),
        ("git@x:y", Build(context="git@x:y", is_remote=True)),
        ("github.com/a/b", Build(context="github.com/a/b", is_remote=True)),
        (
            {"args": ["A=1", "B", "C"], "additional_contexts": {"x": "../x", "y": "service:y"}},
            Build(
                context="/p",
                dockerfile="/p/Dockerfile",
                args={"A": "1", "B": "b"},
                additional_contexts={"x": "/x", "y": "service:y"},
            ),
        ),
    ],
)
def test_builds(build: Any, expected: Build) -> None:
    assert service(build=build, environ={"B": "b"}).build == expected


@pytest.mark.parametrize(
    ("fields", "images"),
    [
        ({"image": "a:1"}, ("a:1",)),
        ({"build": "."}, ("demo-web", "demo_web")),
        ({"image": "a", "build": "."}, ("a",)),
        ({}, ()),
    ],
)
def test_the_names_of_its_image(fields: dict[str, Any], images: tuple[str, ...]) -> None:
    assert service(**fields).images == images


def test_texts() -> None:
    found = service(runtime="nvidia", ipc="host", profiles=["a", 1])
    assert (found.runtime, found.ipc, found.profiles) == ("nvidia", "host", ("a", "1"))
    assert service() == Service(name="web")
