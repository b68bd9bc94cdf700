"""The file torch/version.py: every form it has had, and texts that are no such file."""

from pathlib import Path

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.parsers.torch_version_file import TorchVersionFile, build_of_version, parse_torch_version_file

CPU_2_13 = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.13.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
"""
CUDA_1_8 = "__version__ = '1.8.1+cu102'\ndebug = False\ncuda = '10.2'\ngit_version = '56b43f4f'\nhip = None\n"
ROCM = CPU_2_13.replace("+cpu", "+rocm7.1").replace("hip: Optional[str] = None", "hip: Optional[str] = '7.1.25424'")
XPU = CPU_2_13.replace("+cpu", "+xpu").replace("xpu: Optional[str] = None", "xpu: Optional[str] = '20250301'")


@pytest.mark.parametrize(
    ("text", "build", "version", "cuda"),
    [
        pytest.param(CPU_2_13, "cpu", "2.13.0+cpu", None, id="CPU build, annotated names"),
        pytest.param(CUDA_1_8, "cuda", "1.8.1+cu102", CudaVersion(10, 2), id="CUDA build, plain names, no xpu"),
        pytest.param(CUDA_1_8.replace("hip = None\n", ""), "cuda", "1.8.1+cu102", CudaVersion(10, 2), id="no hip"),
        pytest.param(ROCM, "rocm", "2.13.0+rocm7.1", None, id="ROCm build"),
        pytest.param(XPU, "xpu", "2.13.0+xpu", None, id="XPU build"),
        pytest.param(CUDA_1_8.replace("\n", "\r\n"), "cuda", "1.8.1+cu102", CudaVersion(10, 2), id="Windows line ends"),
        pytest.param(CUDA_1_8.replace("'10.2'", "'main'"), "cuda", "1.8.1+cu102", None, id="unreadable CUDA version"),
    ],
)
def test_build(text: str, build: str, version: str, cuda: CudaVersion | None) -> None:
    file = parse_torch_version_file(text)
    assert (file.build, file.version, file.cuda_version) == (build, version, cuda)


def test_an_expression_is_unknown_and_none_is_none() -> None:
    text = "__version__ = '2.9.0'\ncuda = '13.0' if True else None\nhip = None\ndebug = bool(1)\n"
    assert parse_torch_version_file(text) == TorchVersionFile(version="2.9.0", cuda=None, hip="", xpu="")
    assert parse_torch_version_file(text).build is None


@pytest.mark.parametrize("literal", ["True", "False"])
def test_yes_and_no_are_no_versions(literal: str) -> None:
    """They are unknown, which "None" is not."""
    text = f"__version__ = '2.9.0'\ncuda = {literal}\n"
    assert parse_torch_version_file(text) == TorchVersionFile(version="2.9.0", cuda=None, hip="", xpu="")


def test_nothing_is_executed(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    text = f"__version__ = '2.9.0'\nopen({str(proof)!r}, 'w')\ncuda = open({str(proof)!r}, 'w').name\n" + "(" * 5000
    assert parse_torch_version_file(text).cuda is None
    assert not proof.exists()


def test_control_characters_make_a_value_unknown() -> None:
    assert parse_torch_version_file("__version__ = '2.9.0\x1b[31m'\ncuda = '13.0\x07'\n").version is None


@pytest.mark.parametrize("text", ["", "version = '1.0'\n", "\0\0\0", "if True:\n    __version__ = '2.9.0'\n"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no __version__ in torch/version.py"):
        parse_torch_version_file(text)


@pytest.mark.parametrize(
    ("version", "build"),
    [
        ("2.13.0+cu130", ("cuda", CudaVersion(13, 0))),
        ("1.8.1+cu92", ("cuda", CudaVersion(9, 2))),
        ("2.13.0+cpu", ("cpu", None)),
        ("2.13.0+rocm7.1", ("rocm", None)),
        ("2.13.0+xpu", ("xpu", None)),
        ("2.13.0+cu1301", (None, None)),
        ("2.13.0", (None, None)),
        ("2.6.0a0+ecf3bae40a.nv25.01", (None, None)),
    ],
)
def test_the_build_in_a_version(version: str, build: tuple[str | None, CudaVersion | None]) -> None:
    assert build_of_version(version) == build
