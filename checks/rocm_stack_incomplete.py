"""The parts of ROCm other than PyTorch: kernel driver, permissions, libraries."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Symptom
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind
from gpudoctor.symptoms.answers import answers

KINDS = ("rocm-module-not-loaded", "rocm-kfd-denied", "rocm-library-missing", "rocm-no-device")


@check(family="vendor", explains=("torch-cuda-unavailable", "torch-import-failed", "torch-cpu-build", "runs-on-cpu"))
def rocm_stack_incomplete(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """ROCm cannot reach the AMD GPU: no permission, no kernel driver, or a library of another version.

    Why: ROCm opens /dev/kfd and /dev/dri/renderD*, which belong to the groups render and video; a container gets them
    with --device. ROCm libraries have their major version in their names: ROCm 7 has no libhipblas.so.2.
    Exception: this check finds only messages in a report. It does not read the device nodes of this machine.
    Reference: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html
    """
    found = (answers(of_kind(symptoms, kind)[:1], "rocm-stack-incomplete") for kind in KINDS)
    unloaded, denied, library, unseen = found
    skip_unless(unloaded or denied or library or unseen, "no message reports this problem")
    yield from unloaded or denied
    # Of the general message a more exact one is the reason.
    yield from library or (() if unloaded or denied else unseen)
