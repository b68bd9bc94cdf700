"""The Python module pynvml and where it comes from."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import text_with
from gpudoctor.conclusions.installed import package
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, PackageVersion, Python, Remedy, Severity, Symptom, TorchRuntime
from gpudoctor.registry import check, known
from gpudoctor.remedies import install_packages

# From 12 on the distribution holds no NVML binding of its own and requires nvidia-ml-py.
# Source: metadata and contents of pynvml 11.5.3, 12.0.0 and 13.0.1 on PyPI.
FIRST_REDIRECT = (12,)
PHRASE = "the pynvml package is deprecated"


@check(family="python")
def pynvml_deprecated(
    python: Python | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The package pynvml is installed where nvidia-ml-py belongs, or a file pynvml.py hides it.

    Why: both install the module pynvml. The old package's own copy is out of date, and which of two is imported depends
    on the order of installation; the newer ones only hand on to nvidia-ml-py and make PyTorch warn at every start.
    Exception: nvidia-ml-py alone passes; the module that it installs is called pynvml too.
    Reference: https://github.com/gpuopenanalytics/pynvml
    """
    found = package(python, "pynvml")
    hiding = _hiding(python)
    warned = text_with(PHRASE, torch_runtime=torch_runtime)
    told = tuple(_told(found, python, symptoms))
    yield from told
    if told:
        return
    if found is not None:
        yield _finding(_text(found[1]), f"pynvml {found[1]}", found[0], python)
    elif warned is not None:
        yield _finding("PyTorch warns that the package pynvml is deprecated", "pynvml", warned[0], python)
    elif hiding is None:
        known(python and python.packages, "python.packages")
    if hiding is not None:
        number, path = hiding
        yield Finding(
            severity=Severity.WARNING,
            summary=f"{path} is imported in place of the module pynvml of nvidia-ml-py",
            subject="pynvml",
            facts=(f"python.shadowed_modules[{number}]",),
            remedies=(Remedy(summary=f"Give {path} another name, here and where it is imported"),),
        )


def _told(
    found: tuple[str, PackageVersion] | None, python: Python | None, symptoms: tuple[Symptom, ...] | None
) -> Iterator[Finding]:
    """Yield what a report says of the module."""
    for fact, message in reported(symptoms, "pynvml-deprecated", "pynvml-attribute-missing")[:1]:
        name = f"pynvml {found[1]}" if found else "pynvml"
        yield _finding(f"The module of {name} is not that of nvidia-ml-py: {message.text}", name, fact, python)
    for fact, message in reported(symptoms, "pynvml-not-installed")[:1]:
        yield _finding(f"The NVML binding is not installed: {message.text}", "pynvml", fact, python)
    for fact, message in reported(symptoms, "pynvml-function-missing")[:1]:
        yield Finding(
            severity=Severity.WARNING,
            summary=f"The NVML binding asks the driver for a function that it does not have: {message.text}",
            subject="nvidia-ml-py",
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Update the driver, or install the nvidia-ml-py of the driver's branch (11.525.* for 525, "
                    "12.535.* for 535), and remove the packages pynvml and nvidia-ml-py3",
                    commands=(
                        "nvidia-smi --query-gpu=driver_version --format=csv",
                        *install_packages(
                            python=python,
                            remove=("pynvml", "nvidia-ml-py3"),
                            requirements=("nvidia-ml-py==12.535.*",),
                            force=True,
                            summary="",
                        ).commands,
                    ),
                ),
            ),
        )


def _hiding(python: Python | None) -> tuple[int, str] | None:
    for number, path in enumerate((python.shadowed_modules if python is not None else None) or ()):
        if path.replace("\\", "/").endswith(("/pynvml.py", "/pynvml/__init__.py")):
            return number, path
    return None


def _text(version: PackageVersion) -> str:
    if version.release >= FIRST_REDIRECT:
        return f"The deprecated package pynvml {version} is installed, which only hands on to nvidia-ml-py"
    return f"The deprecated package pynvml {version} is installed, whose module hides that of nvidia-ml-py"


def _finding(summary: str, subject: str, fact: str, python: Python | None) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        summary=summary,
        subject=subject,
        facts=(fact,),
        remedies=(
            install_packages(
                python=python,
                remove=("pynvml",),
                requirements=("nvidia-ml-py",),
                force=True,
                summary="Remove pynvml, and install nvidia-ml-py again, whose files go with it",
                verify="import pynvml; print(pynvml.__file__)",
            ),
        ),
    )
