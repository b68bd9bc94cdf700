"""The CUDA toolkit that compiles extensions: choosing it, installing it, and a PyTorch that fits it."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.data import torch_builds
from gpudoctor.model import CudaVersion, Device, Driver, Python, Remedy, System, Toolkit, Torch
from gpudoctor.remedies.commands import environment_of, python_command, with_sudo
from gpudoctor.remedies.torch_install import install_torch
from gpudoctor.remedies.variables import set_variable

ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"
_APT = ("ubuntu", "debian")


def use_toolkit(
    *, cuda: CudaVersion | None, toolkit: Toolkit | None, python: Python | None, system: System | None
) -> Iterator[Remedy]:
    """Yield how to compile with the toolkit of `cuda` (None: of PyTorch): one that is here, else how to install it."""
    fitting = [
        install
        for install in (toolkit.toolkits if toolkit is not None else None) or ()
        if install.has_nvcc and install.version is not None and (cuda is None or install.version.major == cuda.major)
    ]
    if fitting:
        nearest = max(fitting, key=lambda install: (install.version == cuda, str(install.version)))
        yield set_variable(
            system=system,
            name="CUDA_HOME",
            value=nearest.path,
            summary=f"Compile with the toolkit of CUDA {nearest.version}, which is installed too",
        )
        return
    of = f"CUDA {cuda}" if cuda else "the CUDA version that torch.version.cuda names"
    environment = environment_of(python, system)
    if environment.conda_prefix:
        version = [f"cuda-version={cuda}"] if cuda else []
        command = environment.conda("install", ["--channel", "conda-forge", "cuda-toolkit", *version])
        yield Remedy(
            summary=f"Install the toolkit of {of} in the conda environment",
            commands=(command, "nvcc --version"),
        )
        return
    yield Remedy(
        summary=f"Install the toolkit of {of} beside what is there and set CUDA_HOME to it",
        commands=tuple(_install(cuda, environment.windows, python, system)),
        needs=("root",),
        reference=ARCHIVE,
    )


def _install(cuda: CudaVersion | None, windows: bool, python: Python | None, system: System | None) -> Iterator[str]:
    if windows:
        version = f"v{cuda}" if cuda else "v12.8"
        yield rf"$env:CUDA_HOME = 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\{version}'"
        yield r"& $env:CUDA_HOME\bin\nvcc --version"
        return
    if cuda is not None and (system is None or system.distribution in (None, *_APT)):
        # From NVIDIA's repository: the package cuda would bring a driver too.
        yield with_sudo(f"apt-get install --yes cuda-toolkit-{cuda.major}-{cuda.minor}", system)
    if cuda is None:
        yield python_command(python, "-c", "import torch; print(torch.version.cuda)")
    home = f"/usr/local/cuda-{cuda}" if cuda else "/usr/local/cuda"
    yield f"export CUDA_HOME={home}"
    yield 'export PATH="$CUDA_HOME/bin:$PATH"'
    yield "nvcc --version"


def torch_for_toolkit(  # noqa: PLR0913
    *,
    nvcc: CudaVersion,
    python: Python | None,
    system: System | None,
    driver: Driver | None,
    devices: tuple[Device, ...] | None,
    torch: Torch | None,
) -> Remedy | None:
    """Return how to install a PyTorch of the toolkit's CUDA major version, None where no release has one."""
    offered = {
        build.cuda for build in torch_builds() if build.cuda.major == nvcc.major and build.available is not False
    }
    if not offered:
        return None
    cuda = max(offered, key=lambda version: (version <= nvcc, version if version <= nvcc else CudaVersion(0, 0)))
    remedy = install_torch(python=python, system=system, driver=driver, devices=devices, torch=torch, cuda=cuda)
    if not remedy.commands:
        return None
    return Remedy(
        summary=f"Or install a PyTorch for the toolkit that is here (CUDA {nvcc}): {remedy.summary}",
        commands=remedy.commands,
        needs=remedy.needs,
        reference=remedy.reference,
    )
