"""The C and C++ libraries of the system against what compiled packages ask of them."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind


@check(family="python", explains=("torch-import-failed", "extension-abi-mismatch"))
def extension_needs_newer_system(symptoms: tuple[Symptom, ...], system: System = System()) -> Iterator[Finding]:
    """A compiled package needs a newer glibc or libstdc++ than this system has.

    Why: a wheel that was built on a newer distribution fails with "version `GLIBC_2.32' not found" or "GLIBCXX_3.4.32
    not found", whichever PyTorch is installed.
    Exception: this check finds only messages in a report.
    Reference: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    found = of_kind(symptoms, "extension-glibc-too-old")[:1]
    skip_unless(found, "no message reports this problem")
    for symptom in found:
        file = symptom.names.get("file", "a library").replace("\\", "/").rpartition("/")[2]
        asks = symptom.names.get("version", "a newer one")
        glibc = system.glibc if asks.startswith("GLIBC_") else None
        has = f", and this system has {glibc}" if glibc else ""
        summary = f"{file} asks for {asks}{has}: {symptom.text[:200]}"
        yield Finding.error(file, summary, (symptom.fact,), Fix("system-library-for-extension", asks=asks))
