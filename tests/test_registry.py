"""A check registers itself; what could mislead is refused."""

from collections.abc import Iterator
from types import FunctionType

import pytest

from gpudoctor import registry
from gpudoctor.model import Driver, Finding, Python, Torch


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "registered", {})


def test_the_function_gives_id_sections_and_page() -> None:
    @registry.check(family="torch", explains=("other",))
    def made_up(driver: Driver, torch: Torch, python: Python | None = None) -> Iterator[Finding]:
        """The problem.

        Why: because.
        """
        yield from ()

    check = registry.registered["made-up"]
    assert (check.sections, check.optional, check.explains) == (("driver", "torch"), ("python",), ("other",))
    assert check.title == "The problem."
    assert check.page == "The problem.\n\nWhy: because."


def test_a_parameter_that_is_no_section_is_refused() -> None:
    def made_up(card: object) -> Iterator[Finding]:
        yield from ()

    with pytest.raises(ValueError, match="made-up: no such section or family: card"):
        registry.check(family="torch")(made_up)


def test_an_unknown_family_is_refused() -> None:
    def made_up() -> Iterator[Finding]:
        yield from ()

    with pytest.raises(ValueError, match="no such section or family: tourch"):
        registry.check(family="tourch")(made_up)


def test_an_id_is_registered_by_one_module_only() -> None:
    def made_up() -> Iterator[Finding]:
        yield from ()

    registry.check(family="torch")(made_up)
    made_up.__module__ = "elsewhere"
    namesake = FunctionType(made_up.__code__, made_up.__globals__, "made_up")
    namesake.__module__ = "somewhere"
    with pytest.raises(ValueError, match="check made-up is in elsewhere and in somewhere"):
        registry.check(family="torch")(namesake)


def test_an_unknown_fact_skips() -> None:
    assert registry.known(0, "torch.cuda_version") == 0
    with pytest.raises(registry.Skip, match="torch.cuda_version is unknown"):
        registry.known(None, "torch.cuda_version")


def test_a_question_that_does_not_arise_skips() -> None:
    registry.skip_unless(True, "no reason")
    with pytest.raises(registry.Skip, match="CuPy is not installed"):
        registry.skip_unless((), "CuPy is not installed")
