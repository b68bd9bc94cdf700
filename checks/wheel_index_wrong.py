"""The version of PyTorch that an installer was asked for against the index that it looked in."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, TorchRequest
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

MOST_NAMED = 4


@check(family="torch", explains=("torch-not-installed", "torch-import-failed"))
def wheel_index_wrong(torch_request: TorchRequest, symptoms: Symptoms = None) -> Iterator[Finding]:
    """The package index in use does not have the requested version and variant of PyTorch.

    Why: pip fails with "No matching distribution found for torch". Every CUDA and ROCm variant has its own index with
    the releases that were built for it. A version such as 2.4.1+cu121 is on that index and not on PyPI.
    Exception: if the index has the version, but not for this Python, python-version-no-wheel reports it.
    Reference: https://pytorch.org/get-started/previous-versions/
    """
    if said := answers(symptoms, "wheel-index-wrong"):
        yield said[0]
        return
    request = torch_request
    skip_unless(not of_kind(symptoms, "cuda-packages-on-mac"), "there are no packages for CUDA on a Mac")
    skip_unless(request.fact, "no installer reports that it found no PyTorch")
    if request.is_about_python:
        return
    summary = f"{request.asked} is not {_where(request)}{_has(request)}"
    yield Finding.error(request.asked, summary, (request.fact,), Fix("install-torch-from-other-index"))


def _where(request: TorchRequest) -> str:
    if request.tool == "conda":
        return "in the channels that conda searched"
    if request.index is None:
        return "on the default index" if request.available != () else "on the index that was searched"
    return f"on PyTorch's index {request.index}" if request.index else "on PyTorch's index"


def _has(request: TorchRequest) -> str:
    if not request.available:
        return ""
    shown = request.available[-MOST_NAMED:]
    more = "among others " if len(request.available) > MOST_NAMED else ""
    return f", which has {more}{', '.join(shown)}"
