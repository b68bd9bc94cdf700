"""What the machine is judged by: the facts that an answer rests on."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.requirements.judging import judge
from gpudoctor.configuration.requirements import parse_requirement
from gpudoctor.model import Cupy, CupyRuntime, Snapshot, Torch, TorchRuntime

ABSENT = "ModuleNotFoundError: No module named '{}'"


@pytest.mark.parametrize(
    ("text", "snapshot", "facts"),
    [
        pytest.param("cupy", Snapshot(cupy=Cupy(distributions=())), ("cupy.distributions",), id="no files of CuPy"),
        pytest.param(
            "cupy",
            Snapshot(cupy_runtime=CupyRuntime(import_error=ABSENT.format("cupy"))),
            ("cupy_runtime.import_error",),
            id="CuPy cannot be imported",
        ),
        pytest.param("torch", Snapshot(torch=Torch(installed=False)), ("torch.installed",), id="no files of PyTorch"),
        pytest.param(
            "torch",
            Snapshot(torch_runtime=TorchRuntime(import_error=ABSENT.format("torch"))),
            ("torch_runtime.import_error",),
            id="PyTorch cannot be imported",
        ),
    ],
)
def test_what_shows_that_a_library_is_missing(text: str, snapshot: Snapshot, facts: tuple[str, ...]) -> None:
    (judgement,) = judge((parse_requirement(text),), snapshot)
    assert (judgement.met, judgement.facts) == (False, facts)
