"""Where an image keeps its packages, and which of them a program would import: on files that are only described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpudoctor.containers.packages.installed import find_torch, package_paths, packages_of
from gpudoctor.model import CudaVersion, PackageVersion, Torch
from tests.containers.described_files import Described


def image(*folders: str, **config: Any) -> tuple[Described, Mapping[str, Any]]:
    return Described({f"{folder}/x.py": "" for folder in folders}), config


@pytest.mark.parametrize(
    ("folders", "config"),
    [
        (("/usr/local/lib/python3.11/site-packages",), {}),
        (("/opt/conda/lib/python3.8/site-packages",), {}),
        (("/opt/venv/lib/python3.15/site-packages",), {}),
        (("/venv/lib/python3.12/site-packages",), {}),
        (("/app/.venv/lib/python3.12/site-packages",), {}),
        (("/root/.venv/lib/python3.12/site-packages",), {}),
        (("/usr/lib/python3.9/site-packages",), {}),
        (("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages", "/usr/lib/x"), {}),
        (("/srv/.venv/lib/python3.12/site-packages",), {"WorkingDir": "/srv/"}),
        (("/.venv/lib/python3.12/site-packages",), {}),
        (("/a/lib/python3.12/site-packages",), {"Cmd": ["/a/bin/python", "x.py"]}),
        (("/a/lib/python3.12/site-packages",), {"Env": ["VIRTUAL_ENV=/a/"]}),
        (("/a/lib/python3.12/site-packages",), {"Env": ["CONDA_PREFIX=/a"]}),
        (("/a/lib/python3.12/site-packages",), {"Env": ["CONDA_DIR=/a"]}),
        (("/a/lib/python3.12/site-packages",), {"Env": ["PATH=/bin:/a/bin"]}),
        (("/a",), {"Env": ["PYTHONPATH=b:/a/:/missing"]}),
        (("/root/.local/lib/python3.11/site-packages", "/usr/local/lib/x"), {}),
        (("/root/.local/lib/python3.11/site-packages", "/usr/lib/x"), {}),
        (("/home/ann/.local/lib/python3.11/site-packages", "/usr/lib/x"), {"User": "ann"}),
        (("/home/ann/.local/lib/python3.11/site-packages", "/usr/lib/x"), {"User": "ann:users"}),
        (("/a/.local/lib/python3.11/site-packages", "/usr/lib/x"), {"User": "ann", "Env": ["HOME=/a/"]}),
    ],
)
def test_where_packages_are(folders: tuple[str, ...], config: dict[str, Any]) -> None:
    files, config_ = image(*folders, **config)
    assert package_paths(files, config_) == tuple(
        folder for folder in folders if "packages" in folder or folder == "/a"
    )


@pytest.mark.parametrize(
    ("folders", "config"),
    [
        (("/usr/local/lib/python3.7/site-packages",), {}),
        (("/usr/local/lib/python3.16/site-packages",), {}),
        (("/root/.local/lib/python3.11/site-packages", "/opt/venv/lib/x"), {}),
        (("/root/.local/lib/python3.11/site-packages", "/usr/lib/x"), {"User": "ann"}),
        (("/elsewhere/lib/python3.11/site-packages",), {"Cmd": ["python", "x.py"], "Env": ["PATH=/bin:/elsewhere"]}),
    ],
)
def test_where_no_python_looks(folders: tuple[str, ...], config: dict[str, Any]) -> None:
    assert package_paths(*image(*folders, **config)) == ()


@pytest.mark.parametrize("user", ["1000", "ann"])
def test_the_home_of_a_user_is_that_of_passwd(user: str) -> None:
    place = "/data/ann/.local/lib/python3.11/site-packages"
    passwd = (
        "root:x:0:0:root:/root:/bin/sh\nshort:x\nann:x:1000:1001:Ann:/without/shell\n"
        "ann:x:1000:1001:Ann:/data/ann/:/bin/sh\n"
    )
    files = Described({f"{place}/x.py": "", "/usr/local/lib/x": "", "/etc/passwd": passwd})
    assert package_paths(files, {"User": user}) == (place,)
    assert package_paths(files, {"User": "1001"}) == ()


@pytest.mark.parametrize(
    ("config", "home"),
    [
        ({}, "/root"),
        ({"User": "root:root"}, "/root"),
        ({"User": "0"}, "/root"),
        ({"User": "ann"}, "/home/ann"),
        ({"User": "ann", "Env": ["HOME=/data/"]}, "/data"),
        ({"User": "ann", "Env": ["HOME=data"]}, "/home/ann"),
    ],
)
def test_the_home_of_a_user_without_passwd(config: dict[str, Any], home: str) -> None:
    place = f"{home}/.local/lib/python3.11/site-packages"
    assert package_paths(Described({f"{place}/x.py": "", "/usr/local/lib/x": ""}), config) == (place,)


def test_the_folders_in_the_order_of_the_interpreter() -> None:
    folders = [
        "/path", "/a/lib/python3.11/site-packages", "/v/lib/python3.11/site-packages",
        "/usr/local/lib/python3.11/site-packages", "/root/.local/lib/python3.11/site-packages",
        "/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages",
        "/usr/lib/python3.11/site-packages",
    ]  # fmt: skip
    files, _ = image(*folders)
    config = {"Cmd": ["/a/bin/python"], "Env": ["PYTHONPATH=/path", "VIRTUAL_ENV=/v"]}
    home = folders.pop(4)
    assert package_paths(files, config) == (*folders[:3], home, *folders[3:])


def test_the_version_that_a_link_or_a_variable_shows() -> None:
    folders = ("/usr/local/lib/python3.11/site-packages", "/usr/local/lib/python3.12/site-packages")
    files, _ = image(*folders)
    assert package_paths(files, {}) == tuple(reversed(folders))
    assert package_paths(files, {"Env": ["PYTHON_VERSION=3.11.4"]}) == folders[:1]
    linked = Described({f"{folder}/x": "" for folder in folders}, {"/usr/local/bin/python3": "python3.12"})
    assert package_paths(linked, {"Env": ["PYTHON_VERSION=3.11.4"]}) == folders[1:]


SITE = "/usr/local/lib/python3.11/site-packages"
VERSION_FILE = "__version__ = '2.4.1+cu121'\ndebug = False\ncuda = '12.1'\nhip = None\n"
METADATA = {f"{SITE}/torch-2.3.0+cpu.dist-info/METADATA": "", f"{SITE}/torchvision-0.18.0.dist-info/METADATA": ""}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {f"{SITE}/torch/version.py": VERSION_FILE, **METADATA},
            Torch(
                installed=True,
                version=PackageVersion("2.4.1+cu121"),
                build="cuda",
                cuda_version=CudaVersion(12, 1),
                location=f"{SITE}/torch",
            ),
        ),
        (METADATA, Torch(installed=True, version=PackageVersion("2.3.0+cpu"), build="cpu", location=SITE)),
        ({f"{SITE}/torchvision-0.18.0.dist-info/METADATA": ""}, None),
    ],
)
def test_pytorch(files: dict[str, str], expected: Torch | None) -> None:
    assert find_torch(Described(files), {}) == expected


def test_packages_by_their_metadata() -> None:
    metadata = "Name: Demo_App\nRequires-Dist: torch>=2\nRequires-Dist: x; extra == 'gpu'\n\nRequires-Dist: not this\n"
    files = {f"{SITE}/Demo_App-1.2.dist-info/METADATA": metadata, f"{SITE}/old-0.1-py3.11.egg-info/PKG-INFO": ""}
    packages = packages_of(Described(files), {})
    assert (packages.python_version, packages.is_whole, packages.find("missing")) == ("3.11", True, None)
    found, old = packages.find("demo-app"), packages.find("old")
    assert found is not None
    assert old is not None
    assert (found.version, old.version) == ("1.2", "0.1")
    assert list(packages.required_by(found)) == ["torch>=2", "x; extra == 'gpu'"]
    assert list(packages.required_by(old)) == []


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("demo_app-2.0.dist-info/METADATA", "", "2.0"),
        ("demo-app-2.0.dist-info/METADATA", "", "2.0"),
        ("Demo_app-2.0.dist-info/METADATA", "", "2.0"),
        ("demo.app-2.0.dist-info/METADATA", "", "2.0"),
        ("demo_app/version.py", "VERSION = '1.5'\n", "1.5"),
        ("demo_app/_version.py", "version: str = '1.5'\n", "1.5"),
        ("demo_app/__version__.py", '__version__ = "1.5"\n', "1.5"),
        ("demo_app/__init__.py", "import x\n__version__='1.5'\n", "1.5"),
        ("demo_app/__init__.py", "import x\n", None),
        ("demo_app-1.9.dist-info/METADATA", "", None),
    ],
)
def test_a_package_of_a_folder_that_is_too_large_to_be_listed(file: str, text: str, version: str | None) -> None:
    packages = packages_of(Described({f"{SITE}/{file}": text}, large=(SITE,)), {})
    found = packages.find("demo-app", "2.0")
    assert (found.version if found else None) == version
    assert not packages.is_whole


def test_an_image_without_packages_is_not_known_whole() -> None:
    packages = packages_of(Described({}), {})
    assert (packages.folders, packages.is_whole, packages.python_version) == ((), False, "")
