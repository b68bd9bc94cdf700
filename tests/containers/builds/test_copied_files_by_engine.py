"""What a real engine copies for the cases of copy_cases.py, by both builders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.copy_cases import CASES, LINKS, Case, write_context
from tests.containers.engine import BUILDERS, docker, files_of, image

pytestmark = pytest.mark.engine

__all__ = ["image"]

PARAMETERS = [
    pytest.param(case, builder, id=f"{name}, {builder}")
    for name, case in CASES.items()
    for builder in BUILDERS
    if builder in case.builders
]


@pytest.mark.parametrize(("case", "builder"), PARAMETERS)
def test_where_files_end(case: Case, builder: str, tmp_path: Path, image: str) -> None:
    context = tmp_path / "context"
    context.mkdir()
    write_context(context, case.ignore)
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(f"FROM scratch\n{case.before}\n{case.line}\n")
    docker("build", "-q", "-t", image, "-f", str(dockerfile), str(context), builder=builder)
    links = {path: LINKS.get(source, "") for path, source in case.files.items()}
    assert {path: member.linkname for path, member in files_of(image).items()} == links
