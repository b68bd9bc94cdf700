"""The version files and folder names of toolkits."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.parsers.toolkit_version import parse_folder_name, parse_version_json, parse_version_txt


def test_version_json() -> None:
    text = '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "cuda_nvcc": {"version": "12.4.131"}}'
    assert parse_version_json(text) == CudaVersion(12, 4)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"cuda": {"version": 12}}', '{"cuda": null}', "[" * 100_000])
def test_another_version_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_version_json(text)


def test_version_txt() -> None:
    assert parse_version_txt("CUDA Version 10.1.243\n") == CudaVersion(10, 1)
    with pytest.raises(ValueError, match="no CUDA version"):
        parse_version_txt("10.1")


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/local/cuda-12.4", CudaVersion(12, 4)),
        ("/usr/local/cuda-11.0.3/", CudaVersion(11, 0)),
        (r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6", CudaVersion(12, 6)),
        ("/usr/local/cuda-12", None),
        ("/usr/local/cuda", None),
    ],
)
def test_folder_name(path: str, version: CudaVersion | None) -> None:
    if version:
        assert parse_folder_name(path) == version
    else:
        with pytest.raises(ValueError, match="no CUDA version"):
            parse_folder_name(path)
