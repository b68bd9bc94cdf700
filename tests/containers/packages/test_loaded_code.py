"""Mounted source files that a process can have read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.packages import loaded_code as module
from gpudoctor.containers.packages.loaded_code import loaded_code

TREE = {
    "train.py": "import os\nfrom app import model\nimport app.data.images as images\n",
    "evaluate.py": "import app.metrics\n",
    "plugins.py": "import importlib\nimportlib.import_module(NAME)\n",
    "broken.py": "def (\n",
    "app/__init__.py": "",
    "app/__main__.py": "from . import metrics\n",
    "app/model.py": "from .layers import Layer\n\ndef load():\n    from app import later\n",
    "app/layers.py": "from ..elsewhere import x\n",
    "app/later.py": "import app.model\n",
    "app/metrics.py": "",
    "app/data/__init__.py": "",
    "app/data/images.py": "",
    "app/data/other.py": "",
    "lib/shared.py": "",
}
OF_TRAIN = {
    "train.py",
    "app/__init__.py",
    "app/model.py",
    "app/layers.py",
    "app/later.py",
    "app/data/__init__.py",
    "app/data/images.py",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for path, text in TREE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def read(source: Path, command: str, environment: dict[str, str] | None = None) -> set[str] | None:
    found = loaded_code(command.split(), "/work", environment or {}, [("/work", str(source))])
    return None if found is None else {str(Path(path).relative_to(source)) for path in found}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("python train.py --epochs 3", OF_TRAIN, id="a script"),
        pytest.param("torchrun --nproc_per_node 2 /work/train.py", OF_TRAIN, id="a launcher"),
        pytest.param("python3 -m app", {"app/__init__.py", "app/__main__.py", "app/metrics.py"}, id="a package"),
        pytest.param(
            "python -m app.data.images",
            {"app/__init__.py", "app/data/__init__.py", "app/data/images.py"},
            id="a module",
        ),
        pytest.param("python plugins.py", None, id="imports by a name that it makes"),
        pytest.param("python broken.py", None, id="no Python"),
        pytest.param("python gone.py", None, id="not there"),
        pytest.param("python /srv/train.py", None, id="not mounted"),
        pytest.param("sleep 1000", None, id="another program"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_loaded_code(source: Path, command: str, expected: set[str] | None) -> None:
    assert read(source, command) == expected


@pytest.mark.parametrize(
    "call",
    [
        *("__import__(x)", "importlib.import_module(x)", "pkgutil.iter_modules()", "pkgutil.walk_packages()"),
        *("importlib.util.spec_from_file_location(x)", "runpy.run_path(x)", "exec(x)"),
    ],
)
def test_what_may_load_any_file(source: Path, call: str) -> None:
    (source / "evaluate.py").write_text(f"x = 1\n{call}\n")
    assert read(source, "python evaluate.py") is None


def test_pythonpath(source: Path) -> None:
    (source / "evaluate.py").write_text("import shared\n")
    expected = {"evaluate.py", "lib/shared.py"}
    assert read(source, "python evaluate.py", {"PYTHONPATH": "lib:/other"}) == expected
    assert read(source, "python evaluate.py") == {"evaluate.py"}


def test_the_inner_of_two_mounts_counts(source: Path) -> None:
    mounts = [("/work", str(source)), ("/work/app", str(source / "lib"))]
    found = loaded_code(["python", "train.py"], "/work", {}, mounts)
    assert found == frozenset([str(source / "train.py")])


@pytest.mark.parametrize("error", [OSError, ValueError, SyntaxError, RecursionError, MemoryError])
def test_a_file_that_cannot_be_read_leaves_all_unknown(
    source: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise error

    monkeypatch.setattr(module, "read_bounded", fail)
    assert read(source, "python evaluate.py") is None
