"""Toolkits and compilers, read from folders made for the test and from answers written by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import CudaVersion, SharedLibrary, Toolkit, ToolkitInstall
from gpudoctor.probes import toolkit as probe
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.toolkit import parse_loader_cache, parse_toolkit
from gpudoctor.probes.workers import read_host
from tests.probes.asked import asked

NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release {0}, V{0}.88'\n"
GCC = "#!/bin/sh\necho 'gcc (Debian 12.2.0-14) 12.2.0'; echo 'Copyright (C) 2022 Free Software Foundation, Inc.'\n"
HOST_CONFIG = "#if __GNUC__ > {}\n#error -- unsupported GNU version!\n#endif\n"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts and paths of Linux")


def write(path: Path, text: str = "", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def add_toolkit(root: Path, version: str, newest_gcc: int = 13) -> Path:
    write(root / "version.json", f'{{"cuda": {{"name": "CUDA SDK", "version": "{version}.1"}}}}')
    write(root / "bin/nvcc", NVCC.format(version), 0o755)
    write(root / "targets/x86_64-linux/include/cuda.h")
    write(root / "targets/x86_64-linux/include/crt/host_config.h", HOST_CONFIG.format(newest_gcc))
    (root / "include").symlink_to("targets/x86_64-linux/include")
    return root


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose `local` is searched for toolkits instead of /usr/local, with gcc and sh in `bin`."""
    root = tmp_path.resolve()
    monkeypatch.setattr(probe, "ROOTS", (f"{root}/local/cuda*",))
    write(root / "bin/gcc", GCC, 0o755)
    return root


def read(tree: Path, monkeypatch: pytest.MonkeyPatch, **variables: str) -> Toolkit:
    """Return the section as a machine with these variables gives it."""
    for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "CC", "NVCC_CCBIN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PATH": f"{tree}/bin", **variables}.items():
        monkeypatch.setenv(name, value)
    question = asked("toolkit", ProbeContext(environ=dict(os.environ), directory=tree))
    assert (question.name, question.worker) == ("toolkit", "read_host")
    return parse_toolkit(read_host.collect(question.arguments))


def test_nothing_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = read(tree, monkeypatch)
    assert (toolkit.nvcc_path, toolkit.nvcc_version, toolkit.host_compiler_max) == ("", None, None)
    assert toolkit.toolkits == ()
    assert toolkit.library_path_libraries == ()
    assert (toolkit.host_compiler, toolkit.host_compiler_version) == ("gcc", (12, 2, 0))


def test_link_is_no_second_toolkit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = add_toolkit(tree / "local/cuda-12.4", "12.4")
    (tree / "local/cuda").symlink_to(root)
    (tree / "local/cuda-12").symlink_to(root)
    toolkit = read(tree, monkeypatch, PATH=f"{tree}/local/cuda/bin:{tree}/bin")
    assert toolkit.nvcc_path == f"{tree}/local/cuda/bin/nvcc"
    assert toolkit.nvcc_version == CudaVersion(12, 4)
    assert toolkit.toolkits == (ToolkitInstall(path=str(root), version=CudaVersion(12, 4), has_nvcc=True),)
    assert toolkit.host_compiler_max == 13


