"""Compiled extensions, the compilers of toolkits, and versions of cuDNN."""

from __future__ import annotations

import pytest

from gpudoctor.data.cuda_libraries import cudnn_of_torch, cudnn_version, first_toolkit_for_gcc, gcc_limits, newest_gcc
from gpudoctor.data.packages import distribution_of, first_bitsandbytes
from gpudoctor.model import CudaVersion, PackageVersion


@pytest.mark.parametrize(
    ("place", "name"),
    [("flash_attn_2_cuda", "flash-attn"), ("_scatter_cuda", "torch-scatter"), ("amp_C", "apex"), ("click", "")],
)
def test_the_distribution_of_a_file(place: str, name: str) -> None:
    assert distribution_of(place) == name


@pytest.mark.parametrize(
    ("cuda", "version"),
    [((12, 3), None), ((12, 4), (0, 43, 1)), ((12, 7), (0, 45, 0)), ((12, 8), (0, 45, 3)), ((13, 0), (0, 45, 3))],
)
def test_the_first_bitsandbytes_for_a_cuda(cuda: tuple[int, int], version: tuple[int, ...] | None) -> None:
    assert first_bitsandbytes(CudaVersion(*cuda)) == version


@pytest.mark.parametrize(
    ("cuda", "gcc"),
    [
        ((13, 1), 15),
        ((12, 9), 14),
        ((12, 8), 14),
        ((12, 7), 13),
        ((12, 0), 12),
        ((11, 8), 11),
        ((8, 0), 5),
        ((7, 5), None),
    ],
)
def test_the_newest_gcc_of_a_toolkit(cuda: tuple[int, int], gcc: int | None) -> None:
    assert newest_gcc(CudaVersion(*cuda)) == gcc


def test_of_an_unknown_toolkit_nothing_is_known() -> None:
    assert newest_gcc(None) is None


@pytest.mark.parametrize(("gcc", "cuda"), [(5, (8, 0)), (12, (12, 0)), (13, (12, 4)), (15, (13, 0)), (16, None)])
def test_the_first_toolkit_for_a_gcc(gcc: int, cuda: tuple[int, int] | None) -> None:
    assert first_toolkit_for_gcc(gcc) == (CudaVersion(*cuda) if cuda else None)


def test_newer_toolkits_accept_newer_compilers() -> None:
    limits = gcc_limits()
    assert limits == sorted(limits, reverse=True)
    assert len({gcc for _, gcc in limits}) == len(limits)


@pytest.mark.parametrize(("torch", "cudnn"), [("2.3.1", 8), ("2.4.0", 9), ("2.13.0+cu130", 9), ("1.13.1", 8)])
def test_the_cudnn_of_pytorch(torch: str, cudnn: int) -> None:
    assert cudnn_of_torch(PackageVersion(torch)) == cudnn


def test_the_cudnn_of_an_unknown_pytorch() -> None:
    assert cudnn_of_torch(None) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("91002", (9, 10, 2)),
        ("90000", (9, 0, 0)),
        ("8902", (8, 9, 2)),
        ("(8, 5, 0)", (8, 5, 0)),
        ("8.5.0", (8, 5, 0)),
        ("9", (9,)),
        ("", ()),
    ],
)
def test_a_version_of_cudnn_in_any_form(text: str, version: tuple[int, ...]) -> None:
    assert cudnn_version(text) == version
