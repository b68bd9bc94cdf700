"""What is measured drops everything of a trial, by the garbage collector too."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def small_heap() -> None:
    """Keep what other tests left out of each collection: in a long run that takes a second each time."""
    gc.freeze()
