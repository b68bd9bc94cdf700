"""Real virtual environments for tests: built on first use into `.cache/environments`, kept there for later runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "environments"
BUILD_SECONDS = 1800
TORCH = "torch==2.13.0+cpu"
TORCH_INDEX = ("--index-url", "https://download.pytorch.org/whl/cpu")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an environment is made.

    steps: arguments of `pip install`, one call each.
    fallback: further arguments for a second try: an index that only needs to be asked where the first try fails.
    copy_of: environment whose packages are hard-linked first.
    remove: files taken away at the end, relative to site-packages.
    """

    steps: tuple[tuple[str, ...], ...] = ()
    fallback: tuple[str, ...] = ()
    copy_of: str = ""
    remove: tuple[str, ...] = ()


RECIPES = {
    "no-torch": Recipe(),
    "torch-cpu": Recipe(steps=((TORCH, "numpy"),), fallback=TORCH_INDEX),
    "torch-broken": Recipe(copy_of="torch-cpu", remove=("torch/lib/libtorch_cpu.so",)),
    "cupy-twice": Recipe(steps=(("--no-deps", "cupy-cuda12x==14.2.0", "cupy-cuda13x==14.2.0"), ("numpy==2.4.6",))),
    "pynvml-twice": Recipe(steps=(("--no-deps", "pynvml==11.5.3", "nvidia-ml-py==13.580.82"),)),
}


def python_of(name: str) -> Path:
    """Return the interpreter of the environment `name`, one of RECIPES. Skips the test where it cannot be built."""
    reason = _build(name)
    if reason:
        pytest.skip(reason)
    return _python(name)


def site_packages_of(name: str) -> Path:
    """Return the folder site-packages of the environment `name`, built by `python_of` before."""
    return next((CACHE / name / "lib").glob("python*/site-packages"))


def _python(name: str) -> Path:
    return CACHE / name / "bin" / "python"


@cache
def _build(name: str) -> str:
    """Build the environment unless it is there. Return why that is not possible, "" for success."""
    if os.name != "posix":
        return "test environments are built on POSIX systems only"
    recipe = RECIPES[name]
    reason = _build(recipe.copy_of) if recipe.copy_of else ""
    if reason:
        return reason
    with _locked(name):
        done = CACHE / name / "complete.json"
        wanted = json.dumps([sys.version, asdict(recipe)])
        if done.is_file() and done.read_text() == wanted:
            return ""
        shutil.rmtree(CACHE / name, ignore_errors=True)
        reason = _make(name, recipe)
        if not reason:
            done.write_text(wanted)
        return reason


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold the lock of one environment, so that test runs side by side build it once."""
    import fcntl

    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(name: str, recipe: Recipe) -> str:
    reason = _run([sys.executable, "-m", "venv", "--without-pip", str(CACHE / name)])
    if recipe.copy_of and not reason:
        source, target = site_packages_of(recipe.copy_of), site_packages_of(name)
        shutil.copytree(source, target, copy_function=os.link, dirs_exist_ok=True)
    for step in recipe.steps:
        reason = reason or _install(name, step, recipe.fallback)
    for file in () if reason else recipe.remove:
        (site_packages_of(name) / file).unlink()
    return f"the environment {name} cannot be built: {reason}" if reason else ""


def _install(name: str, step: tuple[str, ...], fallback: tuple[str, ...]) -> str:
    pip = [sys.executable, "-m", "pip", "--python", str(_python(name)), "--quiet", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-compile"]
    reason = _run([*install, *step])
    return _run([*install, *fallback, *step]) if reason and fallback else reason


def _run(command: list[str]) -> str:
    """Run the command. Return the last line that it wrote where it failed, "" for success."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return (lines[-1] if lines else f"exit status {done.returncode}") if done.returncode else ""
