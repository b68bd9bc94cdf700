"""Workloads by name. What needs no library runs without any."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS
from gpudoctor.tuning.workers import catalog
from gpudoctor.tuning.workers.catalog import is_spec, load, split
from gpudoctor.tuning.workers.precision import make_precision

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "mode", "unit"),
    [
        ("mlp", "training", "samples/s"),
        ("cnn", "inference", "images/s"),
        ("lstm", "training", "sequences/s"),
        ("transformer", "training", "sequences/s"),
    ],
)
def test_a_built_in_workload_is_described(name: str, mode: str, unit: str) -> None:
    described = catalog.describe(name, mode)
    assert (described.name, described.mode, described.unit) == (name, mode, unit)
    assert catalog.precisions(name) == PRECISIONS


@pytest.mark.parametrize("mode", catalog.MODES)
def test_signal_has_one_mode_and_complex_precisions(mode: str) -> None:
    described = catalog.describe("signal", mode)
    assert (described.mode, described.unit) == ("", "signals/s")
    assert catalog.precisions("signal") == COMPLEX_PRECISIONS


def test_the_users_own_is_described_by_its_name_without_being_imported() -> None:
    described = catalog.describe("nowhere.py:Training")
    assert (described.name, described.mode, described.unit) == ("nowhere.py:Training", "", "samples/s")
    assert catalog.precisions("nowhere.py:Training") == PRECISIONS


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("transfomer", "did you mean transformer? Choose mlp, cnn,"),
        ("CNN", "did you mean cnn? Choose"),
        ("resnet50", "choose mlp, cnn, lstm, transformer, signal, or your own as MODULE:ATTRIBUTE or FILE.py:ATT"),
        ("", "choose mlp,"),
    ],
)
def test_an_unknown_name_is_one_line_with_those_there_are(name: str, hint: str) -> None:
    for refuse in (catalog.load_factory, catalog.describe, catalog.precisions):
        with pytest.raises(UsageError) as refused:
            refuse(name)
        assert str(refused.value).startswith(f"no workload is called {name!r}: {hint}")
        assert "\n" not in str(refused.value)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="no mode is called 'train': there are training and inference"):
        catalog.load_factory("mlp", "train")


def test_the_catalog_imports_no_library() -> None:
    heavy = "set(sys.modules) & {'torch', 'numpy', 'cupy'}"
    code = f"import sys; from gpudoctor.tuning.workers import catalog, precision; sys.exit(str({heavy} or ''))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=60
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("mode", catalog.MODES)
@pytest.mark.parametrize("name", ["mlp", "cnn", "lstm", "transformer"])
def test_a_workload_says_the_unit_that_the_catalog_says(name: str, mode: str) -> None:
    pytest.importorskip("torch")
    workload = catalog.load_factory(name, mode)("cpu", make_precision("fp32", "cpu"))
    assert f"{workload.unit}/s" == catalog.describe(name, mode).unit  # type: ignore[attr-defined]
    assert workload.model.training == (mode == "training")  # type: ignore[attr-defined]


def test_signal_comes_from_its_own_module() -> None:
    pytest.importorskip("numpy", minversion="2.0")
    workload = catalog.load_factory("signal")("cpu", make_precision("complex64", "cpu"))
    assert workload.make_batch(2).shape == (2, 4096)
    assert f"{workload.unit}/s" == catalog.describe("signal").unit  # type: ignore[attr-defined]


EXAMPLE = Path(__file__).parents[3] / "examples" / "tune_training.py"

PROGRAM = """
import settings

class Training:
    def __init__(self, device, precision):
        self.device, self.precision = device, precision

    def make_batch(self, size):
        return [settings.VALUE] * size

    def step(self, batch):
        return sum(batch)

def build(device, precision):
    return Training(device, precision)

def broken(device, precision):
    raise RuntimeError("a bug")

def large(device, precision, width=8):
    return Training(device, precision)

def forgetful(device, precision):
    Training(device, precision)

class Model:
    def forward(self, batch):
        return batch

class Half(Training):
    step = None

class Crowded(Training):
    def step(self, images, labels):
        return 0

READY = Training("cpu", None)

if __name__ == "__main__":
    raise SystemExit("this is the training")
