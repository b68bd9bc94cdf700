"""What a build of the subject would do: also with what only a compose file can say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gpudoctor.containers.requested import Subject


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path in ("project/a.py", "shared/b.py", "shared/c.log"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "shared" / ".dockerignore").write_text("*.log\n")
    return tmp_path / "project"


def copied(project: Path, dockerfile: str, others: Mapping[str, Path] | None = None) -> dict[str, str]:
    """Return path in the image → path from the context, for a Dockerfile inside a compose file."""
    subject = Subject(
        dockerfile=project / "compose.yaml",
        context=project,
        build_arguments={},
        dockerfile_inline=dockerfile,
        other_contexts=others or {},
    )
    plan = subject.plan()
    for item in plan.copies:
        for one in item.selection.placed:
            assert plan.context.entry(one.file.path), "the context finds it there"
    return {one.image_path: one.file.path for item in plan.copies for one in item.selection.placed}


def test_a_dockerfile_inside_the_compose_file(project: Path) -> None:
    assert copied(project, "FROM scratch\nCOPY a.py /app/\n") == {"/app/a.py": "a.py"}


@pytest.mark.parametrize(
    "stage", ["", "FROM scratch AS more\nCOPY a.py /b.py\n"], ids=["a new name", "that of a stage"]
)
def test_a_folder_that_the_build_has_a_name_for(project: Path, stage: str) -> None:
    others = {"more": project.parent / "shared"}
    found = copied(project, f"{stage}FROM scratch\nCOPY --from=more . /app/\n", others)
    assert found == {"/app/.dockerignore": "../shared/.dockerignore", "/app/b.py": "../shared/b.py"}


def test_the_folder_may_be_reached_through_links(project: Path) -> None:
    link = project.parent / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(project)
    assert copied(link, "FROM scratch\nCOPY --from=more b.py /\n", {"more": project.parent / "shared"}) == {
        "/b.py": "../shared/b.py"
    }
