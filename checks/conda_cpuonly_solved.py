"""conda's choice of PyTorch's build."""

from collections.abc import Iterator

from gpudoctor.model import CudaIntent, Finding, Fix, Gpu, Origin, Place, Torch
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind


@check(family="torch", explains=("torch-cpu-build", "torch-cuda-unavailable", "torchvision-mismatch", "runs-on-cpu"))
def conda_cpuonly_solved(
    gpu: Gpu, cuda_intent: CudaIntent, torch: Torch, origin: Origin, place: Place, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """conda's solver chose the CPU build of PyTorch on a machine with an NVIDIA GPU.

    Why: conda installs no CUDA build as long as the package cpuonly is installed. Without it, the solver still chooses
    the CPU build if the requested packages leave no CUDA build, or if it sees no driver (conda-forge's virtual package
    __cuda), as on a login node or during an image build.
    Exception: without a GPU the CPU build is right. torch-cpu-build reports a PyTorch that pip installed. If a report
    does not name the GPU, a request for CUDA or conda's package __cuda is enough; otherwise this is a warning.
    Reference: https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch
    """
    skip_unless(torch.installed is not False, "PyTorch is not installed")
    said = next((symptom.fact for symptom in of_kind(symptoms, "conda-cpu-chosen")), "")
    build = (torch.conda_build or None) if said else known(torch.conda_build, "torch.conda_build")
    skip_unless(said or build, "conda did not install PyTorch")
    if torch.build not in (None, "cpu") and not (said and "cpu" in (torch.conda_build or "")):
        return  # a report may also show another environment, in which it works
    if not (said or torch.conda_cpuonly or "cpu" in str(build)):
        return
    wanted = cuda_intent.conda or cuda_intent.fact
    complained = said and of_kind(symptoms, "asks-trouble", "asks-failure")
    is_asked = (build or complained) and origin.is_report and not place.is_mac  # who pastes this asks about a GPU
    if not wanted and not is_asked:
        known(gpu.name, "devices")
    if gpu.name == "":
        return
    version = f" {torch.version}" if torch.version else ""
    chosen = f"the CPU build{f' {build}' if build else ''} of PyTorch{version}"
    evidence = "torch.conda_build" if build else said
    if gpu.name is None and not wanted:
        summary = f"conda chose {chosen}, which cannot use an NVIDIA GPU"
        fixes = Fix("install-torch-with-conda"), Fix("name-conda-build")
        yield Finding.warning(f"torch{version}", summary, (evidence,), *fixes)
        return
    forced = " because its package cpuonly is installed" if torch.conda_cpuonly else ""
    why = f"the GPU is {gpu.name}" if gpu.name else cuda_intent.conda_reason or cuda_intent.reason
    asked = [found.names.get("version", "") for found in of_kind(symptoms, "conda-cuda-asked")]
    cuda = next((version for version in asked if version[:2] in ("12", "13")), "12")
    yield Finding.error(
        f"torch{version}",
        f"conda chose {chosen}{forced}, and {why}",
        (evidence, "torch.conda_cpuonly", gpu.fact or wanted),
        Fix("install-torch-for-gpu-nodes", cuda=cuda) if of_kind(symptoms, "login-node-install") else None,
        Fix("install-torch-with-conda"),
        Fix("keep-torch-release"),
        Fix("name-conda-build"),
    )
