"""Containers seen from outside: when the engine is asked, and how its answer is read."""

from pathlib import Path

import pytest

from gpudoctor.model import ContainerEngine, Containers, ContainerSetup, GpuRequest, Symptom, Torch
from gpudoctor.model.codec import to_json
from gpudoctor.probes.containers import parse_containers, request, why_unknown
from gpudoctor.probes.host import ImageRequest, ProbeContext
from tests.probes.asked import asked


def test_nothing_to_look_at(tmp_path: Path) -> None:
    assert request(ProbeContext(environ={}, directory=tmp_path)) is None


@pytest.mark.parametrize("name", ["compose.yaml", "docker-compose.yml", "Dockerfile"])
def test_a_project(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    setting = ProbeContext(environ={}, directory=tmp_path, timeout_seconds=7.0)
    for section, worker in (("images", "docker_images"), ("containers", "container_facts")):
        question = asked(section, setting)
        assert (question.worker, question.arguments["directory"]) == (worker, str(tmp_path))
        assert question.arguments["timeout_seconds"] == 7.0, "for each answer of the engine"
        assert question.time_limits == 20


def test_a_container_that_is_named(tmp_path: Path) -> None:
    setting = ProbeContext(environ={}, directory=tmp_path, images=ImageRequest(container="train"))
    assert asked("containers", setting).arguments["container"] == "train"


def test_the_answer() -> None:
    setup = ContainerSetup(
        name="train",
        kind="container",
        gpu_requests=(GpuRequest(count=-1, capabilities=("gpu",)),),
        environment={"CUDA_VERSION": "13.0.1"},
        failures=(Symptom(kind="shm-bus-error", text="Bus error"),),
        torch=Torch(installed=True, build="cpu"),
    )
    containers = Containers(setups=(setup,), engine=ContainerEngine(name="docker", cdi_folders=()))
    assert parse_containers({"containers": to_json(containers)}) == containers


def test_no_answer() -> None:
    assert parse_containers({"unavailable": "no engine"}) is None
    assert why_unknown({"unavailable": "no engine"}) == "no engine"
    assert why_unknown({}) == ""


def test_an_answer_of_another_form() -> None:
    with pytest.raises(ValueError, match=r"containers\.setups"):
        parse_containers({"containers": {"setups": "none"}})
