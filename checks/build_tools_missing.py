"""The tools other than the CUDA toolkit with which extensions and Triton's kernels are compiled."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import most_telling
from gpudoctor.symptoms.answers import answers


@check(family="torch")
def build_tools_missing(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """A build tool is missing or too old: a compiler, Python's headers, ninja or Triton.

    Why: extensions are compiled during installation, and Triton's kernels (torch.compile, SageAttention, vLLM) when
    they run: "Failed to find C compiler", "fatal error: Python.h", "Ninja is required to load C++ extensions".
    Exception: this check finds only messages in a report. Other checks report a missing nvcc and compilers that are too
    new.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    said = most_telling(symptoms, "build-tool-missing")
    skip_unless(said, "no message reports this problem")
    yield from answers((said,) if said else (), "build-tools-missing")
