"""PyTorch on disk: the kind of build, its architectures, and what is missing of it."""

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import CudaVersion, PackageVersion, Torch
from gpudoctor.probes.torch_build import parse_torch
from gpudoctor.probes.workers import python_environment
from tests.environments import python_of, site_packages_of
from tests.probes.test_python_environment import ask
from tests.site_packages import EXTENSION, OLD_ABI_SYMBOL, SitePackages, dll, elf

FLAGS_13_0 = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"


@pytest.fixture
def site(tmp_path: Path) -> SitePackages:
    return SitePackages(tmp_path / "environment")


def test_no_torch(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torchmetrics", "1.8.0")
    assert parse_torch(site.collect(monkeypatch)) == Torch(installed=False)


def test_cuda_build_from_pypi(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of PyPI's wheel say 2.14.1, its version.py 2.14.1+cu130."""
    site.distribution("torch", "2.14.1", requires=['nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"'])
    site.torch("2.14.1+cu130", cuda="13.0", flags=FLAGS_13_0)
    assert parse_torch(site.collect(monkeypatch)) == Torch(
        installed=True,
        version=PackageVersion("2.14.1+cu130"),
        build="cuda",
        cuda_version=CudaVersion(13, 0),
        hip_version="",
        location=str(site.folder / "torch"),
        architectures=tuple(FLAGS_13_0.split()),
        cxx11_abi=True,
        missing_libraries=(),
        conda_build="",
        conda_cpuonly=False,
    )


@pytest.mark.parametrize(
    ("version", "build", "architectures"),
    [
        pytest.param({"version": "2.13.0+cpu"}, "cpu", (), id="CPU"),
        pytest.param({"version": "2.9.1+rocm6.4", "hip": "6.4.43484"}, "rocm", ("gfx90a", "gfx1100"), id="ROCm"),
        pytest.param({"version": "2.9.1+xpu", "xpu": "20250301"}, "xpu", (), id="XPU"),
    ],
)
def test_other_builds(
    site: SitePackages,
    monkeypatch: pytest.MonkeyPatch,
    version: dict[str, str],
    build: str,
    architectures: tuple[str, ...],
) -> None:
    site.distribution("torch", version["version"])
    site.torch(**version, flags="gfx90a:sramecc+ gfx1100" if build == "rocm" else "")
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.build, torch.architectures, torch.cuda_version) == (build, architectures, None)
    assert torch.hip_version == version.get("hip", "")


def test_requirements_of_nvidia_wheels_make_no_cuda_build(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheels for Windows and for CPUs carry the same requirements behind a marker."""
    site.distribution("torch", "2.14.1", requires=['nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"'])
    site.torch("2.14.1+cpu")
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.build, torch.missing_libraries) == ("cpu", ())


@pytest.mark.parametrize(
    ("flags", "architectures"),
    [
        ("sm_86", ("sm_86",)),
        ("sm_80 sm_90a compute_90a", ("sm_80", "sm_90a", "compute_90a")),
        ("compute_80 compute_90", ("compute_80", "compute_90")),
        ("gfx90a gfx1100", ("gfx90a", "gfx1100")),
        ("sm_75 sm_80 ", None),
        ("", None),
    ],
)
def test_architecture_flags(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, flags: str, architectures: tuple[str, ...] | None
) -> None:
    site.torch("2.9.0", cuda="12.8", flags=flags)
    assert parse_torch(site.collect(monkeypatch)).architectures == architectures


@pytest.mark.parametrize(
    ("removed", "missing"),
    [
        pytest.param("torch/lib/libtorch_cpu.so", "libtorch_cpu.so", id="own library"),
        pytest.param("torch/lib/libc10.so", "libc10.so", id="needed by the others only"),
        pytest.param("nvidia/cudnn/lib/libcudnn.so.99", "libcudnn.so.99", id="library of a wheel"),
        pytest.param(f"torch/{EXTENSION}", f"torch/{EXTENSION}", id="extension module, or another Python's"),
    ],
)
def test_missing_library(site: SitePackages, monkeypatch: pytest.MonkeyPatch, removed: str, missing: str) -> None:
    site.distribution("torch", "2.14.1")
    site.torch("2.14.1+cu130", cuda="13.0")
    (site.folder / removed).unlink()
    assert parse_torch(site.collect(monkeypatch)).missing_libraries == (missing,)


def test_a_library_that_is_needed_by_a_library_of_a_wheel(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.torch("2.14.1+cu130", cuda="13.0")
    site.write("nvidia/cudnn/lib/libcudnn.so.99", elf(needed=["libcublas.so.99", "libz.so.1"]))
    assert parse_torch(site.collect(monkeypatch)).missing_libraries == ("libcublas.so.99",)


def test_a_library_in_the_environment_is_not_missing(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    """conda keeps the libraries in its prefix."""
    site.torch("2.9.1", cuda="12.9")
    library = site.folder / "torch" / "lib" / "libtorch_cpu.so"
    library.rename(site.prefix / "lib" / library.name)
    assert parse_torch(site.collect(monkeypatch)).missing_libraries == ()


def test_a_library_on_the_search_path_of_another_is_not_missing(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.torch("2.14.1+cu130", cuda="13.0")
    site.write("nvidia/cudnn/lib/libcudnn.so.99", elf(needed=["libcublas.so.99"], search="$ORIGIN/../../vendor"))
    site.write("nvidia/vendor/libcublas.so.99", elf())
    assert parse_torch(site.collect(monkeypatch)).missing_libraries == ()


@pytest.mark.parametrize(
    "name", ["libtorch_global_deps.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so", "libtorch_notes.so"]
)
def test_libraries_that_are_loaded_by_name_need_theirs_too(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    site.torch("2.9.1+cu128", cuda="12.8")
    site.library(name, needed=["libcublas.so.99"])
    missing = () if "notes" in name else ("libcublas.so.99",)
    assert parse_torch(site.collect(monkeypatch)).missing_libraries == missing


@pytest.mark.parametrize("root", ["/own", "/base", "/", "/usr", "/usr/local"])
@pytest.mark.parametrize("folder", ["lib", "lib64"])
def test_libraries_in_the_folders_of_the_prefixes_and_of_the_system_are_found(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, root: str, folder: str
) -> None:
    site.torch("2.9.1")
    (site.folder / "torch" / "lib" / "libtorch_cpu.so").unlink()
    place, exists = os.path.join(root, folder, "libtorch_cpu.so"), os.path.exists
    monkeypatch.setattr(sys, "prefix", "/own")
    monkeypatch.setattr(sys, "base_prefix", "/base")
    monkeypatch.setattr(os.path, "exists", lambda path: path == place or exists(path))
    assert python_environment._torch([str(site.folder)], [], [])["unresolved"] == []


@pytest.mark.parametrize("paths", ["{0}", "/none:{0}", ""])
def test_libraries_on_the_path_of_the_loader_are_found(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: str
) -> None:
    site.torch("2.9.1")
    (site.folder / "torch" / "lib" / "libtorch_cpu.so").rename(tmp_path / "libtorch_cpu.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", paths.format(tmp_path))
    unresolved = python_environment._torch([str(site.folder)], [], [])["unresolved"]
    assert unresolved == ([] if paths else ["libtorch_cpu.so"])


def test_metadata_without_package(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torch", "2.13.0+cu126")
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.installed, str(torch.version), torch.build) == (True, "2.13.0+cu126", "cuda")
    assert (torch.cuda_version, torch.hip_version) == (CudaVersion(12, 6), "")
    assert torch.missing_libraries == ("torch/__init__.py",)


def test_metadata_without_package_and_variant(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torch", "2.13.0")
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.build, torch.cuda_version, torch.architectures, torch.location) == (None, None, None, None)


def test_an_editable_install_lies_elsewhere(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site.distribution("torch", "2.15.0a0+git5c48869")
    (folder / "direct_url.json").write_text('{"url":"file:///src/pytorch","dir_info":{"editable":true}}')
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.installed, torch.missing_libraries) == (True, None)


def test_package_without_metadata(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.torch("2.9.1+cu128", cuda="12.8", flags="sm_90")
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.installed, str(torch.version), torch.architectures) == (True, "2.9.1+cu128", ("sm_90",))


def test_an_unreadable_version_file(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torch", "2.9.1")
    site.torch("2.9.1+cu128", cuda="12.8")
    site.write("torch/version.py", "import os\nos.abort()\n")
    torch = parse_torch(site.collect(monkeypatch))
    assert (str(torch.version), torch.build, torch.cuda_version) == ("2.9.1", None, None)


def test_the_working_directory_is_not_the_package(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.distribution("torch", "2.9.1")
    site.torch("2.9.1+cpu")
    checkout = SitePackages(tmp_path / "checkout")
    checkout.torch("2.15.0a0")
    facts = site.collect(monkeypatch, before=[checkout.folder], directory=checkout.folder)
    assert parse_torch(facts).location == str(site.folder / "torch")


def test_a_checkout_in_the_working_directory_is_no_installation(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = SitePackages(tmp_path / "checkout")
    checkout.torch("2.15.0a0")
    facts = site.collect(monkeypatch, before=[checkout.folder], directory=checkout.folder)
    assert parse_torch(facts) == Torch(installed=False)


def test_the_installed_package_is_described_when_another_hides_it(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.distribution("torch", "2.9.1")
    site.torch("2.9.1+cpu")
    checkout = SitePackages(tmp_path / "checkout")
    checkout.torch("2.15.0a0")
    facts = site.collect(monkeypatch, before=[checkout.folder])
    assert parse_torch(facts).location == str(site.folder / "torch")
    assert facts["shadowing"] == [str(checkout.folder / "torch" / "__init__.py")]


@pytest.mark.parametrize(
    ("symbol", "abi"),
    [(OLD_ABI_SYMBOL, False), ("_ZN3c105ErrorD2Ev", None)],
)
def test_cxx11_abi(site: SitePackages, monkeypatch: pytest.MonkeyPatch, symbol: str, abi: bool | None) -> None:
    site.torch("2.5.1+cu124", cuda="12.4")
    site.library("libc10.so", symbols=[symbol])
    assert parse_torch(site.collect(monkeypatch)).cxx11_abi is abi


@pytest.mark.parametrize(
    ("libraries", "architectures"),
    [([], None), (["libtorch_cuda.so"], "sm_90"), (["libtorch_hip.so"], "sm_90"), (["libother.so"], None)],
)
def test_only_a_build_for_gpus_has_architectures(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, libraries: list[str], architectures: str | None
) -> None:
    site.torch("2.9.1", flags="sm_90")
    for name in libraries:
        site.library(name)
    assert site.collect(monkeypatch)["torch"]["architectures"] == architectures


def test_only_a_symbol_of_the_library_s_own_shows_the_abi(tmp_path: Path) -> None:
    """The words are in its constants too, right behind the table of symbols."""
    (tmp_path / "x.so").write_bytes(elf(symbols=["_ZN3c105ErrorD2Ev"], constants=OLD_ABI_SYMBOL.encode() + b"\0"))
    assert python_environment._cxx11_abi(str(tmp_path / "x.so")) is None


@pytest.mark.parametrize(
    ("records", "build", "cpu_only"),
    [
        (["pytorch-2.5.1-py3.12_cpu_0", "pytorch-mutex-1.0-cpu"], "py3.12_cpu_0", True),
        (["pytorch-2.9.1-cuda129_mkl_py312h_301"], "cuda129_mkl_py312h_301", False),
        (["python-3.12.4-h1_0_cpython"], "", False),
    ],
)
def test_conda(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, records: list[str], build: str, cpu_only: bool
) -> None:
    site.distribution("torch", "2.5.1", installer="conda")
    site.torch("2.5.1")
    site.conda(*records)
    torch = parse_torch(site.collect(monkeypatch))
    assert (torch.conda_build, torch.conda_cpuonly) == (build, cpu_only)


def windows(site: SitePackages, monkeypatch: pytest.MonkeyPatch, libraries: dict[str, bytes]) -> dict[str, Any]:
    site.distribution("torch", "2.9.1+cu128")
    site.torch("2.9.1+cu128", cuda="12.8")
    for library in (site.folder / "torch" / "lib").iterdir():
        library.unlink()
    site.write(f"torch/{EXTENSION}", dll(b""))
    for name, content in libraries.items():
        site.write(f"torch/lib/{name}", content)
    facts = site.collect(monkeypatch)
    return {**facts, "interpreter": {**facts["interpreter"], "os": "win32"}}


WINDOWS = dict.fromkeys(("torch_cpu.dll", "torch_cuda.dll", "c10.dll", "c10_cuda.dll"), b"MZ")


def test_windows(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    python_library = dll(b"other\0sm_80 sm_90 compute_90\0")
    torch = parse_torch(windows(site, monkeypatch, {**WINDOWS, "torch_python.dll": python_library}))
    assert (torch.architectures, torch.missing_libraries) == (("sm_80", "sm_90", "compute_90"), ())
    assert torch.cxx11_abi is None


def test_windows_missing_library(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an antivirus program took one away."""
    torch = parse_torch(
        windows(site, monkeypatch, {"torch_python.dll": dll(b""), "torch_cpu.dll": b"", "c10.dll": b""})
    )
    assert torch.missing_libraries == ("torch_cuda.dll", "c10_cuda.dll")


@pytest.mark.parametrize("name", ["torch_python.dll", "torch_cpu.dll", "c10.dll", "torch_cuda.dll", "c10_cuda.dll"])
def test_each_library_of_a_wheel_for_windows(site: SitePackages, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    files = {**WINDOWS, "torch_python.dll": dll(b"")}
    del files[name]
    assert parse_torch(windows(site, monkeypatch, files)).missing_libraries == (name,)


@pytest.mark.parametrize(("machine", "build"), [("arm64", "mps"), ("x86_64", "cpu")])
def test_macos(site: SitePackages, monkeypatch: pytest.MonkeyPatch, machine: str, build: str) -> None:
    site.distribution("torch", "2.9.1")
    site.torch("2.9.1")
    for name in ("libtorch_python.dylib", "libtorch_cpu.dylib", "libc10.dylib"):
        site.write(f"torch/lib/{name}")
    facts = site.collect(monkeypatch)
    facts["interpreter"].update(os="darwin", machine=machine)
    torch = parse_torch(facts)
    assert (torch.build, torch.architectures, torch.missing_libraries) == (build, (), ())


@pytest.mark.parametrize(("installer", "missing"), [("pip", ("libc10.dylib",)), ("conda", ())])
def test_conda_keeps_libraries_in_other_folders(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, installer: str, missing: tuple[str, ...]
) -> None:
    site.distribution("torch", "2.9.1", installer=installer)
    site.torch("2.9.1")
    for name in ("libtorch_python.dylib", "libtorch_cpu.dylib"):
        site.write(f"torch/lib/{name}")
    facts = site.collect(monkeypatch)
    facts["interpreter"].update(os="darwin", machine="arm64")
    assert parse_torch(facts).missing_libraries == missing


WHOLE = elf(needed=["libc10.so"], search="$ORIGIN", constants=b"\0sm_90\0", symbols=[OLD_ABI_SYMBOL])


@pytest.mark.parametrize("content", [WHOLE, dll(b"\0sm_90\0")], ids=["ELF", "DLL"])
def test_broken_binaries_end_in_unknown(tmp_path: Path, content: bytes) -> None:
    """Every length and every byte in turn: what is read out may be wrong, but nothing is raised or read without end."""
    file = tmp_path / "libtorch_python.so"
    damaged = [content[:length] for length in range(len(content))]
    damaged += [content[:at] + b"\xff" + content[at + 1 :] for at in range(len(content))]
    for text in damaged:
        file.write_bytes(text)
        assert python_environment._architectures(str(file)) in (None, "sm_90")
        python_environment._cxx11_abi(str(file))
        python_environment._unresolved([str(file)], [str(tmp_path)])


@pytest.mark.environments
def test_real_cpu_build(tmp_path: Path) -> None:
    interpreter = python_of("torch-cpu")
    torch = parse_torch(ask(interpreter, tmp_path))
    distribution = next(iter(importlib.metadata.distributions(name="torch", path=[str(site_packages_of("torch-cpu"))])))
    assert (torch.installed, str(torch.version), torch.build) == (True, distribution.version, "cpu")
    assert (torch.cuda_version, torch.architectures, torch.cxx11_abi) == (None, (), True)
    assert torch.missing_libraries == ()
    assert torch.location == str(site_packages_of("torch-cpu") / "torch")


@pytest.mark.environments
def test_real_build_with_a_missing_library(tmp_path: Path) -> None:
    torch = parse_torch(ask(python_of("torch-broken"), tmp_path))
    assert (torch.installed, torch.build, torch.missing_libraries) == (True, "cpu", ("libtorch_cpu.so",))


@pytest.mark.environments
def test_real_build_for_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONPATH that leads to the packages of another Python version."""
    python_of("torch-cpu")
    monkeypatch.setattr(sys, "path", [str(site_packages_of("torch-cpu"))])
    monkeypatch.setattr("_imp.extension_suffixes", lambda: [".cpython-399-x86_64-linux-gnu.so"])
    facts = python_environment.collect({"directory": str(tmp_path)})
    assert parse_torch(facts).missing_libraries == ("torch/_C.cpython-399-x86_64-linux-gnu.so",)


@pytest.mark.environments
def test_real_environment_without_torch(tmp_path: Path) -> None:
    assert parse_torch(ask(python_of("no-torch"), tmp_path)) == Torch(installed=False)