def test_two_toolkits(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_toolkit(tree / "local/cuda-11.8", "11.8", newest_gcc=11)
    add_toolkit(tree / "local/cuda-12.4", "12.4", newest_gcc=13)
    toolkit = read(
        tree, monkeypatch, PATH=f"{tree}/local/cuda-11.8/bin:{tree}/bin", CUDA_HOME=f"{tree}/local/cuda-12.4/"
    )
    assert [str(install.version) for install in toolkit.toolkits or ()] == ["11.8", "12.4"]
    assert (str(toolkit.nvcc_version), toolkit.host_compiler_max) == ("11.8", 11)


def test_nvcc_of_cuda_home_if_path_has_none(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = add_toolkit(tree / "apps/[cuda]/12.6", "12.6", newest_gcc=14)
    toolkit = read(tree, monkeypatch, CUDA_PATH=str(root))
    assert (toolkit.nvcc_path, str(toolkit.nvcc_version)) == (f"{root}/bin/nvcc", "12.6")
    assert toolkit.host_compiler_max == 14
    assert toolkit.toolkits == (ToolkitInstall(path=str(root), version=CudaVersion(12, 6), has_nvcc=True),)


def test_cuda_home_that_is_not_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = read(tree, monkeypatch, CUDA_HOME=f"{tree}/gone", CUDA_PATH=f"{tree}/bin")
    assert (toolkit.nvcc_path, toolkit.toolkits) == ("", ())


def test_script_that_calls_nvcc(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is no toolkit; the header is that of the toolkit with its version."""
    add_toolkit(tree / "local/cuda-13.0", "13.0", newest_gcc=15)
    write(tree / "bin/nvcc", NVCC.format("13.0"), 0o755)
    toolkit = read(tree, monkeypatch)
    assert [install.path for install in toolkit.toolkits or ()] == [f"{tree}/local/cuda-13.0"]
    assert toolkit.host_compiler_max == 15


@pytest.mark.parametrize("is_linked", [False, True], ids=["its folder on PATH", "a link to it on PATH"])
def test_of_two_toolkits_of_one_version_that_of_nvcc_counts(
    tree: Path, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    add_toolkit(tree / "local/cuda-12.4", "12.4", newest_gcc=13)
    patched = add_toolkit(tree / "local/cuda-12.4-patched", "12.4", newest_gcc=14)
    if is_linked:
        (tree / "bin/nvcc").symlink_to(patched / "bin/nvcc")
    toolkit = read(tree, monkeypatch, PATH=f"{tree}/bin" if is_linked else f"{patched}/bin:{tree}/bin")
    assert toolkit.host_compiler_max == 14


def test_toolkit_of_the_distribution(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's package lies in /usr and has no version file."""
    write(tree / "usr/bin/nvcc", NVCC.format("11.8"), 0o755)
    write(tree / "usr/include/cuda.h")
    write(tree / "usr/include/crt/host_config.h", HOST_CONFIG.format(11))
    toolkit = read(tree, monkeypatch, PATH=f"{tree}/usr/bin:{tree}/bin")
    assert toolkit.toolkits == (ToolkitInstall(path=f"{tree}/usr", version=CudaVersion(11, 8), has_nvcc=True),)
    assert toolkit.host_compiler_max == 11


@pytest.mark.parametrize(
    ("name", "file", "text", "version"),
    [
        pytest.param("cuda-10.1", "version.txt", "CUDA Version 10.1.243\n", "10.1", id="version.txt"),
        pytest.param("cuda-12.2", "lib64/libcudart.so.12", "", "12.2", id="runtime image: the folder's name"),
        pytest.param("cuda", "lib64/libcudart.so.12", "", "None", id="no version anywhere"),
        pytest.param("cuda-12.2", "version.json", "{broken", "12.2", id="broken version.json"),
    ],
)
def test_version(tree: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, text: str, version: str) -> None:
    write(tree / "local" / name / file, text)
    write(tree / "local" / name / "lib64/libcudart.so.12")
    (install,) = read(tree, monkeypatch).toolkits or ()
    assert (str(install.version), install.has_nvcc) == (version, False)


def test_folder_without_a_toolkit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree / "local/cuda-samples/README.md")
    assert read(tree, monkeypatch).toolkits == ()


def test_first_hit_of_the_library_path_wins(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("one/libcudart.so.11.0", "one/libcudart.so.11.8.89", "one/libcurl.so.4", "two/libcudnn.so.9"):
        write(tree / path)
    for path in ("two/libcudart.so.11.0", "two/libcuda.so", "two/libcublas.so.12"):
        write(tree / path)
    (tree / "two/libnccl.so.2").symlink_to("libnccl.so.2.21.5")
    toolkit = read(tree, monkeypatch, LD_LIBRARY_PATH=f"{tree}/none:{tree}/one/::{tree}/two:{tree}/one")
    assert toolkit.library_path_libraries == (
        SharedLibrary(soname="libcudart.so.11.0", path=f"{tree}/one/libcudart.so.11.0"),
        SharedLibrary(soname="libcublas.so.12", path=f"{tree}/two/libcublas.so.12"),
        SharedLibrary(soname="libcuda.so", path=f"{tree}/two/libcuda.so"),
        SharedLibrary(soname="libcudnn.so.9", path=f"{tree}/two/libcudnn.so.9"),
    )


def test_empty_folder_of_the_library_path_is_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tree / "libnvrtc.so.12")
    monkeypatch.chdir(tree)
    toolkit = read(tree, monkeypatch, LD_LIBRARY_PATH=f"{tree}/none:")
    assert toolkit.library_path_libraries == (SharedLibrary(soname="libnvrtc.so.12", path="./libnvrtc.so.12"),)


@pytest.mark.parametrize("variable", ["CC", "NVCC_CCBIN"])
def test_compiler_of_the_environment(tree: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    write(tree / "bin/my-clang", "#!/bin/sh\necho clang version 17.0.6 for $1\n", 0o755)
    toolkit = read(tree, monkeypatch, **{variable: f"'{tree}/bin/my-clang' -m64"})
    assert (toolkit.host_compiler, toolkit.host_compiler_version) == ("clang", (17, 0, 6))


@pytest.mark.parametrize("compiler", ["'open quote", "no-such-compiler", ""])
def test_compiler_of_the_environment_that_cannot_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    assert read(tree, monkeypatch, CC=compiler).host_compiler_version == (12, 2, 0)


def answer(commands: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"values": {"platform": {"value": "linux"}}, "commands": commands}


def test_no_compiler() -> None:
    missing = {"status": None, "stdout": "", "stderr": "", "error": "ENOENT No such file or directory"}
    hung = {**missing, "error": "no answer in 5 s"}
    assert parse_toolkit(answer({"gcc": missing, "cc": missing})).host_compiler == ""
    assert parse_toolkit(answer({"gcc": missing, "cc": hung})).host_compiler is None
    for names in (("gcc",), ("cc",), ("cl",), ("gcc", "cc", "cl")):
        assert parse_toolkit(answer(dict.fromkeys(names, missing))).host_compiler == "", names
        assert parse_toolkit(answer({**dict.fromkeys(names, missing), names[-1]: hung})).host_compiler is None, names
    assert parse_toolkit(answer({})).host_compiler is None


def test_the_first_compiler_that_answers_counts() -> None:
    said = {"status": 0, "stderr": ""}
    names = ("CC", "NVCC_CCBIN", "gcc", "cc", "cl")
    versions = {name: {**said, "stdout": f"gcc (GCC) {number}.1.0\n"} for number, name in enumerate(names, start=5)}
    for number, name in enumerate(names, start=5):
        found = parse_toolkit(answer({key: value for key, value in versions.items() if key in names[number - 5 :]}))
        assert found.host_compiler_version == (number, 1, 0), name


def test_cl_speaks_on_standard_error() -> None:
    banner = "Microsoft (R) C/C++ Optimizing Compiler Version 19.41.34120 for x64\n"
    toolkit = parse_toolkit(answer({"cl": {"status": 0, "stdout": "", "stderr": banner}}))
    assert (toolkit.host_compiler, toolkit.host_compiler_version) == ("cl", (19, 41, 34120))


def test_system_libraries() -> None:
    cache = (
        "3 libs found in cache\n\tlibcudnn.so.8 (libc6,x86-64) => /usr/lib/libcudnn.so.8\n"
        "\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6\n\tlibcuda.so.1 (libc6) => /lib/i386-linux-gnu/libcuda.so.1\n"
    )
    toolkit = parse_loader_cache(answer({"ldconfig": {"status": 0, "stdout": cache, "stderr": ""}}))
    assert toolkit.system_libraries == (SharedLibrary(soname="libcudnn.so.8", path="/usr/lib/libcudnn.so.8"),)
    assert parse_loader_cache(answer({})).system_libraries is None


def test_nothing_answered() -> None:
    toolkit = parse_toolkit({})
    assert (toolkit.nvcc_path, toolkit.library_path_libraries, toolkit.system_libraries) == (None, None, None)


@pytest.mark.parametrize(
    ("path", "home", "roots"),
    [
        pytest.param("/opt/cuda/bin:/usr/bin/:/sbin", "", ["/opt/cuda", "/usr"], id="folders named bin"),
        pytest.param("C:\\cuda\\bin\\", "D:\\cuda", ["D:\\cuda", "C:\\cuda"], id="of Windows"),
        pytest.param("/opt/cuda/bin", "/opt/cuda", ["/opt/cuda"], id="the same twice"),
        pytest.param("/bin:/cabin", "", [], id="the root is no toolkit"),
    ],
)
def test_the_toolkits_that_the_environment_names(
    path: str, home: str, roots: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pathsep", ";" if "\\" in path else ":")
    assert probe._named_roots({"PATH": path}, home) == roots
