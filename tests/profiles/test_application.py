"""A program takes the profile up. What PyTorch does with it is asked of the real one."""

import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import gpudoctor
from gpudoctor.errors import UsageError
from gpudoctor.model.profile import Profile
from gpudoctor.profiles import application
from gpudoctor.profiles.application import LoadedProfile
from gpudoctor.profiles.env_file import write_profile
from gpudoctor.tuning.workers.precision import TorchPrecision
from tests.environments import python_of
from tests.profiles.samples import LEAST, PROFILE

ROOT = Path(__file__).parents[2]


def run_with_torch(profile: Profile, program: str, folder: Path) -> str:
    """Return what `program` prints under the real PyTorch, with the profile in its working directory."""
    write_profile(folder / "gpudoctor.env", profile)
    python = python_of("torch-cpu")
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import gpudoctor\n"
    arguments = [str(python), "-W", "error", "-c", start + program]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_profile(Path("gpudoctor.env"), PROFILE)
    profile = gpudoctor.load_profile()
    assert (profile.batch_size, profile.max_batch_size, profile.precision, profile.device) == (
        256,
        900,
        "bf16",
        "cuda:0",
    )
    assert profile.profile == PROFILE
    assert gpudoctor.load_profile(tmp_path / "gpudoctor.env").profile == PROFILE


def test_a_missing_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^gpudoctor\.env: No such file or directory$"):
        gpudoctor.load_profile()


def test_a_profile_of_arrays_needs_no_torch() -> None:
    profile = LoadedProfile(replace(LEAST, precision="complex64"))
    assert profile.apply() is profile
    assert isinstance(profile.autocast(), nullcontext)


def test_loading_imports_no_torch(tmp_path: Path) -> None:
    write_profile(tmp_path / "gpudoctor.env", PROFILE)
    program = "import sys, gpudoctor; gpudoctor.load_profile(); print('torch' in sys.modules, 'click' in sys.modules)"
    arguments = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {program}"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False False\n"


@pytest.mark.environments
@pytest.mark.parametrize(
    ("precision", "expected"),
    [("tf32", "high True True"), ("fp32", "highest False False"), ("bf16", "highest False False")],
)
def test_tf32_is_as_it_was_measured(precision: str, expected: str, tmp_path: Path) -> None:
    program = """
gpudoctor.load_profile().apply()
import torch
cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
print(torch.get_float32_matmul_precision(), cuda.matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
"""
    profile = replace(LEAST, precision=precision, cudnn_benchmark=True)
    assert run_with_torch(profile, program, tmp_path) == f"{expected} True\n"


@pytest.mark.environments
def test_autocast_threads_and_the_allocator(tmp_path: Path) -> None:
    program = """
import os, torch
profile = gpudoctor.load_profile().apply()
with profile.autocast():
    print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
print(torch.get_num_threads(), os.environ["PYTORCH_ALLOC_CONF"])
"""
    frameworks = {"OMP_NUM_THREADS": "1", "PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    profile = replace(LEAST, precision="bf16", frameworks=frameworks)
    assert run_with_torch(profile, program, tmp_path) == "torch.bfloat16\n1 expandable_segments:True\n"


@pytest.mark.environments
def test_a_training_step_by_the_profile(tmp_path: Path) -> None:
    program = """
profile = gpudoctor.load_profile().apply()
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
before = model.weight.detach().clone()
with profile.autocast():
    loss = model(torch.randn(profile.batch_size, 4)).square().mean()
profile.backward(loss, optimizer)
print(bool((model.weight != before).any()), model.weight.grad)
"""
    assert run_with_torch(replace(LEAST, precision="bf16"), program, tmp_path) == "True None\n"


@pytest.mark.environments
def test_an_allocator_that_comes_too_late_is_said(tmp_path: Path) -> None:
    """Only the state of CUDA is made up: this PyTorch is for the CPU."""
    program = """
import os, torch, warnings
torch.cuda.is_initialized = lambda: True
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    gpudoctor.load_profile().apply()
print(*(f"{w.category.__name__}: {w.message}" for w in caught), os.environ.get("PYTORCH_ALLOC_CONF"))
"""
    profile = replace(LEAST, frameworks={"PYTORCH_ALLOC_CONF": "expandable_segments:True"})
    assert run_with_torch(profile, program, tmp_path) == (
        "RuntimeWarning: PYTORCH_ALLOC_CONF=expandable_segments:True has no effect, because CUDA is already in use. "
        "Call apply() earlier, or start the program with the profile in its environment None\n"
    )


class Switches(TorchPrecision):
    """The switches of a precision, without torch."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def apply_switches(self) -> None:
        self._calls.append("switches")


OLD, NEW = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"


@pytest.mark.parametrize(
    ("frameworks", "environ", "initialised", "calls", "after"),
    [
        pytest.param({}, {}, False, ["switches"], {}, id="nothing is set"),
        pytest.param({"OMP_NUM_THREADS": "3"}, {}, True, ["switches", "threads 3"], {}, id="threads"),
        pytest.param({NEW: "a:1"}, {OLD: "b"}, False, ["switches"], {NEW: "a:1", OLD: "b"}, id="the allocator"),
        pytest.param({OLD: "a:1"}, {OLD: "b"}, False, ["switches"], {OLD: "a:1"}, id="another allocator is set"),
        pytest.param({OLD: "a:1"}, {OLD: "a:1"}, True, ["switches"], {OLD: "a:1"}, id="it is set already"),
        pytest.param(
            {OLD: "a:1"},
            {},
            True,
            [f"{OLD}=a:1 has no effect, because CUDA is already in use", "switches"],
            {},
            id="too late",
        ),
        pytest.param({OLD: "a:1"}, {}, None, ["switches"], {OLD: "a:1"}, id="torch is not imported yet"),
    ],
)
def test_what_is_set(
    frameworks: dict[str, str],
    environ: dict[str, str],
    initialised: bool | None,
    calls: list[str],
    after: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    cudnn = SimpleNamespace(benchmark=None)
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: initialised),
        backends=SimpleNamespace(cudnn=cudnn),
        set_num_threads=lambda count: seen.append(f"threads {count}"),
    )
    for name in (OLD, NEW):
        monkeypatch.setenv(name, "")  # so that what apply() sets is undone after the test
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "torch", torch)
    if initialised is None:  # then it is imported after the variable is set
        known = dict(sys.modules)
        del known["torch"]
        monkeypatch.setattr(application, "sys", SimpleNamespace(modules=known))
    monkeypatch.setattr(warnings, "warn", lambda text, *_, **__: seen.append(text.partition(".")[0]))
    monkeypatch.setattr(application, "make_precision", lambda name, device: Switches(seen))
    loaded = LoadedProfile(replace(PROFILE, frameworks=frameworks, cudnn_benchmark=True))
    assert loaded.apply() is loaded
    assert (seen, cudnn.benchmark) == (calls, True)
    assert {name: os.environ[name] for name in (OLD, NEW) if name in os.environ} == after


def test_the_warning_names_the_line_that_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True), backends=SimpleNamespace(cudnn=SimpleNamespace())
    )
    monkeypatch.setitem(sys.modules, "torch", in_use)
    monkeypatch.setattr(application, "make_precision", lambda name, device: Switches([]))
    monkeypatch.delenv(OLD, raising=False)
    with pytest.warns(RuntimeWarning, match="no effect") as warned:
        LoadedProfile(replace(PROFILE, frameworks={OLD: "a:1"})).apply()
    assert warned[0].filename == __file__
