"""Package records and environment files of conda."""

from __future__ import annotations

import pytest

from gpudoctor.model import Requirement
from gpudoctor.parsers.conda import (
    CondaRecord,
    cuda_major,
    is_cpu_only,
    parse_conda_environment,
    parse_conda_record,
    parse_match_spec,
    torch_record,
)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0", ("pytorch", "2.5.1", "py3.12_cuda12.4_cudnn9.1.0_0")),
        ("pytorch-2.9.1-cpu_generic_py312h_0", ("pytorch", "2.9.1", "cpu_generic_py312h_0")),
        ("cuda-version-12.9-h4f385c5_3", ("cuda-version", "12.9", "h4f385c5_3")),
        ("_pytorch_select-0.1-cpu_0", ("_pytorch_select", "0.1", "cpu_0")),
        ("python-3.12.4-h194c7f8_0_cpython", ("python", "3.12.4", "h194c7f8_0_cpython")),
    ],
)
def test_record(text: str, record: tuple[str, str, str]) -> None:
    assert parse_conda_record(text) == CondaRecord(*record)


@pytest.mark.parametrize("text", ["history", "pytorch-2.5.1", "", "py\x1btorch-1-0", "-1-0"])
def test_other_files_are_no_records(text: str) -> None:
    assert parse_conda_record(text) is None


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(CondaRecord("cpuonly", "2.0", "0"), True, id="cpuonly"),
        pytest.param(CondaRecord("cpu-only", "1.0", "0"), True, id="its first name"),
        pytest.param(CondaRecord("pytorch-mutex", "1.0", "cpu"), True, id="mutex of the CPU build"),
        pytest.param(CondaRecord("_pytorch_select", "0.1", "cpu_0"), True, id="mutex of defaults"),
        pytest.param(CondaRecord("pytorch-cpu", "2.9.1", "cpu_generic_0"), True, id="metapackage of conda-forge"),
        pytest.param(CondaRecord("pytorch-mutex", "1.0", "cuda"), False, id="mutex of the CUDA build"),
        pytest.param(CondaRecord("pytorch", "2.9.1", "cpu_generic_0"), False, id="a CPU build that nobody asked for"),
    ],
)
def test_cpu_only(record: CondaRecord, expected: bool) -> None:
    assert is_cpu_only([record]) is expected


@pytest.mark.parametrize(
    ("records", "major"),
    [
        ([CondaRecord("cuda-version", "12.9", "h_3"), CondaRecord("cudatoolkit", "11.8.0", "h_13")], 12),
        ([CondaRecord("cudatoolkit", "11.8.0", "h_13")], 11),
        ([CondaRecord("cuda-version", "13", "h_3")], 13),
        ([CondaRecord("numpy", "2.0.0", "py312_0")], None),
    ],
)
def test_cuda_major(records: list[CondaRecord], major: int | None) -> None:
    assert cuda_major(records) == major


def test_the_record_of_torch_is_the_package_pytorch() -> None:
    pytorch = CondaRecord("pytorch", "2.9.1", "cuda129_0")
    assert torch_record([CondaRecord("pytorch-mutex", "1.0", "cuda"), pytorch]) == pytorch
    assert torch_record([CondaRecord("torchvision", "0.24", "0")]) is None


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
