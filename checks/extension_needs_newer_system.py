"""The C and C++ libraries of the system against what compiled packages ask of them."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Python, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies.commands import environment_of


@check(family="python", explains=("torch-import-failed", "extension-abi-mismatch"))
def extension_needs_newer_system(
    symptoms: tuple[Symptom, ...], python: Python | None = None, system: System | None = None
) -> Iterator[Finding]:
    """A compiled package asks for a newer glibc or libstdc++ than this system has.

    Why: a wheel that was built on a newer distribution fails with "version `GLIBC_2.32' not found" or "GLIBCXX_3.4.32
    not found", whichever PyTorch is installed.
    Exception: only what a report says is found here.
    Reference: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    told = reported(symptoms, "extension-glibc-too-old")[:1]
    skip_unless(told, "no such message in the report")
    fact, message = told[0]
    names = message.names
    has = f", and this system has {system.glibc}" if system is not None and system.glibc else ""
    file = names.get("file", "a library").replace("\\", "/").rpartition("/")[2]
    asks = names.get("version", "a newer one")
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{file} asks for {asks}{has if asks.startswith('GLIBC_') else ''}: {message.text[:200]}",
        subject=file,
        facts=(fact,),
        remedies=_remedies(asks, python, system),
    )


def _remedies(asks: str, python: Python | None, system: System | None) -> tuple[Remedy, ...]:
    rebuild = Remedy(
        summary="Install an older wheel of the package, or rebuild it here: pip install --no-build-isolation "
        "--no-binary :all: --no-cache-dir with the package's name",
        commands=("ldd --version",),
    )
    if asks.startswith("GLIBC_"):
        return rebuild, Remedy(
            summary="Or use a newer distribution, or a container image with one: glibc is not replaced"
        )
    environment = environment_of(python, system)
    update = "conda install -c conda-forge libstdcxx-ng"
    if environment.conda_prefix:
        update = environment.conda("install", ["-c", "conda-forge", "libstdcxx-ng"])
    newer = Remedy(
        summary="Let a newer libstdc++ be found first: that of conda-forge in the environment, with its lib folder on "
        "LD_LIBRARY_PATH, or the distribution's newer libstdc++6",
        commands=(update, "strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX_3.4 | tail -3"),
    )
    return newer, rebuild
