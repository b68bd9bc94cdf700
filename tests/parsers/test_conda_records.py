"""The names of conda's package records."""

import pytest

from gpudoctor.parsers.conda_records import CondaRecord, cuda_major, is_cpu_only, parse_conda_record, torch_record


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
