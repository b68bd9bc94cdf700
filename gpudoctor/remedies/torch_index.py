"""Installing PyTorch from the right index."""

from __future__ import annotations

from gpudoctor.data.torch_builds import INDEX
from gpudoctor.model import Python, Remedy
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix


@fix
def check_index_order(*, python: Python | None, variant: str) -> Remedy:
    """Return how to see which index the build came from: pip takes the newest version of all that it is given."""
    download = ("-m", "pip", "download", "--no-deps", "torch", "--index-url", f"{INDEX}/{variant}")
    return Remedy(
        summary=f"See whether pip asks another index too (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, pip.conf), such as "
        f"whl/cpu, and whether the index of {variant} exists and has wheels for this Python: pip silently falls back "
        "to the others; name the one index with --index-url, not --extra-index-url",
        commands=(python_command(python, "-m", "pip", "config", "list"), python_command(python, *download)),
        reference="https://pip.pypa.io/en/stable/cli/pip_install/#finding-packages",
    )
