"""extension-needs-newer-system."""

import pytest

from gpudoctor.model import Outcome, Python, Severity, Symptom, System
from gpudoctor.testing import run_check

CHECK = "extension-needs-newer-system"


def said(version: str, file: str = "/env/site-packages/flash_attn_2_cuda.so") -> Symptom:
    return Symptom(kind="extension-glibc-too-old", text="not found", names={"version": version, "file": file})


def test_an_older_glibc_is_named_and_not_replaced() -> None:
    (finding,) = run_check(CHECK, symptoms=(said("GLIBC_2.32"),), system=System(glibc="2.31")).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "flash_attn_2_cuda.so asks for GLIBC_2.32, and this system has 2.31: not found"
    assert "--no-build-isolation" in finding.remedies[0].summary


def test_the_first_of_several_libraries_is_named() -> None:
    messages = (said("GLIBC_2.34", "a.so"), said("GLIBC_2.32", "b.so"))
    (finding,) = run_check(CHECK, symptoms=messages).findings
    assert finding.subject == "a.so"


@pytest.mark.parametrize(
    ("python", "command"),
    [
        pytest.param(None, "conda install -c conda-forge libstdcxx-ng", id="environment unknown"),
        pytest.param(
            Python(environment="conda", prefix="/env"),
            "conda install --yes --prefix /env -c conda-forge libstdcxx-ng",
            id="conda",
        ),
    ],
)
def test_a_newer_libstdcxx_can_be_installed(python: Python | None, command: str) -> None:
    (finding,) = run_check(CHECK, symptoms=(said("GLIBCXX_3.4.32"),), python=python).findings
    assert finding.remedies[0].commands[0] == command


def test_another_message_is_not_its_question() -> None:
    result = run_check(CHECK, symptoms=(Symptom(kind="extension-undefined-symbol", text="undefined symbol"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
