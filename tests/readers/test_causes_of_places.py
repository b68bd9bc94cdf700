"""Causes that people tell with the place where a program runs, or with what else they see: guesses, called guesses."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system.\n"
NO_GPUS = "RuntimeError: No CUDA GPUs are available\n"
FALSE = ">>> torch.cuda.is_available()\nFalse\n"
SMI = "| NVIDIA-SMI 430.50       Driver Version: 430.50       CUDA Version: 10.1     |\n| 0  Tesla V100-PCIE...  On |\n"


def findings(text: str) -> list[Finding]:
    report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
    return [finding for finding in report.findings if finding.severity.name != "INFO"]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("nvidia-smi says no devices, inside my Ubuntu VirtualBox", "no-nvidia-gpu", id="VirtualBox"),
        pytest.param("How do I get the GPU to show up in VMware Workstation?", "no-nvidia-gpu", id="VMware"),
        pytest.param(NO_DRIVER + "It is a VM without a GPU", "no-nvidia-gpu", id="a machine without a GPU"),
        pytest.param("Colab notebook\n" + NO_DRIVER, "no-nvidia-gpu", id="Colab"),
        pytest.param(NO_DRIVER + "I run it in Kaggle. At home I have a Radeon RX 7600.", "no-nvidia-gpu", id="Kaggle"),
        pytest.param("I run this in Google Colab\n" + NO_GPUS, "no-nvidia-gpu", id="Colab without devices"),
        pytest.param(
            "I run this in Google Colab, the T4 runtime is selected\n" + NO_GPUS,
            "cuda-visible-devices-hides-gpu",
            id="Colab with a GPU",
        ),
        pytest.param(
            "docker build fails at `RUN python setup.py install`: no CUDA-capable device is detected",
            "container-without-gpu",
            id="an image that is built",
        ),
        pytest.param(NO_DRIVER + "My laptop has an Intel graphics card", "no-nvidia-gpu", id="Intel"),
        pytest.param(
            "Every other torch project uses my GPU, here I get\n" + NO_GPUS,
            "cuda-visible-devices-hides-gpu",
            id="other programs see it",
        ),
        pytest.param("CUDA available: True\n...\n" + NO_GPUS, "cuda-visible-devices-hides-gpu", id="it was there"),
        pytest.param(
            "ERROR: Detected NVIDIA Tesla M40 GPU, which is not supported by this container",
            "compute-capability-unsupported",
            id="an image without code for the GPU",
        ),
        pytest.param("RTX 2080, the nouveau driver is loaded, CUDA fails", "driver-not-loaded", id="nouveau"),
        pytest.param(
            "GTX 970: since the update the kernel module fails to load for Maxwell cards, nvidia-smi fails",
            "open-kernel-module-unsupported-gpu",
            id="an old GPU",
        ),
        pytest.param("Once my PC wakes up, Whisper no longer uses the GPU", "cuda-init-unknown-error-999", id="sleep"),
        pytest.param(
            "pip install torch==1.4.0\n" + FALSE + "What is the driver version?\n\n390.116",
            "driver-too-old",
            id="asked",
        ),
        pytest.param(FALSE + "It tells me my NVIDIA driver is too old", "driver-too-old", id="driver said to be old"),
        pytest.param(
            "conda install pytorch cudatoolkit=10.2 -c pytorch\n" + FALSE + SMI, "driver-too-old", id="asked of conda"
        ),
        pytest.param(
            "pytorch 1.9.0 with CUDA 11.1, driver version 440.82, on the login node:\n" + FALSE,
            "driver-too-old",
            id="CUDA named with PyTorch",
        ),
        pytest.param(NO_DRIVER + "The login node has no GPU", "no-nvidia-gpu", id="a node without a GPU"),
        pytest.param("On GitHub Actions the tests end with\n" + NO_DRIVER, "no-nvidia-gpu", id="a runner of CI"),
        pytest.param(
            "nvidia-open on a GTX 1050 Ti: the module could not be loaded",
            "open-kernel-module-unsupported-gpu",
            id="the open module",
        ),
        pytest.param(
            "pip install git+https://example.org/ext.git\nNo module named 'torch', and torch 2.3.0 is in pip list",
            "build-isolation-hides-torch",
            id="a package from its repository",
        ),
        pytest.param(
            "The portable build still uses its own PyTorch, CPU", "wrong-python-environment", id="own PyTorch"
        ),
        pytest.param(
            "In python_embeded I ran `pip install torch`: already satisfied in c:\\Python311\\lib\\site-packages",
            "wrong-python-environment",
            id="pip of another Python",
        ),
        pytest.param("Does it run CUDA on a MacBook?", "mps-issues", id="CUDA on a Mac"),
        pytest.param(
            "torch 2.5.1 is there (pip list: torch 2.5.1+cu124)\nbuilding natten: No module named 'torch'",
            "build-isolation-hides-torch",
            id="a package that is built",
        ),
        pytest.param(
            "No module named 'torch' when I install the node\n  ModuleNotFoundError: No module named 'torch'\n"
            "  [end of output]\ntorch                2.5.1+cu124\n",
            "build-isolation-hides-torch",
            id="the output of a build",
        ),
    ],
)
def test_cause(text: str, check: str) -> None:
    assert [finding.check_id for finding in findings(text)][:1] == [check]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("CUDA works in the VM by passthrough of the GPU", id="passthrough"),
        pytest.param("We ship it for servers and also for a virtual machine", id="a virtual machine"),
        pytest.param("torch.cuda.is_available() is True, as in Colab", id="Colab and a GPU"),
        pytest.param("docker build is done, docker run shows nothing odd", id="an image"),
        pytest.param("nouveau is blacklisted, the NVIDIA driver is loaded", id="no nouveau"),
        pytest.param("I blacklisted nouveau, everything works", id="blacklisted"),
        pytest.param("Pascal cards are supported by the driver", id="an old GPU that works"),
        pytest.param("After sleep the program uses the GPU again", id="sleep"),
        pytest.param("The Intel graphics card drives the display, I have an NVIDIA GPU too", id="two GPUs"),
        pytest.param("The tests run on GitHub Actions and on servers without a GPU", id="CI"),
        pytest.param("pytorch 1.9.0 with CUDA 11.1 and driver version 440.82", id="versions alone"),
        pytest.param("nvidia-open works on my GTX 1660", id="the open module works"),
        pytest.param("CUDA available: True, the other project uses the GPU too", id="both see it"),
    ],
)
def test_no_cause(text: str) -> None:
    assert findings(f"Python 3.11\n{text}") == []


@pytest.mark.parametrize(
    "text",
    [
        NO_DRIVER + "in Google Colab",
        "CUDA in VirtualBox",
        "Another project uses the GPU, this one: " + NO_GPUS,
        "the nouveau driver is loaded",
        "The web UI still uses its own PyTorch",
    ],
)
def test_a_guess_is_called_one(text: str) -> None:
    finding = findings(text)[0]
    assert (finding.certain, "probably" in finding.summary) == (False, True)


def test_what_runs_elsewhere_is_no_reason() -> None:
    finding = findings("It works fine in Colab, on my PC it does not.\n" + NO_DRIVER)[0]
    assert finding.check_id == "driver-missing"


def test_an_amd_gpu_at_home_gets_no_rocm_on_colab() -> None:
    found = findings(NO_DRIVER + "I run it in Google Colab and own a Radeon RX 6700 XT")
    assert "cuda-build-on-amd" not in [finding.check_id for finding in found]
    assert "runtime" in found[0].remedies[0].summary
