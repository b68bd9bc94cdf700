"""Distributions that install the same module."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.installed import Machine, matching_packages
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Driver, Finding, Package, Python, Remedy, Severity, Symptom, System, Torch
from gpudoctor.model.record import record
from gpudoctor.registry import check, known
from gpudoctor.remedies import install_packages, reinstall_torch
from gpudoctor.remedies.commands import environment_of


@record
class _Module:
    """A module, the distributions that install it, and the one to keep with and without an NVIDIA GPU."""

    name: str
    distributions: tuple[str, ...]
    with_gpu: str
    without_gpu: str


# Source: the top-level packages in the wheels of these distributions on PyPI.
MODULES = (
    _Module(
        name="onnxruntime",
        distributions=(
            "onnxruntime",
            "onnxruntime-gpu",
            "onnxruntime-directml",
            "onnxruntime-openvino",
            "onnxruntime-training",
        ),
        with_gpu="onnxruntime-gpu",
        without_gpu="onnxruntime",
    ),
    _Module(
        name="tensorflow",
        distributions=("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-rocm", "tf-nightly"),
        with_gpu="tensorflow",
        without_gpu="tensorflow-cpu",
    ),
    _Module(
        name="triton",
        distributions=("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"),
        with_gpu="triton",
        without_gpu="triton",
    ),
    _Module(
        name="faiss",
        distributions=("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12"),
        with_gpu="faiss-gpu-cu12",
        without_gpu="faiss-cpu",
    ),
)


@check(family="python")
def package_twins(
    python: Python | None = None,
    torch: Torch | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """Two installed distributions provide the same module, as onnxruntime and onnxruntime-gpu do.

    Why: the files of the one overwrite those of the other, so that which one works depends on the order of
    installation, and removing one breaks both. A PyTorch of conda over which pip installed another is such a pair.
    Exception: one distribution in two folders, as in a virtual environment that sees the system's packages, passes.
    CuPy has cupy-multiple-packages, pynvml has pynvml-deprecated.
    Reference: https://packaging.python.org/en/latest/discussions/distribution-package-vs-import-package/
    """
    told = tuple(_told(python, symptoms))
    yield from told
    if told and (python is None or python.packages is None):
        return
    packages = known(python.packages if python is not None else None, "python.packages")
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    for module in MODULES:
        twins = _in_one_folder(matching_packages(python, *module.distributions))
        if len({package.name for package in twins}) > 1 and not told:
            yield _finding(module, twins, packages, machine)
    yield from _torch_twice(packages, torch, machine)


def _told(python: Python | None, symptoms: tuple[Symptom, ...] | None) -> Iterator[Finding]:
    """Yield what a report says that names both packages of onnxruntime, and an onnxruntime without CUDA."""
    without = reported(symptoms, "onnxruntime-without-cuda")[:1]
    both = reported(symptoms, "onnxruntime-twins-told")[:1]
    if without and both:
        yield Finding(
            severity=Severity.WARNING,
            summary="onnxruntime and onnxruntime-gpu both install the module onnxruntime, and the one that is imported "
            f"has no CUDA: {without[0][1].text}",
            subject="onnxruntime",
            facts=(without[0][0], both[0][0]),
            remedies=(
                install_packages(
                    python=python,
                    remove=("onnxruntime", "onnxruntime-gpu"),
                    requirements=("onnxruntime-gpu",),
                    summary="Remove onnxruntime and onnxruntime-gpu, then install onnxruntime-gpu alone",
                    verify="import onnxruntime; print(onnxruntime.get_available_providers())",
                ),
            ),
        )


def _in_one_folder(found: list[Package]) -> list[Package]:
    """Return those packages that share their folder with another one."""
    folders = [package.location for package in found]
    return [package for package in found if folders.count(package.location) > 1]


def _finding(module: _Module, twins: list[Package], packages: tuple[Package, ...], machine: Machine) -> Finding:
    names = [f"{package.name} {package.version}" for package in twins]
    keep = module.with_gpu if machine.gpu() else module.without_gpu
    if keep not in {package.name for package in twins}:
        keep = twins[-1].name
    version = next(package.version for package in twins if package.name == keep)
    return Finding(
        severity=Severity.WARNING,
        summary=f"{' and '.join(names)} both install the module {module.name}",
        subject=module.name,
        facts=tuple(f"python.packages[{packages.index(package)}].version" for package in twins),
        remedies=(
            install_packages(
                python=machine.python,
                remove=tuple(dict.fromkeys(package.name for package in twins)),
                requirements=(f"{keep}=={version.public}",),
                summary=f"Remove {' and '.join(package.name for package in twins)}, then install {keep} alone",
                verify=f"import {module.name}; print({module.name}.__version__)",
            ),
        ),
    )


def _torch_twice(packages: tuple[Package, ...], torch: Torch | None, machine: Machine) -> Iterator[Finding]:
    """Yield a finding where PyTorch was installed over another one: by pip over conda's, or twice in one folder."""
    places = [number for number, package in enumerate(packages) if package.name == "torch"]
    found = [packages[number] for number in places]
    over_conda = torch is not None and bool(torch.conda_build) and any(p.installer in ("pip", "uv") for p in found)
    twice = len(_in_one_folder(found)) > 1
    if not over_conda and not twice:
        return
    named = " and ".join(f"{package.version} of {package.installer or 'an unknown tool'}" for package in found)
    conda = f", over conda's build {torch.conda_build}" if torch is not None and over_conda and not twice else ""
    yield Finding(
        severity=Severity.WARNING,
        summary=f"PyTorch is installed twice in one environment: {named}{conda}",
        subject="torch",
        facts=(
            *(f"python.packages[{number}].version" for number in places),
            *(("torch.conda_build",) if over_conda else ()),
        ),
        remedies=(_one_torch(torch, machine),),
    )


def _one_torch(torch: Torch | None, machine: Machine) -> Remedy:
    """Return how to keep the PyTorch that pip installed last, which is the one that is imported."""
    environment = environment_of(machine.python, machine.system)
    from_pip = replace(torch, conda_build="", conda_cpuonly=False) if torch is not None else None
    again = reinstall_torch(python=machine.python, system=machine.system, pytorch=from_pip)
    remove = [environment.uninstall(["torch"])]
    if environment.conda_prefix and torch is not None and torch.conda_build:
        remove.append(environment.conda("remove", ["--force", "pytorch"]))
    return Remedy(
        summary="Remove PyTorch with both tools, then install it once, with pip",
        commands=(*remove, *again.commands) if again.commands else (),
        reference=again.reference,
    )
