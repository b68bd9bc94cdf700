"""Environment variables for finding errors."""

import pytest

from gpudoctor.data.environment_variables import debug_variables, environment_variables


@pytest.mark.parametrize(
    ("name", "value", "on"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("CUDA_LAUNCH_BLOCKING", "0", False),
        ("CUDA_MODULE_LOADING", "eager", True),
        ("CUDA_MODULE_LOADING", "LAZY", False),
        ("NCCL_DEBUG", "TRACE", True),
        ("NCCL_DEBUG", "WARN", False),
    ],
)
def test_the_values_that_cost_something(name: str, value: str, on: bool) -> None:
    (variable,) = (variable for variable in debug_variables() if variable.name == name)
    assert variable.is_on(value) is on


def test_each_is_a_variable_that_is_read() -> None:
    """One that is missing there would never be in the environment section."""
    assert {variable.name for variable in debug_variables()} <= environment_variables()
