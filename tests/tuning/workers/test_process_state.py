"""What libraries keep for a whole process: seeded, put back, and nothing imported for it."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.tuning.workers import process_state
from gpudoctor.tuning.workers.process_state import modes, seed, set_modes, unchanged


class Generator:
    """A random state as NumPy's and CuPy's, which is its seed."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def seed(self, number: int) -> None:
        self.number = number

    def get_state(self) -> int:
        return self.number

    set_state = seed

    def get_random_state(self) -> Generator:
        return CURRENT[0]

    def set_random_state(self, state: Generator) -> None:
        CURRENT[0] = state

    RandomState: Any = None


Generator.RandomState = Generator
CURRENT = [Generator(5)]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return libraries that are loaded: only what they are seeded with is known of them."""
    seeds: list[int] = []
    torch = SimpleNamespace(seeds=seeds, manual_seed=seeds.append)
    libraries = {"torch": torch, "numpy": SimpleNamespace(random=Generator()), "cupy": SimpleNamespace()}
    libraries["cupy"].random = Generator()
    for name, library in libraries.items():
        monkeypatch.setitem(sys.modules, name, library)
    return libraries


def test_everything_that_is_loaded_is_seeded(loaded: dict[str, Any]) -> None:
    seed(7)
    first = random.random()
    assert (loaded["torch"].seeds, loaded["numpy"].random.number, loaded["cupy"].random.number) == ([7], 7, 7)
    seed(7)
    assert random.random() == first


@pytest.mark.parametrize("missing", ["torch", "numpy", "cupy"])
def test_what_is_not_loaded_is_not_missed(
    missing: str, loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, missing)
    seed(8)
    others = {"torch": [8], "numpy": 8, "cupy": 8}
    found = {name: library.seeds if name == "torch" else library.random.number for name, library in loaded.items()}
    assert {name: found[name] for name in others if name != missing} == {
        name: number for name, number in others.items() if name != missing
    }
    assert missing not in sys.modules


def test_random_states_come_back(loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    loaded["numpy"].random.number = 3
    before = random.getstate()
    with unchanged():
        random.random()
        loaded["numpy"].random.seed(9)
        assert CURRENT[0].number == 0, "CuPy works on another one meanwhile"
    assert random.getstate() == before
    assert loaded["numpy"].random.number == 3
    assert CURRENT[0].number == 5


class Older:
    """A torch whose older switch of TF32 sets the newer one along with it."""

    def __init__(self) -> None:
        self.precision, self.allowed, self.gradients = "ieee", False, True
        self.device = "cpu"
        torch = self

        class Products:
            @property
            def allow_tf32(self) -> bool:
                if torch.precision == "mixed":
                    raise RuntimeError("mix of the legacy and new APIs")
                return torch.allowed

            @allow_tf32.setter
            def allow_tf32(self, value: bool) -> None:
                torch.allowed, torch.precision = value, "tf32" if value else "ieee"

            @property
            def fp32_precision(self) -> str:
                return torch.precision

            @fp32_precision.setter
            def fp32_precision(self, value: str) -> None:
                torch.precision = value

        self.backends = SimpleNamespace(
            cuda=SimpleNamespace(matmul=Products()), cudnn=SimpleNamespace(benchmark=False, deterministic=True)
        )

    def is_grad_enabled(self) -> bool:
        return self.gradients

    def set_grad_enabled(self, value: bool) -> None:
        self.gradients = value

    def get_default_device(self) -> str:
        return self.device

    def set_default_device(self, device: Any) -> None:
        self.device = "cpu" if device is None else device


PLAIN = {
    "gradients": True,
    "default device": "cpu",
    "cudnn.benchmark": False,
    "cudnn.deterministic": True,
    "cuda.matmul.allow_tf32": False,
    "cuda.matmul.fp32_precision": "ieee",
}


def test_modes_are_read_if_this_version_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = Older()
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert modes() == PLAIN
    torch.precision = "mixed"
    assert "cuda.matmul.allow_tf32" not in modes()
    monkeypatch.delitem(sys.modules, "torch")
    assert modes() == {}


def test_modes_are_set_if_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = Older()
    monkeypatch.setitem(sys.modules, "torch", torch)
    changed: dict[str, Any] = {
        "gradients": False,
        "default device": "cuda",
        "cudnn.benchmark": True,
        "cudnn.deterministic": False,
        "cuda.matmul.allow_tf32": True,
        "cuda.matmul.fp32_precision": "tf32",
    }
    set_modes(changed)
    assert modes() == changed
    set_modes(PLAIN)
    assert modes() == PLAIN


def test_every_switch_of_torch_comes_back() -> None:
    torch: Any = pytest.importorskip("torch")
    before = modes()
    others = {
        "cudnn.benchmark": not before["cudnn.benchmark"],
        "cudnn.deterministic": not before["cudnn.deterministic"],
        "default dtype": torch.float64,
        "gradients": not before["gradients"],
        "threads": before["threads"] + 1,
        "deterministic algorithms": 1,
        "default device": "meta",
    }
    for name, value in others.items():
        if name in before:
            with unchanged():
                set_modes({name: value})
                assert str(modes()[name]) == str(value)
            assert modes() == before


@pytest.mark.parametrize(
    "path", ["cuda.matmul.allow_tf32", "cudnn.allow_tf32", "cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision"]
)
def test_switches_of_tf32_are_among_them(path: str) -> None:
    pytest.importorskip("torch")
    assert path in process_state._SWITCHES


def test_the_random_state_of_mps_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    state = ["first"]
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: state[0])
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda wanted: state.__setitem__(0, wanted))
    with unchanged():
        state[0] = "second"
    assert state == ["first"]
