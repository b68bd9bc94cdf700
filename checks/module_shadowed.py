"""Files that are imported in place of an installed module."""

import re
from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Python, Severity
from gpudoctor.registry import check, known

NEEDED = ("torch", "cupy", "numpy")


@check(
    family="python", explains=("torch-import-failed", "torch-cuda-unavailable", "torch-wrong-results", "cupy-unusable")
)
def module_shadowed(python: Python) -> Iterator[Finding]:
    """A file or folder in the working directory is imported instead of an installed module.

    Why: Python searches the program's folder first, so a file torch.py there hides PyTorch: "module 'torch' has no
    attribute 'cuda'", or "partially initialized module".
    Exception: pynvml-deprecated reports a pynvml.py. If PyTorch and CuPy work without the module, this is a warning.
    Reference: https://docs.python.org/3/tutorial/modules.html#the-module-search-path
    """
    for number, path in enumerate(known(python.shadowed_modules, "python.shadowed_modules")):
        module, source = _module(path)
        if module == "pynvml":
            continue
        severity = Severity.ERROR if module in NEEDED else Severity.WARNING
        summary = f"{path} is imported instead of the installed module {module}"
        facts = (f"python.shadowed_modules[{number}]",)
        renamed = re.sub(r"(\.py)?$", r"_renamed\1", source, count=1)
        rename = Fix("rename-shadowing-file", source=source, renamed=renamed, module=module)
        yield Finding.of(severity, module, summary, facts, rename)


def _module(path: str) -> tuple[str, str]:
    """Return the module, and the file or folder to rename: "torch" for torch.py and for torch/__init__.py."""
    separator = "\\" if "\\" in path else "/"
    folder, _, name = path.rpartition(separator)
    if name == "__init__.py":
        return folder.rpartition(separator)[2], folder
    return name.removesuffix(".py"), path
