"""Compiled PyTorch extensions: what they were built for, which fail to load, which must be compiled."""

import re
from collections.abc import Iterator

from gpudoctor.data import packages
from gpudoctor.model import BuiltExtension, Extensions, FailedExtension, Package, Project, Python, Requirement, Symptom
from gpudoctor.symptoms import Symptoms, of_kind, pasted

OWN = ("torch", "torchvision", "torchaudio", "torchtext")


def extensions(python: Python, project: Project, symptoms: Symptoms) -> Extensions:
    """Return the extensions that are installed, fail to load, or must still be compiled."""
    built = None
    if python.packages is not None:
        each = (_built(number, package) for number, package in enumerate(python.packages) if package.name not in OWN)
        built = tuple(extension for extension in each if extension is not None)
    return Extensions(
        built=built,
        failed=tuple(_failed(python, symptoms)),
        to_build=_to_build(project, python),
    )


def _to_build(project: Project, python: Python) -> Requirement | None:
    """Return the requirement for a package that must still be compiled with nvcc."""
    for name in packages.EXTENSIONS:
        requirement = project.always_requires(name)
        if requirement is not None and (name in packages.COMPILED_AT_RUN_TIME or not python.matching(name)):
            return requirement
    return None


def _failed(python: Python, symptoms: Symptoms) -> tuple[FailedExtension, ...]:
    """Return the extensions whose import failed in a report; what names none is the same failure told again."""
    failed = tuple(_each_failed(python, symptoms))
    return tuple(extension for extension in failed if extension.name) or failed


def _each_failed(python: Python, symptoms: Symptoms) -> Iterator[FailedExtension]:
    """Yield the extensions whose import failed in a report, once per distribution."""
    seen: set[str] = set()
    for symptom in of_kind(pasted(symptoms), "@extension-fails"):
        names = symptom.names
        path = names.get("file") or names.get("path") or ""
        name = _distribution(path, symptom, python) or _only_named(path, symptoms)
        libtorch = symptom.kind == "extension-libtorch-missing"
        if name in seen or (libtorch and seen) or any(other in path.lower() for other in packages.NOT_EXTENSIONS):
            continue
        seen.add(name)
        found = python.package(name)
        yield FailedExtension(
            symptom=symptom,
            name=name,
            version=found[1] if found else None,
            facts=(symptom.fact, *((found[0],) if found else ())),
            abi=_abi(names.get("symbol", "")),
        )


def _distribution(path: str, symptom: Symptom, python: Python) -> str:
    """Return the distribution that the compiled file belongs to, "" if it is unknown."""
    if symptom.library in ("xformers", "mmcv", "detectron2"):
        return symptom.library
    folder = re.search(r"(?:site|dist)-packages[/\\]([A-Za-z]\w{0,60})[/\\.]", path)
    found = (packages.distribution_of(folder[1]) if folder else "") or packages.distribution_of(path)
    if found:
        return found
    if folder:
        from packaging.utils import canonicalize_name

        return canonicalize_name(folder[1])
    # Without a file it is the only installed package that is known to be compiled.
    installed = python.matching(*packages.extension_distributions())
    return installed[0].name if not path and len(installed) == 1 else ""


def _only_named(path: str, symptoms: Symptoms) -> str:
    """Return the only extension that the report names; "" if it names several, or the message names a file."""
    texts = (symptom.text.lower().replace(" ", "_") for symptom in of_kind(symptoms, "extension-named"))
    named = {packages.distribution_of(text) for text in texts}
    return named.pop() if len(named) == 1 and not path else ""


def _abi(symbol: str) -> str:
    """Return the symbol's C++ ABI: strings are __cxx11 in the newer one, Ss in the older one."""
    if "__cxx11" in symbol:
        return "the C++11 ABI"
    return "the ABI before C++11" if re.search(r"(?:RK|E)Ss(?:b|i|$)", symbol) else ""


def _built(number: int, package: Package) -> BuiltExtension | None:
    """Return the PyTorch build that the package was built for; None if its version does not name one."""
    local = package.version.local.lower()
    torch = _torch_release(local)
    cuda = re.search(r"cu(\d{2})\d?(?!\d)", local)
    abi = re.search(r"cxx11abi(true|false)", local)
    if torch is None and abi is None:
        return None
    return BuiltExtension(
        package=package,
        fact=f"python.packages[{number}].version",
        torch=torch,
        cuda_major=int(cuda[1]) if cuda else None,
        cxx11_abi=abi[1] == "true" if abi else None,
    )


def _torch_release(local: str) -> str | None:
    """Return the PyTorch release in a local version: "2.3" in "cu123torch2.3", "pt23cu121" and "torch230cu121"."""
    dotted = re.search(r"(?:torch|pt)(\d)\.(\d{1,2})", local)
    if dotted:
        return f"{dotted[1]}.{dotted[2]}"
    digits = re.search(r"(torch|pt)(\d)(\d{1,3})(?!\d)", local)
    if digits is None:
        return None
    prefix, major, rest = digits[1], digits[2], digits[3]
    if prefix == "pt" and len(rest) <= 2:  # PyTorch Geometric: pt113 is 1.13, pt20 is 2.0
        return f"{major}.{rest}"
    if len(rest) == 1:
        return f"{major}.{rest}"
    if len(rest) == 3:
        return f"{major}.{rest[:2]}"
    # Three digits may end with the patch number: torch260 is 2.6.0; torch210 is ambiguous.
    return f"{major}.{rest[0]}" if rest[1] == "0" and rest[0] != "1" else None
