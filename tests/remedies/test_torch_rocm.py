"""PyTorch for AMD GPUs: the release with code for the GPU, and code of the same family."""

import pytest

from gpudoctor.model import AmdGpu, Fix, PackageVersion, Python, Pytorch, Remedy, Symptom, System
from tests.remedies.made import made, made_one

LINUX = System(os="linux", machine="x86_64", glibc="2.39")
WINDOWS = System(os="windows", machine="AMD64")
PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="pip")
PIP = "/v/bin/python -m pip"
INDEX = "https://download.pytorch.org/whl"


def torch(version: str) -> Pytorch:
    return Pytorch(installed=True, version=PackageVersion(version))


def first_commands(remedies: tuple[Remedy, ...]) -> list[str]:
    return [next(iter(remedy.commands), "") for remedy in remedies]


@pytest.mark.parametrize(("system", "installs"), [(LINUX, True), (System(os="linux", wsl=2), True), (WINDOWS, False)])
def test_its_builds_are_for_linux(system: System, installs: bool) -> None:
    amd = AmdGpu(targets=("gfx1100",))
    fix = Fix("install-torch-for-rocm")
    remedy = made_one(fix, python=PYTHON, system=system, amd_gpu=amd, pytorch=torch("2.9.0"))
    assert ("torch-directml" in remedy.commands[0]) is not installs
    if installs:
        assert remedy.commands[0] == f"{PIP} uninstall --yes torch torchvision torchaudio"
        assert f"'torch==2.9.*' torchvision torchaudio --index-url {INDEX}/rocm" in remedy.commands[1]


@pytest.mark.parametrize(
    ("targets", "release", "variant"),
    [
        pytest.param(("gfx1100",), "2.9", "rocm6.4", id="the installed release has code for it"),
        pytest.param(("gfx1151",), "2.13", "rocm7.2", id="a newer one has"),
        pytest.param(("gfx906", "gfx1151"), "2.9", "rocm6.4", id="it has for one of them"),
        pytest.param((), "2.9", "rocm6.4", id="the GPU is unknown"),
    ],
)
def test_the_release_with_code_for_the_gpu(targets: tuple[str, ...], release: str, variant: str) -> None:
    amd = AmdGpu(targets=targets)
    remedy = made_one(Fix("install-torch-for-rocm"), system=LINUX, amd_gpu=amd, pytorch=torch("2.9.0"))
    assert remedy.commands[1].endswith(f"'torch=={release}.*' torchvision torchaudio --index-url {INDEX}/{variant}")


@pytest.mark.parametrize(
    ("name", "override", "commands"),
    [
        ("gfx1031", "", ["export HSA_OVERRIDE_GFX_VERSION=10.3.0", "rocminfo | grep gfx"]),
        ("gfx1031", "11.0.0", ["unset HSA_OVERRIDE_GFX_VERSION", "rocminfo | grep gfx"]),
        ("gfx906", "", ["rocminfo | grep gfx", "python -m pip install"]),
        ("gfx1100", "", ["rocminfo | grep gfx", "python -m pip install"]),
    ],
)
def test_code_of_the_same_family(name: str, override: str, commands: list[str]) -> None:
    found = first_commands(made(Fix("run-code-for-gfx-target", name=name, override=override)))
    assert all(command.startswith(wanted) for command, wanted in zip(found, commands, strict=True))


def test_the_first_release_with_code_for_a_card_is_installed() -> None:
    *_, install = made(Fix("run-code-for-gfx-target", name="gfx1201"), python=PYTHON)
    assert install.commands == (
        f"{PIP} install --upgrade 'torch==2.8.*' torchvision torchaudio --index-url {INDEX}/rocm6.4",
    )


def test_the_service_of_ollama_gets_the_variable_and_nobody_is_sent_to_pytorch() -> None:
    about = (Symptom(kind="about-ollama", text="ollama"),)
    target = Fix("run-code-for-gfx-target", name="gfx1031", override="10.3.0")
    first, second = made(target, system=LINUX, symptoms=about)
    assert "HSA_OVERRIDE_GFX_VERSION=10.3.0 | sudo tee /etc/systemd/system/ollama.service.d" in first.commands[1]
    assert "OLLAMA_VULKAN=1" in second.commands[1]
    assert "torch" not in f"{first}{second}".lower()
    (alone,) = made(target, system=WINDOWS, symptoms=about)
    assert alone.commands[0] == "setx OLLAMA_VULKAN 1"
    (on_mac,) = made(Fix("use-gpu-without-cuda-ollama"), system=System(os="darwin"))
    assert on_mac.commands == ("ollama ps",)


def test_windows_has_no_override() -> None:
    found = first_commands(made(Fix("run-code-for-gfx-target", name="gfx1032"), system=WINDOWS))
    assert found == ["rocminfo | grep gfx"]


def test_a_card_that_no_build_has_code_for() -> None:
    amd = AmdGpu(targets=("gfx803",))
    remedy = made_one(Fix("install-torch-for-rocm"), system=LINUX, amd_gpu=amd, pytorch=torch("2.9.0"))
    assert "gfx803" in remedy.summary
    assert remedy.commands[1].endswith("whl/cpu")
