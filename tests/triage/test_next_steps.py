"""What to run next: at most two commands, right for the system, the program and the place."""

import itertools

import pytest

from gpudoctor.model import Python, System
from gpudoctor.triage.next_steps import next_steps

LINUX, WINDOWS = System(os="linux"), System(os="windows")


def commands(*features: str, python: Python | None = None, system: System | None = None) -> list[str]:
    return [step.command for step in next_steps(frozenset(features), python or Python(), system or System())]


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (("about:ollama", "os:linux"), "ollama ps"),
        (("about:ollama", "os:windows"), "server.log"),
        (("about:llama-cpp", "os:linux"), "--list-devices"),
        (("about:comfyui", "os:windows"), "python_embeded"),
        (("about:stable-diffusion-webui", "os:linux"), "./venv/bin/python"),
        (("about:jax", "os:linux"), "jax.devices()"),
        (("about:tensorflow", "os:linux"), "is_built_with_cuda"),
        (("symptom:cupy-named", "os:linux"), "cupy.show_config()"),
        (("place:docker", "os:linux"), "docker inspect"),
        (("place:kubernetes", "os:linux"), "kubectl describe node"),
        (("asks:hang", "os:linux"), "NCCL_DEBUG=INFO"),
        (("live",), "gpudoctor check"),
    ],
)
def test_the_command_fits_the_program_and_the_place(features: tuple[str, ...], words: str) -> None:
    assert any(words in command for command in commands(*features))


@pytest.mark.parametrize("os", ["os:linux", "os:windows", "os:darwin", "os:wsl"])
@pytest.mark.parametrize("about", ["about:torch", "about:jax", "about:ollama", "gpu:nvidia", "place:docker", "live"])
@pytest.mark.parametrize("shown", [(), ("shown:nvidia-smi",), ("shown:nvidia-smi", "shown:collect-env")])
def test_there_are_always_one_or_two(os: str, about: str, shown: tuple[str, ...]) -> None:
    found = commands(os, about, *shown)
    assert 1 <= len(found) <= 2
    assert len(set(found)) == len(found)
    assert not any("{python}" in command for command in found)
    if os == "os:windows":
        assert not [c for c, word in itertools.product(found, ("which ", "export ", "lspci", "sudo ")) if word in c]


def test_what_is_shown_is_not_asked_for_again() -> None:
    assert "nvidia-smi" in commands("os:linux", "gpu:nvidia")
    assert "nvidia-smi" not in commands("os:linux", "gpu:nvidia", "shown:nvidia-smi")


def test_a_driver_that_answers_needs_no_look_at_the_bus() -> None:
    for os, command in (("os:linux", "lspci"), ("os:windows", "Win32_VideoController")):
        assert any(command in found for found in commands(os, "shown:nvidia-smi", "shown:collect-env"))
        assert not any(command in found for found in commands(os, "shown:nvidia-smi", "driver:works"))


@pytest.mark.parametrize("words", ["asks:hang", "symptom:nccl-hang", "symptom:nccl-timeout"])
def test_a_hang_is_asked_where_it_stops(words: str) -> None:
    assert any("NCCL_DEBUG=INFO" in command for command in commands("os:linux", "about:torch", words))


def test_the_interpreter_of_the_report_is_the_one_to_run() -> None:
    python = Python(executable="/opt/my env/bin/python")
    (first, *_) = commands("about:torch", "os:linux", python=python, system=LINUX)
    assert first == "'/opt/my env/bin/python' -m torch.utils.collect_env"


def test_nothing_at_all_is_known() -> None:
    assert commands()


def test_in_a_notebook_it_is_run_in_a_cell() -> None:
    steps = next_steps(frozenset({"place:colab", "about:torch"}), Python(), System())
    assert {step.where for step in steps} == {"in a cell of the notebook, with ! in front"}
    assert "cell" not in next_steps(frozenset({"about:torch"}), Python(), System())[0].where
