"""Files that are imported in place of an installed module."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Python, Remedy, Severity, System
from gpudoctor.registry import check, known
from gpudoctor.remedies import python_command
from gpudoctor.remedies.commands import is_windows, quote

NEEDED = ("torch", "cupy", "numpy")


@check(
    family="python",
    explains=("torch-import-failed", "torch-cuda-unavailable", "torch-wrong-results", "cupy-unusable"),
)
def module_shadowed(python: Python, system: System | None = None) -> Iterator[Finding]:
    """A file or folder of the working directory is imported in place of an installed module.

    Why: Python looks into the program's folder first, so that a file torch.py of one's own hides PyTorch: "module
    'torch' has no attribute 'cuda'", or "partially initialized module".
    Exception: a pynvml.py is for pynvml-deprecated. What hides a module that PyTorch and CuPy can do without is a
    warning.
    Reference: https://docs.python.org/3/tutorial/modules.html#the-module-search-path
    """
    for number, path in enumerate(known(python.shadowed_modules, "python.shadowed_modules")):
        module, source = _module(path)
        if module == "pynvml":
            continue
        yield Finding(
            severity=Severity.ERROR if module in NEEDED else Severity.WARNING,
            summary=f"{path} is imported in place of the installed module {module}",
            subject=module,
            facts=(f"python.shadowed_modules[{number}]",),
            remedies=(_rename(module, source, python, system),),
        )


def _module(path: str) -> tuple[str, str]:
    """Return the module, and the file or folder to rename: "torch" for torch.py and for torch/__init__.py."""
    separator = "\\" if "\\" in path else "/"
    folder, _, name = path.rpartition(separator)
    if name == "__init__.py":
        return folder.rpartition(separator)[2], folder
    return name.removesuffix(".py"), path


def _rename(module: str, source: str, python: Python, system: System | None) -> Remedy:
    windows = is_windows(python, system)
    stem, suffix = (source[:-3], ".py") if source.endswith(".py") else (source, "")
    target = f"{stem}_renamed{suffix}"
    move = "Move-Item" if windows else "mv"
    return Remedy(
        summary=f"Give {source} another name, here and where it is imported, or run from another folder",
        commands=(
            f"{move} {quote(source, windows)} {quote(target, windows)}",
            python_command(python, "-c", f"import {module}; print({module}.__file__)"),
        ),
    )
