"""The Python module pynvml and where it comes from."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, PackageVersion, Python
from gpudoctor.registry import check, known
from gpudoctor.symptoms import Symptoms, first, of_kind, pasted
from gpudoctor.symptoms.answers import answers

# From 12 on the distribution has no NVML binding of its own and requires nvidia-ml-py.
# Source: metadata and contents of pynvml 11.5.3, 12.0.0 and 13.0.1 on PyPI.
FIRST_REDIRECT = (12,)


@check(family="python")
def pynvml_deprecated(python: Python = Python(), symptoms: Symptoms = None) -> Iterator[Finding]:
    """The package pynvml is installed instead of nvidia-ml-py, or a file pynvml.py hides it.

    Why: both install the module pynvml. The old package has an outdated copy, and the order of installation decides
    which one is imported. Newer versions only forward to nvidia-ml-py and make PyTorch warn at every start.
    Exception: nvidia-ml-py alone passes; the module that it installs is called pynvml too.
    Reference: https://github.com/gpuopenanalytics/pynvml
    """
    found = python.package("pynvml")
    name = f"pynvml {found[1]}" if found else "pynvml"
    fork = python.package("nvidia-ml-py3")
    if fork is not None and python.package("nvidia-ml-py") is not None:
        both = f"nvidia-ml-py3 {fork[1]}"
        yield _finding(f"{both} overwrites the module pynvml of nvidia-ml-py", both, fork[0])
        return
    said = of_kind(pasted(symptoms), "pynvml-deprecated", "pynvml-attribute-missing")[:1]
    for symptom in said:
        yield _finding(f"The module {name} is not from nvidia-ml-py: {symptom.text}", name, symptom.fact)
    others = answers(pasted(symptoms), "pynvml-deprecated")
    yield from others
    if said or others:
        return
    hiding = _hiding(python)
    warned = first(of_kind(symptoms, "pynvml-deprecated"))
    if found is not None:
        yield _finding(_text(found[1]), name, found[0])
    elif warned is not None:
        yield _finding("PyTorch warns that the package pynvml is deprecated", "pynvml", warned.fact)
    elif hiding is None:
        known(python.packages, "python.packages")
    if hiding is not None:
        number, path = hiding
        summary = f"{path} is imported instead of the module pynvml of nvidia-ml-py"
        yield Finding.warning("pynvml", summary, (f"python.shadowed_modules[{number}]",), Fix("rename-file", path=path))


def _hiding(python: Python) -> tuple[int, str] | None:
    for number, path in enumerate(python.shadowed_modules or ()):
        if path.replace("\\", "/").endswith(("/pynvml.py", "/pynvml/__init__.py")):
            return number, path
    return None


def _text(version: PackageVersion) -> str:
    if version.release >= FIRST_REDIRECT:
        return f"The deprecated package pynvml {version} is installed, which only forwards to nvidia-ml-py"
    return f"The deprecated package pynvml {version} is installed, whose module hides the one of nvidia-ml-py"


def _finding(summary: str, subject: str, fact: str) -> Finding:
    return Finding.warning(subject, summary, (fact,), Fix("reinstall-nvidia-ml-py"))
