"""The files of the project in the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.model import Project, Requirement
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.project import MOST_FILES, parse_project
from gpudoctor.probes.workers import read_host
from tests.probes.asked import asked


def read(folder: Path) -> Project:
    question = asked("project", ProbeContext(environ={}, directory=folder))
    assert (question.name, question.worker) == ("project", "read_host")
    return parse_project(read_host.collect(question.arguments))


def test_empty_folder(tmp_path: Path) -> None:
    assert read(tmp_path) == Project(requirements=())


def test_all_kinds_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "project [1]"
    (folder / "requirements").mkdir(parents=True)
    (folder / "environment.yaml").write_text("dependencies:\n  - pytorch=2.1\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["numpy"]\n', encoding="utf-8")
    (folder / "requirements-dev.txt").write_text("pytest\n", encoding="utf-8")
    (folder / "requirements/gpu.txt").write_text("cupy-cuda12x>=13\n", encoding="utf-8")
    (folder / "setup.cfg").write_text("[options]\ninstall_requires = torch\n", encoding="utf-8")
    (folder / "notes.txt").write_text("scipy\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("of-the-folder-above\n", encoding="utf-8")
    assert set(read(folder).requirements or ()) == {
        Requirement(name="torch", specifier="==2.1.*", source="environment.yaml line 2"),
        Requirement(name="numpy", source="pyproject.toml dependencies"),
        Requirement(name="pytest", source="requirements-dev.txt line 1"),
        Requirement(name="cupy-cuda12x", specifier=">=13", source="requirements/gpu.txt line 1"),
        Requirement(name="torch", source="setup.cfg install_requires"),
    }


def test_markers_are_those_of_the_machine() -> None:
    text = (
        "triton; sys_platform == 'linux'\ntriton-windows; sys_platform == 'win32'\nx; platform_machine == 'riscv64'\n"
    )
    values = {"platform": {"value": "win32"}, "uname": {"value": {"machine": "riscv64"}}}
    project = parse_project({"files": {"/p/requirements.txt": {"text": text}}, "values": values})
    assert [requirement.name for requirement in project.requirements or ()] == ["triton-windows", "x"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("requirements.txt", b"\xff\xfe%%%\x00\n"),
        ("pyproject.toml", b"[project\n"),
        ("setup.cfg", b"torch\n"),
        ("environment.yml", b"- - -\n"),
    ],
)
def test_a_broken_file_is_passed_over(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "requirements-good.txt").write_text("torch\n", encoding="utf-8")
    assert read(tmp_path).requirements == (Requirement(name="torch", source="requirements-good.txt line 1"),)


def test_number_of_files_is_bounded(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 5):
        (tmp_path / f"requirements-{number:03}.txt").write_text(f"package-{number}\n", encoding="utf-8")
    assert len(read(tmp_path).requirements or ()) == MOST_FILES


def test_a_requirement_named_twice_is_given_with_both_places() -> None:
    files = {"/p/requirements.txt": {"text": "torch\ntorch\n"}, "/p/setup.py": {"error": "ENOENT"}}
    assert [found.source for found in parse_project({"files": files}).requirements or ()] == [
        "requirements.txt line 1",
        "requirements.txt line 2",
    ]
