"""CuPy on disk: its distributions, what they are for, and what they ask of NumPy."""

from pathlib import Path

import pytest

from gpudoctor.model import Cupy, PackageVersion
from gpudoctor.probes.cupy_build import parse_cupy
from tests.environments import python_of
from tests.probes.test_python_environment import ask
from tests.site_packages import SitePackages


@pytest.fixture
def site(tmp_path: Path) -> SitePackages:
    return SitePackages(tmp_path / "environment")


def install(site: SitePackages, name: str, version: str, wheel: str = "", installer: str = "pip") -> None:
    requires = ["numpy<2.6,>=2.0", 'numpy>=9; extra == "all"']
    site.distribution(name, version, requires=requires, installer=installer)
    site.write("cupy/__init__.py", "raise RuntimeError('nobody imports this')\n")
    site.write("cupy/_version.py", f"from __future__ import annotations\n\n__version__ = '{version}'\n")
    if wheel:
        site.write("cupy/.data/_wheel.json", f'{{"cuda": "{wheel}", "packaging": "pip"}}')


def names(cupy: Cupy) -> list[str]:
    return [package.name for package in cupy.distributions or ()]


def test_no_cupy(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("cupy-xarray", "0.1.4")
    assert parse_cupy(site.collect(monkeypatch)) == Cupy(distributions=(), nvrtc_files=())


@pytest.mark.parametrize(
    ("name", "platform", "cuda_major"),
    [
        ("cupy-cuda12x", "cuda", 12),
        ("cupy-cuda13x", "cuda", 13),
        ("cupy-cuda115", "cuda", 11),
        ("cupy-cuda92", "cuda", 9),
        ("cupy-rocm-7-0", "rocm", None),
        ("amd-cupy", "rocm", None),
        ("cupy", "source", None),
    ],
)
def test_platform(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, name: str, platform: str, cuda_major: int | None
) -> None:
    install(site, name, "14.2.0")
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (names(cupy), cupy.platform, cupy.cuda_major) == ([name], platform, cuda_major)
    assert cupy.version == PackageVersion("14.2.0")


def test_numpy(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "cupy-cuda12x", "14.2.0")
    site.distribution("numpy", "1.26.4")
    site.distribution("numpydoc", "1.8.0")
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (cupy.numpy_version, cupy.numpy_requirement) == (PackageVersion("1.26.4"), ">=2.0,<2.6")


def test_the_older_form_of_a_requirement(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("cupy-cuda11x", "12.0.0", requires=["fastrlock (>=0.5)", "numpy (<1.27,>=1.20)"])
    assert parse_cupy(site.collect(monkeypatch)).numpy_requirement == ">=1.20,<1.27"


@pytest.mark.parametrize(("wheel", "cuda_major"), [("12.x", 12), ("13.x", 13)])
def test_twins(site: SitePackages, monkeypatch: pytest.MonkeyPatch, wheel: str, cuda_major: int) -> None:
    """The one installed last overwrote the other's files, and the wheel's own file says which that was."""
    install(site, "cupy-cuda12x", "14.2.0", wheel)
    install(site, "cupy-cuda13x", "14.2.0", wheel)
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (names(cupy), cupy.cuda_major) == (["cupy-cuda12x", "cupy-cuda13x"], cuda_major)


@pytest.mark.parametrize("wheel", ["", "unknown", '"}, [', "11.x"])
def test_twins_that_cannot_be_distinguished(site: SitePackages, monkeypatch: pytest.MonkeyPatch, wheel: str) -> None:
    install(site, "cupy-cuda12x", "14.2.0", wheel)
    install(site, "cupy-cuda13x", "14.2.0", wheel)
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (len(names(cupy)), cupy.platform, cupy.cuda_major) == (2, None, None)


@pytest.mark.parametrize("installer", ["conda", ""])
@pytest.mark.parametrize(
    ("records", "cuda_major"),
    [
        (["cupy-14.2.0-py312h_0", "cupy-core-14.2.0-py312h_0", "cuda-version-12.9-h_3"], 12),
        (["cupy-14.2.0-py_0"], None),
        (["cupy-core-14.2.0-py312h_0", "cuda-version-13.0-h_3"], 13),
    ],
)
def test_conda(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, records: list[str], cuda_major: int | None, installer: str
) -> None:
    """conda's distribution is named like a build from source, and its two packages are one CuPy."""
    install(site, "cupy", "14.2.0", installer=installer)
    site.conda(*records)
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (names(cupy), cupy.platform, cupy.cuda_major) == (["cupy"], "cuda", cuda_major)


@pytest.mark.parametrize(("installer", "records"), [("pip", ["cupy-core-14.2.0-py312h_0"]), ("", [])])
def test_a_build_from_source_next_to_conda(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, installer: str, records: list[str]
) -> None:
    install(site, "cupy", "14.2.0", installer=installer)
    site.conda("python-3.12.4-h1_0_cpython", *records)
    assert parse_cupy(site.collect(monkeypatch)).platform == "source"


def test_sources_on_the_path(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write("cupy/__init__.py")
    site.write("cupy/_version.py", "__version__ = '15.0.0a1'\n")
    cupy = parse_cupy(site.collect(monkeypatch))
    assert (names(cupy), str(cupy.version), cupy.platform) == (["cupy"], "15.0.0a1", "source")


def test_nvrtc_files(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (
        "cuda_nvrtc/lib/libnvrtc.so.12",
        "cuda_nvrtc/lib/libnvrtc-builtins.so.12.8",
        "cu13/lib/libnvrtc.so.13",
        "cu13/lib/libnvrtc.alt.so.13",
        "cuda_nvrtc/bin/nvrtc64_120_0.dll",
        "cu13/bin/x86_64/nvrtc64_130_0.dll",
        "cudnn/lib/libcudnn.so.9",
    ):
        site.write(f"nvidia/{file}")
    files = parse_cupy(site.collect(monkeypatch)).nvrtc_files or ()
    assert sorted(Path(file).relative_to(site.folder / "nvidia").as_posix() for file in files) == [
        "cu13/bin/x86_64/nvrtc64_130_0.dll",
        "cu13/lib/libnvrtc.so.13",
        "cuda_nvrtc/bin/nvrtc64_120_0.dll",
        "cuda_nvrtc/lib/libnvrtc.so.12",
    ]


@pytest.mark.environments
def test_real_twins(tmp_path: Path) -> None:
    interpreter = python_of("cupy-twice")
    cupy = parse_cupy(ask(interpreter, tmp_path))
    assert names(cupy) == ["cupy-cuda12x", "cupy-cuda13x"]
    assert (str(cupy.version), cupy.platform, str(cupy.numpy_version)) == ("14.2.0", "cuda", "2.4.6")
    assert cupy.cuda_major in (12, 13)  # the order in which pip installs them is pip's
    assert (cupy.numpy_requirement, cupy.nvrtc_files) == (">=2.0,<2.6", ())


@pytest.mark.environments
def test_real_environment_without_cupy(tmp_path: Path) -> None:
    assert parse_cupy(ask(python_of("no-torch"), tmp_path)) == Cupy(distributions=(), nvrtc_files=())