"""


@pytest.fixture(autouse=True)
def imports_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test has imported from its folder, or from the example."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if file == EXAMPLE or file.is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, the working directory, with a training script and a module that it imports."""
    (tmp_path / "training.py").write_text(PROGRAM)
    (tmp_path / "settings.py").write_text("VALUE = 7\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(spec: str) -> str:
    """Return the one line that refuses the workload, when it is loaded or when it is built."""
    with pytest.raises(UsageError) as refused:
        load(spec)("cpu", make_precision("fp32", "cpu"))
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("spec", ["training:Training", "training.py:Training", "./training.py:build", "training:build"])
def test_a_module_or_a_file_a_class_or_a_function(project: Path, spec: str) -> None:
    workload: Any = load(spec)("cuda:0", make_precision("bf16", "cpu"))
    assert (workload.device, workload.precision.name) == ("cuda:0", "bf16")
    assert workload.step(workload.make_batch(3)) == 21


def test_a_file_of_another_folder_finds_what_lies_next_to_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    workload = load("../training.py:Training")("cpu", make_precision("fp32", "cpu"))
    assert workload.make_batch(1) == [7]
    assert sys.path[0] == str(project.resolve())


def test_a_module_of_a_package(project: Path) -> None:
    (project / "vision").mkdir()
    (project / "vision" / "train.py").write_text(PROGRAM)
    assert load("vision.train:build")("cpu", make_precision("fp32", "cpu")).make_batch(2) == [7, 7]


def test_a_file_called_like_a_module_in_use_does_not_replace_it(project: Path) -> None:
    (project / "signal.py").write_text(PROGRAM)
    import signal

    load("signal.py:build")
    assert sys.modules["signal"] is signal


@pytest.mark.parametrize(
    ("spec", "place", "attribute"),
    [
        ("train:Training", "train", "Training"),
        (r"C:\work\train.py:Training", r"C:\work\train.py", "Training"),
        ("C:/work/train.py:Training", "C:/work/train.py", "Training"),
        ("/data/a:b/train.py:Training", "/data/a:b/train.py", "Training"),
    ],
)
def test_the_last_colon_stands_before_the_attribute(spec: str, place: str, attribute: str) -> None:
    assert is_spec(spec)
    assert split(spec) == (place, attribute)


@pytest.mark.parametrize("name", ["mlp", "resnet50", "training"])
def test_a_plain_word_is_the_name_of_a_built_in_workload(name: str) -> None:
    assert not is_spec(name)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("train.py", "train.py names no workload in the file: write train.py:ATTRIBUTE"),
        (r"C:\train.py", r"C:\train.py names no workload in the file: write C:\train.py:ATTRIBUTE"),
        ("train:", "'train:' is not a workload: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"),
        (":Training", "':Training' is not a workload: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"),
        ("train:1st", "'train:1st' is not a workload: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"),
        (".train:Training", "'.train' is not the name of a module: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"),
        ("absent.py:Training", "there is no file absent.py"),
        (".:Training", "'.' is not the name of a module: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"),
        ("./:Training", ". is a folder, not a Python file"),
    ],
)
def test_what_names_nothing(project: Path, spec: str, line: str) -> None:
    assert refusal(spec) == line


def test_a_missing_module_says_where_it_was_looked_for(project: Path) -> None:
    assert refusal("absent:Training") == f"there is no module absent for {sys.executable} in {project}"
    assert refusal("training.absent:Training").startswith("there is no module training.absent for ")


def test_a_file_without_its_ending_is_recognised(project: Path) -> None:
    (project / "my-training.py").write_text(PROGRAM)
    assert refusal("./training:Training") == "there is no file training"
    assert refusal("my-training:Training") == (
        "'my-training' is not the name of a module: write MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"
    )
    assert load("my-training.py:Training")("cpu", make_precision("fp32", "cpu")).make_batch(1) == [7]


def test_a_file_that_is_not_python(project: Path) -> None:
    (project / "notes.txt").write_text("no program")
    assert refusal("./notes.txt:Training") == f"{project / 'notes.txt'} is not a Python file: its name must end in .py"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="every file can be read here")
def test_a_file_that_cannot_be_read(project: Path) -> None:
    (project / "training.py").chmod(0)
    assert refusal("training.py:Training") == "training.py cannot be read"


@pytest.mark.parametrize(
    ("attribute", "line"),
    [
        ("Trainin", "training.py has no Trainin: did you mean Training?"),
        (
            "Workload",
            "training.py has no Workload: did you mean Training or build or broken or large or forgetful or Crowded?",
        ),
        (
            "READY",
            "training.py:READY cannot be called: it is an object of type Training; give its class, or a function",
        ),
        ("settings", "training.py:settings cannot be called: it is an object of type module; give a class or a functi"),
        ("Model", "training.py:Model is called with (device, precision), but accepts ()"),
        ("forgetful", "training.py:forgetful returned None without a method make_batch(size)"),
        ("Half", "training.py:Half returned an object of type Half without a method step(batch)"),
        ("Crowded", "step of training.py:Crowded is called with (batch), but accepts (images, labels)"),
    ],
)
def test_what_is_no_workload(project: Path, attribute: str, line: str) -> None:
    assert refusal(f"training.py:{attribute}").startswith(line)


