"""Signals that end a program, and the places where they may."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupts:
    """Signals that end a program raise KeyboardInterrupt, once, and only inside `allowed()`: elsewhere they wait."""

    def __init__(self) -> None:
        self._came = self._is_allowed = self._raised = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals in the block. A signal that stopped nothing in it raises KeyboardInterrupt at its end."""
        is_main = threading.current_thread() is threading.main_thread()
        numbers = [n for n in _SIGNALS if is_main and signal.getsignal(n) is not signal.SIG_IGN]  # ignored by nohup
        before = {number: signal.signal(number, self._take) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self._is_allowed = True
        self._check()

    @contextmanager
    def allowed(self, is_allowed: bool = True) -> Iterator[None]:
        """Let signals end the block; or, inside such a block, let them wait until the end of this one."""
        before, self._is_allowed = self._is_allowed, is_allowed
        try:
            self._check()
            yield
        finally:
            self._is_allowed = before
        self._check()

    def _take(self, *_: object) -> None:
        self._came = True
        self._check()

    def _check(self) -> None:
        if self._came and self._is_allowed and not self._raised:
            self._raised = True
            raise KeyboardInterrupt
