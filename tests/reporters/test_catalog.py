from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Finding
from gpudoctor.registry import Check
from gpudoctor.reporters.catalog import render_list, render_page
from gpudoctor.reporters.text import wrap


def driver_too_old() -> Iterator[Finding]:
    """The driver's CUDA major version is older than PyTorch's | CuPy's.

    Why: the first CUDA call fails with an error that names both versions, and then
        everything else fails too.
    Reference: https://docs.nvidia.com/deploy/cuda-compatibility/index.html
    """
    yield from ()


CHECK = Check(
    id="driver-too-old",
    family="driver",
    sections=("driver", "torch"),
    optional=("python",),
    explains=("torch-cuda-unavailable",),
    function=driver_too_old,
)


def test_list() -> None:
    assert render_list([CHECK], width=80) == (
        "id              family    problem\n"
        "driver-too-old  driver    The driver's CUDA major version is older than PyTorch's\n"
        "                          | CuPy's.\n"
    )


def test_list_in_a_pipe_is_a_line_for_each() -> None:
    long = replace(CHECK, id="a")
    assert render_list([CHECK, long], width=None) == (
        "driver-too-old  driver  The driver's CUDA major version is older than PyTorch's | CuPy's.\n"
        "a               driver  The driver's CUDA major version is older than PyTorch's | CuPy's.\n"
    )
    assert render_list([], width=None) == ""


def test_list_with_a_long_name_leaves_no_narrow_column() -> None:
    long = replace(CHECK, id="proprietary-kernel-module-unsupported-gpu")
    assert render_list([long], width=80).splitlines()[0] == f"{long.id} (driver)"
    assert render_list([long], width=100).startswith("id")


def test_list_on_a_narrow_screen() -> None:
    assert render_list([CHECK], width=40) == (
        "driver-too-old (driver)\n  The driver's CUDA major version is\n  older than PyTorch's | CuPy's.\n"
    )


def test_page() -> None:
    assert render_page(CHECK, width=60) == (
        "The driver's CUDA major version is older than PyTorch's |\n"
        "CuPy's.\n"
        "\n"
        "Why: the first CUDA call fails with an error that names both\n"
        "  versions, and then everything else fails too.\n"
        "Reference:\n"
        "  https://docs.nvidia.com/deploy/cuda-compatibility/index.html\n"
        "\n"
        "Check: driver-too-old (family driver)\n"
        "Also causes: torch-cuda-unavailable\n"
    )


def test_a_command_is_not_broken() -> None:
    command = "`python -c 'import torch; print(torch.version.cuda)'`"
    assert wrap(f"See it: {command} prints None.", 30) == ["See it:", command, "prints None."]


def test_no_checks() -> None:
    assert render_list([], width=80).split() == ["id", "family", "problem"]