def test_a_script_that_ends_the_program_when_imported(project: Path) -> None:
    (project / "script.py").write_text("import sys\nsys.exit(3)\n")
    assert refusal("script.py:Training") == (
        f"{project / 'script.py'} ended the program when it was imported (exit 3): "
        'put the code that it runs under `if __name__ == "__main__":`'
    )


@pytest.mark.parametrize("spec", ["script:Training", "script.py:Training"])
@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("\nimport not_installed\n", ModuleNotFoundError),
        ("\nfrom settings import ABSENT\n", ImportError),
        ("\n1 / 0\n", ZeroDivisionError),
        ("\nraise OSError('no data')\n", OSError),
    ],
)
def test_an_error_in_the_users_code_keeps_its_traceback_from_the_users_first_line_on(
    project: Path, spec: str, program: str, error: type[Exception]
) -> None:
    (project / "script.py").write_text(program)
    with pytest.raises(error) as raised:
        load(spec)
    own = [frame for frame in traceback.extract_tb(raised.value.__traceback__) if "catalog" not in frame.filename]
    assert (own[0].filename, own[0].lineno) == (str(project / "script.py"), 2)


def test_an_error_of_syntax_goes_through(project: Path) -> None:
    (project / "script.py").write_text("class Training\n")
    with pytest.raises(SyntaxError) as raised:
        load("script.py:Training")
    assert raised.value.filename == str(project / "script.py")


def test_an_error_while_building_goes_through(project: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        load("training.py:broken")("cpu", make_precision("fp32", "cpu"))


def test_the_example_wraps_a_training_script_in_less_than_twenty_lines() -> None:
    classes = [node for node in ast.parse(EXAMPLE.read_text()).body if isinstance(node, ast.ClassDef)]
    workload = next(node for node in classes if node.name == "Workload")
    code = ast.unparse(workload).splitlines()
    assert len([line for line in code if line.strip()]) < 20


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_the_example_learns(name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    workload: Any = load(f"{EXAMPLE}:Workload")("cpu", make_precision(name, "cpu"))
    batch = workload.make_batch(4)
    losses = [workload.step(batch).item() for _ in range(6)]
    assert losses[-1] < losses[0]
    readings, fault = workload.dataset[0]
    assert (readings.shape, fault.shape) == (batch[0].shape[1:], batch[1].shape[1:])


def test_the_script_of_the_example_trains(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    load(f"{EXAMPLE}:Workload")
    script: Any = sys.modules["tune_training"]
    torch.manual_seed(0)
    monkeypatch.setattr(script, "make_dataset", lambda make=script.make_dataset: make(16))
    monkeypatch.setattr(sys, "argv", ["tune_training.py", "--batch-size", "8"])
    script.main()
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["step 0", "step 1"]


def test_parameters_reach_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        "class Work:\n"
        "    def __init__(self, device, precision, sequence=64):\n"
        "        self.sequence = sequence\n"
        "    def make_batch(self, size):\n"
        "        pass\n"
        "    def step(self, batch):\n"
        "        pass\n"
    )
    build = catalog.load_factory(f"{file}:Work", "training", {"sequence": 512})
    assert build("cpu", make_precision("fp32", "cpu")).sequence == 512  # type: ignore[attr-defined]
    described = catalog.describe(f"{file}:Work", "training", {"sequence": 512})
    assert described.parameters == "sequence=512"
    with pytest.raises(UsageError, match=r"is called with \(device, precision, width=3\), but accepts"):
        catalog.load_factory(f"{file}:Work", "training", {"width": 3})


@pytest.mark.parametrize(("name", "parameter"), [("mlp", "sequence"), ("transformer", "width")])
def test_a_built_in_workload_has_few_parameters(name: str, parameter: str) -> None:
    message = f"the workload {name} has no parameter {parameter}: lstm and transformer have sequence"
    for function in (catalog.describe, catalog.load_factory):
        with pytest.raises(UsageError, match=message):
            function(name, "training", {parameter: 3})
    assert catalog.describe("lstm", "training", {"sequence": 9}).parameters == "sequence=9"
