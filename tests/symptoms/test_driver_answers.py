"""Messages of the driver that are the whole answer."""

import pytest

from gpudoctor.model import Finding, Fix, Severity
from gpudoctor.symptoms.answers import answers
from gpudoctor.symptoms.matching import recognise


def answer_to(text: str, check: str) -> Finding:
    (finding,) = answers([found.symptom for found in recognise(text, fact="symptoms[0].text")], check)
    return finding


@pytest.mark.parametrize(
    ("text", "check", "severity", "fixes"),
    [
        (
            "Failed to initialize NVML: Insufficient Permissions",
            "device-permissions-missing",
            Severity.ERROR,
            (Fix("join-device-group"),),
        ),
        (
            "The NVIDIA driver's CUDA version is 12.2 which is older than the ptxas CUDA version (12.8.93)",
            "driver-too-old",
            Severity.WARNING,
            (Fix("update-driver"),),
        ),
        (
            "Unable to create a GPU instance on GPU 0 using profile 9: Insufficient Resources",
            "mig-misconfigured",
            Severity.ERROR,
            (Fix("reset-gpu-for-mig"),),
        ),
        (
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "libcuda-not-on-linker-path",
            Severity.ERROR,
            (Fix("link-libcuda"),),
        ),
        (
            "AssertionError: libcuda.so cannot found! Possible files are located at ['/lib64/libcuda.so.1'].",
            "libcuda-not-on-linker-path",
            Severity.ERROR,
            (Fix("link-libcuda", library="/lib64/libcuda.so.1"),),
        ),
        (
            "AssertionError: libcuda.so cannot found!",
            "libcuda-not-on-linker-path",
            Severity.ERROR,
            (Fix("link-libcuda", library=""),),
        ),
    ],
)
def test_decision(text: str, check: str, severity: Severity, fixes: tuple[Fix, ...]) -> None:
    finding = answer_to(text, check)
    assert (finding.severity, finding.fixes, finding.facts) == (severity, fixes, ("symptoms[0].text",))
    assert "{" not in finding.summary


def test_what_is_not_named_is_left_out_of_the_sentence() -> None:
    check = "libcuda-not-on-linker-path"
    named = "libcuda.so cannot found! Possible files are located at ['/lib64/libcuda.so.1']."
    assert answer_to(named, check).summary.endswith("although /lib64/libcuda.so.1 exists")
    assert "although" not in answer_to("libcuda.so cannot found!", check).summary
