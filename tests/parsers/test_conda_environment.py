"""Environment files of conda."""

from __future__ import annotations

import pytest

from gpudoctor.model import Requirement
from gpudoctor.parsers.conda_environment import parse_conda_environment, parse_match_spec

LINUX = {"sys_platform": "linux"}
ENVIRONMENT = """name: train
channels:
  - pytorch
  - nvidia
dependencies:
  - python=3.11   # the interpreter
  - pytorch=2.1
  - pip
  - pip:
      - flash-attn==2.5.8
      - -r requirements.txt
      - triton; sys_platform == 'win32'
  - numpy>=1.26,<2
prefix: /home/user/envs/train
"""


def test_dependencies() -> None:
    assert parse_conda_environment(ENVIRONMENT, "environment.yml", LINUX) == (
        Requirement(name="torch", specifier="==2.1.*", source="environment.yml line 7"),
        Requirement(name="flash-attn", specifier="==2.5.8", source="environment.yml line 10"),
        Requirement(name="numpy", specifier=">=1.26,<2", source="environment.yml line 13"),
    )


def test_list_without_indentation() -> None:
    text = "dependencies:\n- pytorch\n- pip:\n  - cupy-cuda12x\n- scipy\n"
    names = [requirement.name for requirement in parse_conda_environment(text, "environment.yml", LINUX)]
    assert names == ["torch", "cupy-cuda12x", "scipy"]


@pytest.mark.parametrize(
    ("spec", "name", "specifier"),
    [
        ("pytorch-cuda=12.1", "pytorch-cuda", "==12.1.*"),
        ("conda-forge::pytorch=2.1.0=py3.11_cuda12.1*", "torch", "==2.1.0.*"),
        ("scipy==1.11.4", "scipy", "==1.11.4"),
        ("cudatoolkit 11.8", "cudatoolkit", "==11.8"),
        ("numpy 1.26.*", "numpy", "==1.26.*"),
        ("numpy >=1.26,<2", "numpy", ">=1.26,<2"),
        ("numpy 1.25|1.26", "numpy", ""),
        ("cupy[version='>=12']", "cupy", ""),
    ],
)
def test_match_spec(spec: str, name: str, specifier: str) -> None:
    assert parse_match_spec(spec, "here") == Requirement(name=name, specifier=specifier, source="here")


@pytest.mark.parametrize("spec", ["python=3.11", "pip", "", "$%&"])
def test_no_distribution(spec: str) -> None:
    assert parse_match_spec(spec, "here") is None


def test_another_text() -> None:
    assert parse_conda_environment("channels:\n  - pytorch\n", "environment.yml", LINUX) == ()
