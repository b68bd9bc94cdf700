"""The tools besides the CUDA toolkit with which extensions and Triton's kernels are compiled."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import first, of_kind
from gpudoctor.symptoms.answers import answers

# Those that say most first.
KINDS = (
    *("build-tool-python-headers", "build-tool-ninja", "build-tool-msvc"),
    *("build-tool-compiler", "build-tool-compiler-old", "build-tool-triton"),
)


@check(family="torch")
def build_tools_missing(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """A build tool is missing or too old: a compiler, Python's headers, ninja or Triton.

    Why: extensions are compiled during installation, and Triton's kernels (torch.compile, SageAttention, vLLM) when
    they run: "Failed to find C compiler", "fatal error: Python.h", "Ninja is required to load C++ extensions".
    Exception: this check finds only messages in a report. Other checks report nvcc, and compilers that are too new.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    most_telling = first(*(of_kind(symptoms, kind) for kind in KINDS))
    skip_unless(most_telling, "no such message in the report")
    yield from answers((most_telling,) if most_telling else (), "build-tools-missing")
