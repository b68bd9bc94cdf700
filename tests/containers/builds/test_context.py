"""The files that a build may take, and links among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.builds import context
from gpudoctor.containers.builds.context import BuildContext


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "real/sub/a.py").write_text("a")
    for name, target in {
        "link": "real",
        "absolute": "/real/sub",
        "real/up": "../other",
        "other": "real/sub",
        "out": "../../real",
        "broken": "gone",
    }.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("real/sub/a.py", "real/sub/a.py"),
        ("link/sub/a.py", "real/sub/a.py"),
        ("absolute/a.py", "real/sub/a.py"),
        ("real/up/a.py", "real/sub/a.py"),
        ("link/up/a.py", "real/sub/a.py"),
        ("out/sub/a.py", "real/sub/a.py"),
        ("broken/a.py", "gone/a.py"),
        ("none/a.py", "none/a.py"),
        ("link", "real"),
    ],
)
def test_links_are_followed_as_if_the_context_were_the_whole_disk(path: str, resolved: str, root: Path) -> None:
    assert BuildContext(root).resolve(path) == resolved


@pytest.mark.parametrize(("most", "resolved"), [(3, "real/a.py"), (2, "real/link0/a.py")])
def test_so_many_links_are_followed(most: int, resolved: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the path is: only links count."""
    for number, target in enumerate(("../real", "link0", "link1")):
        (root / f"real/link{number}").symlink_to(target)
    (root / "real/a.py").write_text("a")
    monkeypatch.setattr(context, "MAXIMUM_LINKS", most)
    assert BuildContext(root).resolve("real/./sub/../link2/a.py") == resolved


def test_the_names_in_a_folder(root: Path) -> None:
    assert BuildContext(root).names("real/sub") == ["a.py"]
    assert BuildContext(root).names("real/sub/a.py") == []
    assert BuildContext(root).names("gone") == []
