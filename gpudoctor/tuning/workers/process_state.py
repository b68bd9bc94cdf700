"""The state that torch, CuPy, NumPy and Python keep for a whole process: seeded, and put back as it was.

Only what is loaded has a state: nothing is imported here.
"""

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any


def seed(number: int) -> None:
    """Seed Python, and torch on every device, NumPy and CuPy."""
    random.seed(number)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)
    for name in ("numpy", "cupy"):
        if name in sys.modules:
            sys.modules[name].random.seed(number)


@contextmanager
def unchanged() -> Iterator[None]:
    """Put random states, default type, gradient mode and the switches of cuDNN and TF32 back as they were."""
    torch = sys.modules.get("torch")
    restore = [*_random_states()]
    if torch is not None:
        restore += [*_torch_random_states(torch), *_modes(torch), *_switches(torch.backends)]
    try:
        yield
    finally:
        for put_back in restore:
            put_back()


def _random_states() -> Iterator[Callable[[], Any]]:
    """Yield for each random state a function that puts it back."""
    python_state = random.getstate()
    yield lambda: random.setstate(python_state)
    numpy, cupy = sys.modules.get("numpy"), sys.modules.get("cupy")
    if numpy is not None:
        numpy_state = numpy.random.get_state()
        yield lambda: numpy.random.set_state(numpy_state)
    if cupy is not None:
        cupy_state = cupy.random.get_random_state()
        cupy.random.set_random_state(cupy.random.RandomState(0))  # seeding the old one would change it
        yield lambda: cupy.random.set_random_state(cupy_state)


def _torch_random_states(torch: Any) -> Iterator[Callable[[], Any]]:
    state = torch.get_rng_state()
    yield lambda: torch.set_rng_state(state)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states = torch.cuda.get_rng_state_all()
        yield lambda: torch.cuda.set_rng_state_all(states)
    if hasattr(torch, "mps") and torch.backends.mps.is_available():
        mps_state = torch.mps.get_rng_state()
        yield lambda: torch.mps.set_rng_state(mps_state)


def _modes(torch: Any) -> Iterator[Callable[[], Any]]:
    default, gradients = torch.get_default_dtype(), torch.is_grad_enabled()
    yield lambda: torch.set_default_dtype(default)
    yield lambda: torch.set_grad_enabled(gradients)
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    yield lambda: torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


def _switches(backends: Any) -> Iterator[Callable[[], Any]]:
    """Yield for each switch that can be read a function that puts it back.

    The older switch of TF32 comes first: to set it sets the newer ones along with it. It cannot be read once the newer
    ones say what it cannot express: RuntimeError, "mix of the legacy and new APIs" (pytorch/pytorch#173731).
    """
    cudnn = backends.cudnn
    places = [
        (cudnn, "benchmark"),
        (cudnn, "deterministic"),
        (backends.cuda.matmul, "allow_tf32"),
        (cudnn, "allow_tf32"),
        (backends, "fp32_precision"),
        (backends.cuda.matmul, "fp32_precision"),
        *((getattr(cudnn, part), "fp32_precision") for part in ("conv", "rnn") if hasattr(cudnn, part)),
    ]
    for owner, name in places:
        value = _read(owner, name)
        if value is not None:
            yield partial(_put_back, owner, name, value)


def _put_back(owner: Any, name: str, value: Any) -> None:
    if _read(owner, name) != value:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the older switch
            setattr(owner, name, value)


def _read(owner: Any, name: str) -> Any:
    """Return the value, None if this version has no such switch or it cannot be read now."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(owner, name)
    except Exception:
        return None
