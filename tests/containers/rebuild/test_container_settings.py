"""The settings of a container made anew: its user's own, and the new image's for the rest."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.containers.rebuild import container
from gpudoctor.containers.rebuild.builders import Attempt
from gpudoctor.containers.rebuild.container import check_can_be_kept, endpoints, new_settings
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress
from gpudoctor.containers.requested import Subject
from gpudoctor.errors import UsageError
from gpudoctor.model import CopiedFiles, ProjectImage

IMAGE = {"Env": ["PATH=/bin", "MODE=old"], "Cmd": ["serve"], "Labels": {"version": "1"}, "WorkingDir": "/app"}
ID = "0123456789ab" + "c" * 52


def inspected(**changes: Any) -> dict[str, Any]:
    """Return what the engine tells of a container whose user set nothing but `changes` of its Config."""
    return {
        "Id": ID,
        "Name": "/web",
        "Config": {**IMAGE, "Hostname": ID[:12], "Image": "train", **changes},
        "HostConfig": {"NetworkMode": "default", "Binds": None},
        "NetworkSettings": {"Networks": {"bridge": {"Aliases": None}}},
        "Mounts": [],
    }


def test_what_came_from_the_image_comes_from_the_new_one() -> None:
    settings = new_settings(inspected(), IMAGE, "train:2")
    assert (settings["Env"], settings["Labels"]) == ([], {})
    assert not {"Cmd", "WorkingDir", "Hostname"} & settings.keys()
    assert settings["Image"] == "train:2"


def test_what_the_user_set_is_kept() -> None:
    old = inspected(
        Env=["PATH=/bin", "MODE=new"], Cmd=["debug"], Labels={"version": "1", "mine": "x"}, Hostname="gpu-1", Tty=True
    )
    settings = new_settings(old, IMAGE, "train")
    assert settings["Env"] == ["MODE=new"]
    assert settings["Labels"] == {"mine": "x"}
    assert (settings["Cmd"], settings["Hostname"], settings["Tty"]) == (["debug"], "gpu-1", True)


def test_if_the_old_image_is_gone_every_setting_is_kept() -> None:
    settings = new_settings(inspected(), {}, "train")
    assert (settings["Cmd"], settings["Env"]) == (["serve"], ["PATH=/bin", "MODE=old"])


def test_a_volume_without_a_name_goes_on_with_its_data() -> None:
    old = inspected()
    old["HostConfig"]["Binds"] = ["/host:/data:ro", "named:/named"]
    old["HostConfig"]["Mounts"] = [{"Type": "volume", "Target": "/mounted"}]
    old["Mounts"] = [
        {"Type": "bind", "Source": "/host", "Destination": "/data", "RW": False},
        {"Type": "volume", "Name": "named", "Destination": "/named", "RW": True},
        {"Type": "volume", "Name": "m", "Destination": "/mounted", "RW": True},
        {"Type": "volume", "Name": "f00", "Destination": "/cache", "RW": True},
        {"Type": "volume", "Name": "f01", "Destination": "/read", "RW": False},
    ]
    binds = new_settings(old, IMAGE, "train")["HostConfig"]["Binds"]
    assert binds == ["/host:/data:ro", "named:/named", "f00:/cache", "f01:/read:ro"]


def test_what_podman_shows_of_its_own_is_no_setting() -> None:
    own = ["HOSTNAME=0123456789ab", "TERM=xterm", "container=podman"]
    old = inspected(Env=[*IMAGE["Env"], *own, "HOST=x"], Entrypoint=[])
    old["HostConfig"]["Ulimits"] = [{"Name": "RLIMIT_NOFILE", "Soft": 1024, "Hard": 4096}]
    settings = new_settings(old, {**IMAGE, "Entrypoint": None}, "train")
    assert settings["Env"] == ["HOST=x"]
    assert "Entrypoint" not in settings
    assert settings["HostConfig"]["Ulimits"] == [{"Name": "nofile", "Soft": 1024, "Hard": 4096}]


def test_on_podman_a_network_of_the_users_is_no_further_one() -> None:
    old = inspected()
    old["HostConfig"]["NetworkMode"] = "bridge"
    old["NetworkSettings"]["Networks"] = {"net": {"Aliases": ["db"]}, "second": {"Aliases": None}}
    settings = new_settings(old, IMAGE, "train")
    assert settings["HostConfig"]["NetworkMode"] == "net"
    assert list(settings["NetworkingConfig"]["EndpointsConfig"]) == ["net"]


@pytest.mark.parametrize(
    ("name", "is_own"), [("default", False), ("bridge", False), ("host", False), ("none", False), ("net", True)]
)
def test_a_shared_network_takes_no_settings(name: str, is_own: bool) -> None:
    old = inspected()
    old["NetworkSettings"]["Networks"] = {name: {"Aliases": None}}
    assert (name in endpoints(old)) is is_own


@pytest.mark.parametrize("mode", ["default", "bridge"])
def test_on_docker_the_default_network_stays_next_to_one_of_the_users(mode: str) -> None:
    old = inspected()
    old["HostConfig"]["NetworkMode"] = mode
    old["NetworkSettings"]["Networks"]["net"] = {"Aliases": None}
    settings = new_settings(old, IMAGE, "train")
    assert (settings["HostConfig"]["NetworkMode"], settings["NetworkingConfig"]["EndpointsConfig"]) == (mode, {})


def test_networks_keep_addresses_and_aliases_but_not_the_old_id() -> None:
    old = inspected()
    old["HostConfig"]["NetworkMode"] = "net"
    old["NetworkSettings"]["Networks"] = {
        "net": {"Aliases": ["db", ID[:12]], "IPAMConfig": {"IPv4Address": "10.0.0.9"}, "NetworkID": "x"},
        "second": {"Aliases": None},
    }
    assert endpoints(old)["net"]["Aliases"] == ["db"]
    config = new_settings(old, IMAGE, "train")["NetworkingConfig"]["EndpointsConfig"]
    assert list(config) == ["net"], "an older engine takes one network when a container is made"
    assert config["net"]["IPAMConfig"] == {"IPv4Address": "10.0.0.9"}


def test_old_links_are_written_as_the_engine_takes_them() -> None:
    old = inspected()
    old["HostConfig"]["Links"] = ["/db:/web/database"]
    assert new_settings(old, IMAGE, "train")["HostConfig"]["Links"] == ["db:database"]


def test_a_container_that_removes_itself_is_refused() -> None:
    old = inspected()
    old["HostConfig"]["AutoRemove"] = True
    with pytest.raises(UsageError, match="web was started with --rm"):
        check_can_be_kept(old)


@pytest.mark.parametrize(
    ("states", "looks", "lines"),
    [
        pytest.param([{"Running": True}], 4, None, id="it runs as long as is waited"),
        pytest.param([{"Running": True}, {"Running": False, "ExitCode": 0}], 2, None, id="it ends well"),
        pytest.param([{"Running": False, "ExitCode": 3}], 1, ("one", "two"), id="it ends with an error"),
        pytest.param([{"Running": True, "Restarting": True, "ExitCode": 0}], 1, ("one", "two"), id="again and again"),
    ],
)
def test_a_new_container_has_to_run(
    states: list[dict[str, Any]], looks: int, lines: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = [0.0], list[str]()
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(container, "time", clock)
    monkeypatch.setattr(container, "START_SECONDS", 4 * container._POLL_SECONDS)

    def inspect(name: str) -> dict[str, Any]:
        asked.append(name)
        return {"State": states[min(len(asked), len(states)) - 1]}

    api: Any = SimpleNamespace(inspect_container=inspect, logs=lambda name, tail: b"one\ntwo\n")
    if lines is None:
        container.await_started(api, "new")
    else:
        with pytest.raises(container.NotStarted) as failed:
            container.await_started(api, "new")
        assert failed.value.args[0] == f"the new container ended at once, with status {states[-1]['ExitCode']}"
        assert failed.value.lines == lines
    assert asked == ["new"] * looks


@pytest.mark.parametrize(
    "image", [{"Config": IMAGE}, {"Config": None}, None], ids=["there", "without settings", "gone"]
)
def test_a_container_in_several_networks(image: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    old = inspected()
    old["Image"] = "sha256:1"
    old["HostConfig"]["NetworkMode"] = "first"
    address = {"IPv4Address": "10.0.0.7", "IPv6Address": "fd00::7"}
    old["NetworkSettings"]["Networks"] = {
        "first": {},
        "second": {
            "IPAMConfig": address,
            "Aliases": ["web", ID[:12]],
            "Links": ["db:data:1"],
            "DriverOpts": {"a": "b"},
        },
        "third": {"IPAMConfig": None, "Aliases": None, "Links": None, "DriverOpts": None},
    }
    connected: list[Any] = []
    created: list[Any] = []
    monkeypatch.setattr(container, "inspect_image", lambda api, identity: image)

    def create(settings: dict[str, Any], name: str) -> dict[str, str]:
        created.append((settings, name))
        return {"Id": "new"}

    api: Any = SimpleNamespace(
        create_container_from_config=create,
        connect_container_to_network=lambda *names, **settings: connected.append((*names, settings)),
    )
    assert container._create(api, old, "app:2", "web-new") == "new"
    assert created == [(new_settings(old, IMAGE if image and image["Config"] else {}, "app:2"), "web-new")]
    nothing = dict.fromkeys(("aliases", "links", "ipv4_address", "ipv6_address", "driver_opt"))
    second = {
        "aliases": ["web"],
        "links": [("db", "data:1")],
        "ipv4_address": "10.0.0.7",
        "ipv6_address": "fd00::7",
        "driver_opt": {"a": "b"},
    }
    assert connected == [("new", "second", second), ("new", "third", nothing)]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (ProjectImage(image="t"), False),
        (ProjectImage(image="t", instructions=(CopiedFiles(line=2, text="COPY a /", stage="0", stale=("a",)),)), True),
        (ProjectImage(image="t", instructions=(CopiedFiles(line=2, text="COPY a /", stage="0"),)), False),
        (
            ProjectImage(image="t", unknown="no history"),
            "the new image cannot be compared with the context: no history",
        ),
    ],
)
def test_whether_a_new_image_is_stale(
    found: ProjectImage, told: bool | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject(dockerfile=tmp_path, context=tmp_path, build_arguments={}, image="app", container="web")
    asked: list[Subject] = []

    def look(api: Any, subject: Subject) -> ProjectImage:
        asked.append(subject)
        return found

    monkeypatch.setattr(container, "look_at_subject", look)
    api: Any = None
    if isinstance(told, str):
        with pytest.raises(BuildFailed, match=told):
            container._is_stale(api, subject, "t:1")
    else:
        assert container._is_stale(api, subject, "t:1") is told
    assert asked == [replace(subject, image="t:1", container=None)]


def test_it_is_built_until_it_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    said: list[str] = []
    step: Any = SimpleNamespace(run=lambda progress: done.append("built"))
    attempts = [
        Attempt(steps=(step,), why=""),
        Attempt(steps=(step, step), why="again"),
        Attempt(steps=(step,), why="more"),
    ]
    subject = Subject(dockerfile=tmp_path, context=tmp_path, build_arguments={}, image="app")
    progress = Progress(lambda _: None, said.append, timeout_seconds=1)
    api: Any = None
    monkeypatch.setattr(container, "_is_stale", lambda api, subject, tag: len(done) < 3)
    container.build_under("t:1", api, subject, iter(attempts), progress)
    assert (done, said) == (["built"] * 3, ["again"])
    monkeypatch.setattr(container, "_is_stale", lambda api, subject, tag: True)
    with pytest.raises(BuildFailed, match="app is still stale after every kind of build"):
        container.build_under("t:1", api, subject, iter(attempts), progress)
    assert len(done) == 7


@pytest.mark.parametrize(
    ("failures", "runs"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([BuildFailed("exit status 1", ("Step 2", 'unable to find image "sha256:1"'))], 2, id="lost layer"),
        pytest.param([BuildFailed('unable to find image "sha256:1"')], 2, id="told by the engine's API"),
        pytest.param([BuildFailed("exit status 1", ('unable to find image "a"', "no file"))], 1, id="an older line"),
        pytest.param([BuildFailed('unable to find image "a"'), BuildFailed("twice")], 2, id="lost twice"),
    ],
)
def test_a_step_is_repeated_if_the_builder_lost_a_layer_of_its_cache(failures: list[BuildFailed], runs: int) -> None:
    outcomes: list[BuildFailed | None] = [*failures, None]
    done: list[BuildFailed | None] = []

    def run(progress: Progress) -> None:
        done.append(outcomes[len(done)])
        if (failure := done[-1]) is not None:
            raise failure

    step: Any = SimpleNamespace(run=run)
    progress = Progress(print, print, timeout_seconds=1)
    ends_well = runs > len(failures)
    with contextlib.nullcontext() if ends_well else pytest.raises(BuildFailed):
        container._carry_out(step, progress)
    assert len(done) == runs
