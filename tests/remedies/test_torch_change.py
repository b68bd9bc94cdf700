"""The command advised changes the installation: over 2.13.0+cpu, "torch==2.13.0" would change nothing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from gpudoctor.model import Driver, DriverVersion, PackageVersion, Python, System, Torch
from gpudoctor.remedies.torch_install import install_torch

CPU_ONLY = "2.13.0+cpu"
REMEDY = install_torch(
    python=Python(version=PackageVersion("3.12.3"), executable="python"),
    system=System(os="linux", machine="x86_64"),
    driver=Driver(version=DriverVersion.parse("580.65.06")),
    devices=None,
    pytorch=Torch(version=PackageVersion(CPU_ONLY), build="cpu"),
)
ADVISED = REMEDY.commands[0].rpartition(" ")[2]


def test_by_the_rules_of_version_specifiers() -> None:
    assert SpecifierSet("==2.13.0").contains(CPU_ONLY)
    advised = SpecifierSet(ADVISED.removeprefix("torch"))
    assert not advised.contains(CPU_ONLY)
    assert not advised.contains("2.13.0")  # the metadata of the wheel on PyPI, whatever its build
    assert advised.contains("2.13.0+cu130")


@pytest.mark.parametrize(
    ("requirement", "answer"),
    [("torch==2.13.0", "Requirement already satisfied"), (ADVISED, "Would install torch-2.13.0+cu130")],
    ids=["without the local version", "as advised"],
)
def test_by_pip_itself(tmp_path: Path, requirement: str, answer: str) -> None:
    index, site = tmp_path / "index", tmp_path / "site"
    write_wheel(index, "2.13.0+cu130")
    write_installed(site, CPU_ONLY)
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--find-links", str(index)]
    done = subprocess.run(
        [*command, "--disable-pip-version-check", requirement],
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "No module named pip" in done.stderr:
        pytest.skip("this environment has no pip")
    assert answer in done.stdout, done.stdout + done.stderr


def metadata(version: str) -> str:
    return f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"


def write_installed(site: Path, version: str) -> None:
    folder = site / f"torch-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(metadata(version))
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text("")


def write_wheel(index: Path, version: str) -> None:
    index.mkdir()
    folder = f"torch-{version}.dist-info"
    with zipfile.ZipFile(index / f"torch-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{folder}/METADATA", metadata(version))
        wheel.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{folder}/RECORD", "")
