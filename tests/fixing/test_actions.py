"""Commands of remedies as actions: what is understood, and what is left to a person."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudoctor.fixing.actions import Action, actions_of, kind_of
from gpudoctor.model import Remedy

ROOT = Path(__file__).parent.parent.parent
PYTHON = "/srv/venv/bin/python"
INDEX = ("--index-url", "https://download.pytorch.org/whl/cu130")


def remedy(*commands: str, needs: tuple[str, ...] = ()) -> Remedy:
    return Remedy(summary="Do it", commands=commands, needs=needs)


@pytest.mark.parametrize(
    ("command", "action"),
    [
        pytest.param(
            f"{PYTHON} -m pip install {' '.join(INDEX)} torch==2.13.0+cu130",
            Action(requirements=("torch==2.13.0+cu130",), index=INDEX),
            id="pip",
        ),
        pytest.param(
            f"uv pip install --python {PYTHON} --reinstall 'cupy-cuda13x[ctk]'",
            Action(requirements=("cupy-cuda13x[ctk]",), forced=True),
            id="uv",
        ),
        pytest.param(
            f"{PYTHON} -m pip uninstall -y cupy cupy-cuda12x", Action(removes=("cupy", "cupy-cuda12x")), id="uninstall"
        ),
        pytest.param(
            f"{PYTHON} -m pip install --no-deps --upgrade torchaudio==2.11.0",
            Action(requirements=("torchaudio==2.11.0",), alone=True, upgrade=True),
            id="options",
        ),
    ],
)
def test_what_is_understood(command: str, action: Action) -> None:
    made = remedy(command, f'{PYTHON} -c "import torch"', "nvidia-smi")
    assert actions_of(made, PYTHON) == (action,)
    assert kind_of(made, PYTHON) == "environment"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("/other/bin/python -m pip install torch", id="another environment"),
        pytest.param("pip install torch", id="whatever pip that is"),
        pytest.param("uv pip install torch", id="whatever environment that is"),
        pytest.param(f"{PYTHON} -m pip install --no-build-isolation flash-attn", id="it compiles"),
        pytest.param(f"{PYTHON} -m pip install --index-url https://example.com/simple torch", id="an unknown index"),
        pytest.param(f"{PYTHON} -m pip install --find-links https://data.pyg.org/whl/../x torch", id="above the index"),
        pytest.param(f"{PYTHON} -m pip install --target /tmp torch", id="elsewhere"),
        pytest.param(f"{PYTHON} -m pip install git+https://github.com/NVIDIA/apex.git", id="a repository"),
        pytest.param(f"{PYTHON} -m pip install ./torch.whl", id="a file"),
        pytest.param(f"{PYTHON} -m pip install", id="nothing"),
        pytest.param(f"{PYTHON} -m pip uninstall -y -r list.txt", id="a list"),
        pytest.param(f"{PYTHON} -m pip install 'torch; rm -rf ~'", id="more than one command"),
        pytest.param("sudo apt-get install nvidia-driver-580", id="root"),
        pytest.param("export LD_LIBRARY_PATH=", id="the shell"),
        pytest.param(f"{PYTHON} -m pip install 'torch", id="an open quote"),
    ],
)
def test_what_is_left_to_a_person(command: str) -> None:
    made = remedy(f"{PYTHON} -m pip install numpy", command)
    assert actions_of(made, PYTHON) == ()
    assert kind_of(made, PYTHON) == "system"


def test_commands_of_powershell() -> None:
    python = r"C:\Program Files\venv\python.exe"
    made = remedy(f"& '{python}' -m pip install \"cupy-cuda12x[ctk]\"", f'& "{python}" -c "import cupy"')
    assert actions_of(made, python) == (Action(requirements=("cupy-cuda12x[ctk]",)),)
    assert actions_of(remedy(f"& '{python}' -m pip install torch; calc"), python) == ()


def commands_of_installers() -> Iterator[str]:
    """Yield each command of pip and uv in the recorded remedies of every fix."""
    recorded = (ROOT / "tests" / "remedies" / "every_fix.json").read_text(encoding="utf-8")
    waiting = [json.loads(recorded)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and re.match(r"\S+ (-m )?pip (un)?install |uv pip (un)?install ", value):
            yield value
        elif isinstance(value, list | dict):
            waiting += value.values() if isinstance(value, dict) else value


def test_every_remedy_of_an_installer_is_understood_unless_it_compiles() -> None:
    unknown = set()
    commands = set(commands_of_installers())
    for command in commands:
        python = command.split()[4 if command.startswith("uv pip") else 0]
        if not actions_of(remedy(command), python) and "--no-build-isolation" not in command:
            unknown.add(command)
    assert len(commands) > 200
    assert unknown == set()


URL = "https://download.pytorch.org/whl/cu130"


@pytest.mark.parametrize(
    ("commands", "requirements"),
    [
        pytest.param((f"uv add --index pytorch-cu130={URL} torch==2.13.0+cu130",), ("torch==2.13.0+cu130",), id="uv"),
        pytest.param(("uv add 'numpy>=2'", "uv run --no-sync python -c 'import numpy'"), ("numpy>=2",), id="shows"),
        pytest.param(
            (f"poetry source add --priority=explicit p {URL}", "poetry add --source p torch==2.13.0+cu130"),
            ("torch==2.13.0+cu130",),
            id="poetry",
        ),
        pytest.param((f"pixi add --pypi --index {URL} torch==2.13.0+cu130",), ("torch==2.13.0+cu130",), id="pixi"),
        pytest.param(("pixi remove --pypi cupy", "pixi add pytorch-gpu cuda-version=12"), (), id="pixi's conda"),
    ],
)
def test_commands_of_a_project(commands: tuple[str, ...], requirements: tuple[str, ...]) -> None:
    actions = actions_of(remedy(*commands), PYTHON)
    assert actions[-1].requirements == requirements
    assert {action.tool for action in actions} == {commands[0].split()[0]}
    assert kind_of(remedy(*commands), PYTHON) == "project"


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(("uv add --index x=https://example.com/simple torch",), id="an unknown index"),
        pytest.param(("uv add --editable ./x",), id="an option"),
        pytest.param(("uv add ./x.whl",), id="a file"),
        pytest.param(("uv add",), id="nothing"),
        pytest.param(("uv add numpy", f"{PYTHON} -m pip install torch"), id="pip too"),
        pytest.param(("uv add numpy", "poetry add numpy"), id="two tools"),
        pytest.param(("poetry source add --priority=primary p " + URL,), id="another priority"),
        pytest.param(("poetry add --source",), id="no source"),
        pytest.param(("pdm add torch",), id="pdm"),
        pytest.param(("pixi add --pypi --index https://example.com/simple torch",), id="an unknown index of pixi"),
        pytest.param(("pixi add --pypi --editable ./x",), id="an option of pixi"),
        pytest.param(("pixi add --channel other pytorch",), id="a channel of pixi"),
        pytest.param(("pixi remove --pypi",), id="nothing of pixi"),
        pytest.param(("pixi reinstall torch",), id="pixi reinstalls, which has no plan"),
        pytest.param(("pixi exec python",), id="another command of pixi"),
        pytest.param(("poetry install",), id="the whole project"),
    ],
)
def test_commands_of_a_project_that_are_left_to_a_person(commands: tuple[str, ...]) -> None:
    assert actions_of(remedy(*commands), PYTHON) == ()


def test_what_needs_more_than_commands() -> None:
    install = f"{PYTHON} -m pip install torch"
    assert kind_of(remedy(install, needs=("reboot",)), PYTHON) == "system"
    assert kind_of(remedy(f'{PYTHON} -c "import torch"'), PYTHON) == "system"  # it changes nothing
    assert kind_of(remedy("uv add --index pytorch-cu130=https://download.pytorch.org/whl/cu130 torch"), PYTHON) == (
        "project"
    )
