"""Distributions that install the same module."""

from collections.abc import Iterator

from gpudoctor.data.packages import SharedModule, shared_modules
from gpudoctor.model import CpuUse, Finding, Fix, Gpu, Origin, Package, Python, Torch
from gpudoctor.registry import check, known


@check(family="python", explains=("runs-on-cpu",))
def package_twins(
    origin: Origin, gpu: Gpu, cpu_use: CpuUse, python: Python = Python(), torch: Torch = Torch()
) -> Iterator[Finding]:
    """Two installed distributions provide the same module, as onnxruntime and onnxruntime-gpu do.

    Why: one package overwrites files of the other, so the order of installation decides which one works, and removing
    one breaks both. A conda PyTorch with another one from pip on top is such a pair.
    Exception: one package in two folders, as in a virtual environment that sees the system's packages, passes. CuPy has
    cupy-multiple-packages, pynvml has pynvml-deprecated. If the module says that it computes on the CPU, that is
    runs-on-cpu.
    Reference: https://packaging.python.org/en/latest/discussions/distribution-package-vs-import-package/
    """
    packages = known(python.packages, "python.packages")
    for module in shared_modules():
        twins = _in_one_folder([package for package in packages if package.name in module.distributions])
        if len({package.name for package in twins}) > 1 and cpu_use.program != module.name:
            keep = module.with_gpu if gpu.name or origin.is_report else module.without_gpu
            yield _finding(module, twins, packages, keep)
    yield from _torch_twice(packages, torch)


def _in_one_folder(found: list[Package]) -> list[Package]:
    folders = [package.location for package in found]
    return [package for package in found if folders.count(package.location) > 1]


def _finding(module: SharedModule, twins: list[Package], packages: tuple[Package, ...], keep: str) -> Finding:
    names = tuple(dict.fromkeys(package.name for package in twins))
    kept = next((package for package in twins if package.name == keep), twins[-1])
    return Finding.warning(
        module.name,
        f"{' and '.join(f'{package.name} {package.version}' for package in twins)} both install the module "
        f"{module.name}",
        (f"python.packages[{packages.index(package)}].version" for package in twins),
        Fix(
            "keep-one-distribution",
            names=names,
            keep=kept.name,
            requirement=f"{kept.name}=={kept.version.public}",
            show=f"import {module.name}; print({module.name}.__version__)",
        ),
    )


def _torch_twice(packages: tuple[Package, ...], torch: Torch) -> Iterator[Finding]:
    """Yield a finding if PyTorch was installed over another one: by pip over conda's, or twice in one folder."""
    places = [number for number, package in enumerate(packages) if package.name == "torch"]
    found = [packages[number] for number in places]
    over_conda = bool(torch.conda_build) and any(p.installer in ("pip", "uv") for p in found)
    twice = len(_in_one_folder(found)) > 1
    if not over_conda and not twice:
        return
    named = " and ".join(f"{package.version} of {package.installer or 'an unknown tool'}" for package in found)
    conda = f", over conda's build {torch.conda_build}" if over_conda and not twice else ""
    summary = f"PyTorch is installed twice in one environment: {named}{conda}"
    facts = (*(f"python.packages[{number}].version" for number in places), "torch.conda_build" if over_conda else "")
    yield Finding.warning("torch", summary, facts, Fix("keep-one-torch"))
