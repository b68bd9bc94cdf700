"""Installed libraries that need the NVIDIA driver, and whether it supports them."""

from collections.abc import Iterator
from typing import NamedTuple

from gpudoctor.data.drivers import driver_can_run, offered_cuda_can_run, old_torch_cuda, tensorflow_cuda
from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import CudaVersion, Cupy, CupyRuntime, Driver, Symptom, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.gpu_conclusions import Consumer, Consumers
from gpudoctor.symptoms import Symptoms, of_kind, with_role


def consumers(
    torch: Torch,
    torch_runtime: TorchRuntime,
    cupy: Cupy,
    cupy_runtime: CupyRuntime,
    toolkit: Toolkit,
    driver: Driver,
    system: System,
    symptoms: Symptoms = None,
) -> Consumers:
    """Return PyTorch, CuPy, TensorFlow and nvcc with the CUDA version that the driver must support for each."""
    checked = _Driver(driver=driver, system=system)
    nvcc = toolkit.nvcc_version
    return Consumers(
        ask_for_cuda=asks_for_cuda(torch, cupy),
        libraries=(
            *_torch(torch, torch_runtime, checked, _named(symptoms)),
            *_cupy(cupy, cupy_runtime, checked),
            *_tensorflow(checked, symptoms),
        ),
        nvcc=None
        if nvcc is None
        else Consumer(
            name="nvcc",
            says=f"nvcc is from CUDA {nvcc}",
            cuda_version=nvcc,
            fact="toolkit.nvcc_version",
            runs=checked.runs(nvcc),
        ),
    )


def asks_for_cuda(torch: Torch, cupy: Cupy) -> bool | None:
    """Return whether a CUDA build of PyTorch or CuPy is installed; None if unknown."""
    if torch.build == "cuda" or torch.cuda_version is not None:
        return True
    if cupy.distributions and cupy.platform != "rocm":
        return True
    torch_known = torch.installed is False or torch.build is not None
    return False if torch_known and not cupy.distributions else None


class _Driver(NamedTuple):
    driver: Driver
    system: System

    def runs(self, cuda: CudaVersion) -> bool | None:
        """Return whether the driver runs programs built with `cuda`; None if unknown.

        libcuda's CUDA version counts in addition to the driver version: with the package cuda-compat it is higher.
        """
        version, offered = self.driver.version or self.driver.module_version, self.driver.cuda_version
        os = "windows" if self.system.os == "windows" or self.system.wsl else "linux"
        by_version = driver_can_run(version, cuda, os) if version is not None else None
        return by_version if by_version or offered is None else offered_cuda_can_run(offered, cuda)


def _torch(torch: Torch, runtime: TorchRuntime, driver: _Driver, asked: Symptom | None) -> Iterator[Consumer]:
    cuda = torch.cuda_version or runtime.cuda_version
    fact = "torch.cuda_version" if torch.cuda_version is not None else "torch_runtime.cuda_version"
    likely, built = "", "was built"
    if cuda is None and asked is not None and torch.build in (None, "cuda") and runtime.available is False:
        # The build may be another one, but a build that the driver cannot run is wrong in any case.
        named = CudaVersion.parse(asked.names["version"])
        if driver.runs(named) is False:
            cuda, fact, built = named, asked.fact, "was probably built"
            likely = f'the report has "{asked.text}"'
    if cuda is None:
        cuda, fact, built = _of_default_index(torch, runtime, driver.system), "torch.version", "was probably built"
        likely = "what the default package index serves under that version"
    if cuda is not None:
        yield Consumer(
            name="torch",
            says=f"PyTorch {built} with CUDA {cuda}",
            cuda_version=cuda,
            fact=fact,
            works=bool(runtime.available),
            runs=driver.runs(cuda),
            likely=likely,
        )


def _named(symptoms: Symptoms) -> Symptom | None:
    """Return the message with the only CUDA version requested from conda or named together with PyTorch."""
    found = of_kind(symptoms, "conda-cuda-asked", "torch-cuda-named")
    said = [symptom for symptom in found if "." in symptom.names.get("version", "")]
    return said[0] if len({symptom.names["version"] for symptom in said}) == 1 else None


def _of_default_index(torch: Torch, runtime: TorchRuntime, system: System) -> CudaVersion | None:
    """Return the CUDA version of a PyTorch of which only the version is known, as in a pasted "pip list"."""
    if torch.version is None or torch.build not in (None, "cuda") or torch.version.local:
        return None
    if runtime.available is not False or system.os not in (None, "linux"):
        return None
    release = torch.version.minor_release
    defaults = [build.cuda for build in torch_builds(release) if build.pypi_default]
    return defaults[0] if defaults else old_torch_cuda(release)


def _cupy(cupy: Cupy, runtime: CupyRuntime, driver: _Driver) -> Iterator[Consumer]:
    cuda, fact = runtime.runtime_cuda_version, "cupy_runtime.runtime_cuda_version"
    says = f"CuPy uses CUDA {cuda}"
    if cuda is None and cupy.cuda_major is not None:
        # The wheel runs on every driver of its CUDA major version: compare with the first minor version.
        cuda, fact = CudaVersion(cupy.cuda_major, 0), "cupy.cuda_major"
        says = f"CuPy is built for CUDA {cupy.cuda_major}"
    if cuda is not None:
        yield Consumer(
            name="cupy",
            says=says,
            cuda_version=cuda,
            fact=fact,
            works=bool(runtime.device_count),
            has_variants=cupy.cuda_major is not None,
            runs=driver.runs(cuda),
        )


def _tensorflow(driver: _Driver, symptoms: Symptoms) -> Iterator[Consumer]:
    """Yield TensorFlow if a report names one release of it, which the driver cannot run. No probe imports it."""
    named = of_kind(symptoms, "release-of-tensorflow")
    if len({symptom.names["version"] for symptom in named}) != 1 or with_role(symptoms, "works"):
        return
    release = named[0].names["version"]
    cuda = tensorflow_cuda(release)
    if cuda is not None and driver.runs(cuda) is False:
        yield Consumer(
            name="tensorflow",
            says=f"TensorFlow {release} is built with CUDA {cuda}",
            cuda_version=cuda,
            fact=named[0].fact,
            runs=False,
            likely=f'the report has "{named[0].text}"',
        )
