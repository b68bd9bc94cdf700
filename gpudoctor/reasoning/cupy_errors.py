"""What CuPy said when it was imported and called, read in the same way by several checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Cupy, CupyRuntime, Package, PackageVersion

# Linux, Windows, and cuda-pathfinder, which CuPy 14 asks for libraries.
_NOT_FOUND = (
    r"cannot open shared object file|dll load failed|could not find module|winerror 126|no such file"
    r"|failed to (?:find|load)|not found|could not be (?:found|loaded)|dynamiclibnotfounderror|failure finding"
)


def cupy_errors(cupy_runtime: CupyRuntime | None) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every error, the import's first."""
    if cupy_runtime is None:
        return
    for name in ("import_error", "device_error"):
        text = getattr(cupy_runtime, name)
        if text:
            yield f"cupy_runtime.{name}", text
    for number, call in enumerate(cupy_runtime.calls or ()):
        if call.error:
            yield f"cupy_runtime.calls[{number}].error", call.error


def missing_library(cupy_runtime: CupyRuntime | None, names: str) -> tuple[str, str] | None:
    """Return the fact and the file name where an error says that one of the libraries cannot be found.

    names: regular expression of the names between "lib" and ".so": "cublas|cufft".
    """
    file = re.compile(
        rf"\b(lib(?:{names})(?:Lt|Mg|w)?\.so[.\d]*|(?:{names})(?:Lt|w)?64_[\d_]+\.dll"
        rf"|(?:lib)?(?:{names})\b)",
        re.IGNORECASE,
    )
    for fact, text in cupy_errors(cupy_runtime):
        match = file.search(text)
        if match is not None and re.search(_NOT_FOUND, text.lower()):
            return fact, match[1]
    return None


def with_distributions(cupy: Cupy | None, names: tuple[str, ...]) -> Cupy | None:
    """Return the facts with the distributions that CuPy itself names, where no list of packages is known."""
    if not names or (cupy is not None and cupy.distributions is not None):
        return cupy
    packages = tuple(Package(name=name, version=PackageVersion("")) for name in names)
    return replace(cupy or Cupy(), distributions=packages)


def error_with(cupy_runtime: CupyRuntime | None, pattern: str) -> tuple[str, re.Match[str]] | None:
    """Return the fact of the first error that matches the regular expression, and the match."""
    for fact, text in cupy_errors(cupy_runtime):
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            return fact, match
    return None


def cupy_works(cupy_runtime: CupyRuntime | None) -> bool:
    """Return whether CuPy was imported and compiled and ran a kernel."""
    if cupy_runtime is None or cupy_runtime.import_error != "":
        return False
    kernels = [call for call in cupy_runtime.calls or () if call.library == "elementwise"]
    return bool(kernels) and not any(call.error for call in kernels)
