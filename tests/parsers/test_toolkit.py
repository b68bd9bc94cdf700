"""Versions of toolkits and host compilers."""

from __future__ import annotations

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.parsers.toolkit import (
    parse_compiler_version,
    parse_folder_name,
    parse_newest_gcc,
    parse_nvcc_version,
    parse_version_json,
    parse_version_txt,
)

NVCC_12_4 = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
Cuda compilation tools, release 12.4, V12.4.131
Build cuda_12.4.r12.4/compiler.34097967_0
"""


def test_release() -> None:
    assert parse_nvcc_version(NVCC_12_4) == CudaVersion(12, 4)
    assert parse_nvcc_version(NVCC_12_4.replace("12.4", "10.0")) == CudaVersion(10, 0)


@pytest.mark.parametrize("text", ["", "pyenv: nvcc: command not found\n", "release 12.4"])
def test_a_text_that_is_no_nvcc_version(text: str) -> None:
    with pytest.raises(ValueError, match="no release of nvcc"):
        parse_nvcc_version(text)


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


CUDA_12_4 = """#if defined(__GNUC__)

#if __GNUC__ > 13

#error -- unsupported GNU version! gcc versions later than 13 are not supported!

#endif /* __GNUC__ > 13 */

#if defined(__clang__) && !defined(__ibmxl_vrm__) && !defined(__ICC)
#if (__clang_major__ >= 18) || (__clang_major__ < 3)
"""


def test_newest_gcc() -> None:
    assert parse_newest_gcc(CUDA_12_4) == 13
    assert parse_newest_gcc("# if (__GNUC__ > 9)\n") == 9


@pytest.mark.parametrize("text", ["", "#include <crt/host_config.h>\n", "#endif /* __GNUC__ > 13 */\n"])
def test_another_header(text: str) -> None:
    with pytest.raises(ValueError, match="no limit of __GNUC__"):
        parse_newest_gcc(text)


FSF = "\nCopyright (C) 2023 Free Software Foundation, Inc.\nThis is free software.\n"


@pytest.mark.parametrize(
    ("text", "kind", "version"),
    [
        pytest.param(f"gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0{FSF}", "gcc", (11, 4, 0), id="Ubuntu"),
        pytest.param(f"cc (Debian 12.2.0-14+deb12u1) 12.2.0{FSF}", "gcc", (12, 2, 0), id="Debian, cc"),
        pytest.param(f"gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3){FSF}", "gcc", (14, 2, 1), id="Fedora"),
        pytest.param(
            f"x86_64-conda-linux-gnu-cc (conda-forge gcc 12.3.0-2) 12.3.0{FSF}", "gcc", (12, 3, 0), id="conda"
        ),
        pytest.param("Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64", "clang", (14, 0, 0), id="clang"),
        pytest.param("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", "clang", (15, 0, 0), id="Apple"),
        pytest.param(
            "Microsoft (R) C/C++ Optimizing Compiler Version 19.38.33133 for x64\n", "cl", (19, 38, 33133), id="cl"
        ),
    ],
)
def test_compiler(text: str, kind: str, version: tuple[int, ...]) -> None:
    compiler = parse_compiler_version(text)
    assert (compiler.kind, compiler.version) == (kind, version)


@pytest.mark.parametrize("text", ["", "nvc 24.5-1 64-bit target on x86-64 Linux\n", f"gcc{FSF}"])
def test_a_text_that_is_no_compiler_version(text: str) -> None:
    with pytest.raises(ValueError, match="version of"):
        parse_compiler_version(text)
