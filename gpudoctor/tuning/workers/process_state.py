"""The state that torch, CuPy, NumPy and Python keep for a whole process: seeded, and put back as it was.

Only what is loaded has a state: nothing is imported here.
"""

import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
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
        restore += [*_torch_random_states(torch), partial(set_modes, modes())]
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


_SWITCHES = (
    *("cudnn.benchmark", "cudnn.deterministic", "cuda.matmul.allow_tf32", "cudnn.allow_tf32", "fp32_precision"),
    *("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision"),
)
"""Of torch.backends. The older switch of TF32 comes first: to set it sets the newer ones along with it. It cannot be
read once the newer ones say what it cannot express: RuntimeError, "mix of the legacy and new APIs" (pytorch#173731)."""

_FUNCTIONS = {
    "default dtype": ("get_default_dtype", "set_default_dtype"),
    "default device": ("get_default_device", "set_default_device"),
    "gradients": ("is_grad_enabled", "set_grad_enabled"),
    "threads": ("get_num_threads", "set_num_threads"),
    "deterministic algorithms": ("get_deterministic_debug_mode", "set_deterministic_debug_mode"),
}


def modes() -> dict[str, Any]:
    """Return the modes and switches of torch in this process that can be read, by name; none without torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    read: dict[str, Any] = {name: getattr(torch, getter, None) for name, (getter, _) in _FUNCTIONS.items()}
    read |= {name: partial(attrgetter(name), torch.backends) for name in _SWITCHES}
    found: dict[str, Any] = {}
    for name, function in read.items():
        with suppress(Exception), warnings.catch_warnings():  # this version has no such switch, or it is mixed now
            warnings.simplefilter("ignore")  # of the older switch
            found[name] = function()
    return found


def set_modes(wanted: Mapping[str, Any]) -> None:
    """Restore the modes that differ from `wanted`, which `modes` returned."""
    torch: Any = sys.modules.get("torch")
    current = modes()
    for name, value in wanted.items():
        if current.get(name) == value:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name in _FUNCTIONS:
                # None is the CPU: torch.device("cpu") would put a mode around each call that makes a tensor.
                getattr(torch, _FUNCTIONS[name][1])(None if str(value) == "cpu" else value)
            else:
                owner, _, attribute = f"backends.{name}".rpartition(".")
                setattr(attrgetter(owner)(torch), attribute, value)
        current = modes()  # the older switch of TF32 sets the newer ones
