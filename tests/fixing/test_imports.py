"""What a fix changes is imported, before and after: a package that no longer can be is a reason to undo."""

from __future__ import annotations

import pytest

from gpudoctor.fixing.environment import Distribution, read_inventory
from gpudoctor.fixing.imports import module_of, not_importable
from tests.fixing.beds import UV, Bed
from tests.wheels import make_wheel

CPU = ("torch==2.13.0+cpu", "torchvision==0.28.0+cpu", "tiny")
INSTALLERS = ["pip", pytest.param("uv", marks=pytest.mark.skipif(UV is None, reason="uv is not installed"))]
ABI = "undefined symbol: _ZN3c1017RegisterOperatorsD1Ev"


def broken_torchvision(bed: Bed, build: str) -> None:
    """Replace torchvision in the index by one that was built for another PyTorch."""
    wheel = bed.index / f"torchvision-0.28.0+{build}-py3-none-any.whl"
    wheel.unlink()
    files = {"torchvision/__init__.py": f"raise ImportError({ABI!r})\n", "torchvision/version.py": "__version__ = ''\n"}
    assert make_wheel(bed.index, "torchvision", f"0.28.0+{build}", files, ["torch==2.13.0"]) == wheel


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_package_that_can_no_longer_be_imported_undoes_the_fix(bed: Bed, installer: str) -> None:
    broken_torchvision(bed, "cu130")
    env = bed.environment(*CPU, installer=installer)
    before = env.state()
    done = env.fix("torch-cpu-build", "--yes")
    assert (done["status"], done["exit"]) == ("undone", 1)
    assert done["why"] == f"torchvision 0.28.0+cu130 cannot be imported: ImportError: {ABI}"
    assert env.state() == before


@pytest.mark.parametrize("installer", INSTALLERS)
def test_one_that_could_not_be_imported_before_is_named_only(bed: Bed, installer: str) -> None:
    broken_torchvision(bed, "cpu")
    broken_torchvision(bed, "cu130")
    env = bed.environment(*CPU, installer=installer)
    done = env.fix("torch-cpu-build", "--yes")
    assert (done["status"], done["exit"]) == ("fixed", 0)
    assert f"torchvision cannot be imported, before the change and after it: ImportError: {ABI}" in done["said"]


def test_what_needs_a_changed_package_is_imported_too(bed: Bed) -> None:
    make_wheel(bed.index, "ops-for-torch", "1", {"ops_for_torch.py": "import torch\nimport gone\n"}, ["torch"])
    env = bed.environment(*CPU, "ops-for-torch")
    found = not_importable(read_inventory(env.python), {"torch"}, bed.variables)
    assert found == {"ops-for-torch": "ModuleNotFoundError: No module named 'gone'"}
    assert not_importable(read_inventory(env.python), {"numpy"}, bed.variables) == {}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        pytest.param("import sys; sys.exit(3)\n", "its import ends with exit status 3", id="ends the program"),
        pytest.param("import os; os.abort()\n", "its import ends with exit status -6", id="a crash"),
        pytest.param("import sys; sys.exit(0)\n", None, id="ends without an error"),
        pytest.param("import time; time.sleep(60)\n", "it was not imported within 120 s", id="too long"),
        pytest.param("raise ImportError('of two\\nlines')\n", "ImportError: of two", id="an error of two lines"),
        pytest.param(
            "import subprocess; subprocess.Popen(['sleep', '60'])\n", None, id="leaves a process that keeps the pipes"
        ),
    ],
)
def test_an_import_that_ends_otherwise(bed: Bed, monkeypatch: pytest.MonkeyPatch, code: str, why: str | None) -> None:
    monkeypatch.setattr("gpudoctor.fixing.imports.SECONDS", 2.0 if "time.sleep" in code else 30.0)
    make_wheel(bed.index, "odd", "1", {"odd/__init__.py": code})
    env = bed.environment("odd")
    assert not_importable(read_inventory(env.python), {"odd"}, bed.variables).get("odd") == why


def test_a_module_whose_compiled_file_a_full_disk_has_cut_short(bed: Bed) -> None:
    env = bed.environment("tiny")
    bed.run(env.python, "-m", "compileall", "-q", str(env.packages / "tiny"))
    compiled = next((env.packages / "tiny" / "__pycache__").iterdir())
    compiled.write_bytes(compiled.read_bytes()[:20])
    found = not_importable(read_inventory(env.python), {"tiny"}, bed.variables)
    assert found["tiny"].startswith("a full disk has cut a compiled file short: make room")


@pytest.mark.parametrize(
    ("name", "files", "module"),
    [
        ("torch", ("functorch/__init__.py", "torch/__init__.py", "torchgen/__init__.py"), "torch"),
        ("cupy-cuda12x", ("cupy/__init__.py", "cupyx/__init__.py", "cupy_backends/__init__.py"), "cupy"),
        ("pillow", ("PIL/__init__.py", "PIL/Image.py", "pillow-12.0.dist-info/METADATA"), "PIL"),
        ("typing-extensions", ("typing_extensions.py",), "typing_extensions"),
        ("nvidia-cublas", ("nvidia/cublas/lib/libcublas.so.13",), ""),
        ("nvidia-ml-py", ("example.py", "pynvml.py"), ""),
        ("mine", ("__editable___mine_finder.py", "mine.pth"), ""),
    ],
)
def test_the_module_of_a_distribution(name: str, files: tuple[str, ...], module: str) -> None:
    distribution = Distribution(
        name=name, version="1", requires=(), info="", files=files, installer="pip", direct_url="", own=True
    )
    assert module_of(distribution) == module


def test_an_editable_extension_that_fits_only_the_old_pytorch(bed: Bed) -> None:
    source = bed.folder / "source" / "my_ops"
    source.mkdir(parents=True)
    built_for = f"import torch.version\nif torch.version.__version__ != '2.13.0+cpu':\n    raise ImportError({ABI!r})\n"
    (source / "__init__.py").write_text(built_for)
    env = bed.environment(*CPU)
    for name in ("my-ops", "named-otherwise"):  # the module of the second has another name
        info = env.packages / f"{name.replace('-', '_')}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\nRequires-Dist: torch\n")
        (info / "direct_url.json").write_text('{"url": "file:///source", "dir_info": {"editable": true}}')
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n")
    (env.packages / "my_ops.pth").write_text(f"{source.parent}\n")
    before = env.state()
    done = env.fix("torch-cpu-build", "--yes")
    assert (done["status"], done["exit"]) == ("undone", 1)
    assert done["why"] == f"my-ops 1 cannot be imported: ImportError: {ABI}"
    assert "named-otherwise" not in done["said"]
    assert env.state() == before
