"""Tools to compile extensions and Triton kernels: toolkit, compiler, headers, and access to PyTorch."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.capabilities import first_toolkit, last_toolkit
from gpudoctor.data.cuda_libraries import first_apt_toolkit, first_toolkit_for_gcc
from gpudoctor.data.torch_builds import torch_builds
from gpudoctor.model import ComputeCapability, CudaVersion, Device, Fix, Python, Pytorch, Remedy, System, Toolkit
from gpudoctor.remedies.commands import environment_of, python_command, with_sudo
from gpudoctor.remedies.fixes import Machine, fix
from gpudoctor.remedies.torch_install import install_torch

ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"
APT = ("ubuntu", "debian")
POLICY = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy"
# Packages that a build without isolation needs. Source: flash-attention, README, "Installation and features".
BUILD_TOOLS = ("setuptools", "wheel", "packaging", "ninja")
REFERENCE = "https://pip.pypa.io/en/stable/cli/pip_install/#cmdoption-no-build-isolation"


@fix
def install_python_headers(*, python: Python, system: System) -> tuple[Fix, ...]:
    """Return how to install the development files of Python."""
    release = ".".join(map(str, python.version.release[:2])) if python.version else ""
    linux = Fix("install-apt-python-headers", package=f"python{release or '3'}-dev")
    windows = Fix("copy-python-headers")
    return (windows,) if system.os == "windows" else (linux, windows)


@fix
def install_compiler(*, visual_studio: bool = False, python: Python, system: System) -> tuple[Fix, ...]:
    """Return how to install a compiler. visual_studio: cl.exe is missing."""
    linux: tuple[Fix, ...] = ()
    if system.os != "windows":
        linux = (Fix("install-conda-gcc" if environment_of(python, system).conda_prefix else "install-system-gcc"),)
    may_be_windows = system.os in ("windows", None) or visual_studio
    return (*linux, *((Fix("install-visual-studio-build-tools"),) if may_be_windows else ()))


@fix
def install_gcc(*, newest: int, python: Python, system: System) -> Fix:
    """Return how to compile with a gcc version that nvcc accepts.

    PyTorch passes CC to nvcc as host compiler, CMake uses CUDAHOSTCXX, and nvcc itself NVCC_CCBIN for -ccbin.
    Source: torch/utils/cpp_extension.py; CMake's documentation of CUDAHOSTCXX; nvcc --help.
    """
    if environment_of(python, system).conda_prefix:
        return Fix("install-older-conda-gcc", newest=newest)
    by_apt = system.distribution in APT
    return Fix("install-older-apt-gcc" if by_apt else "install-older-gcc", newest=newest)


@fix
def newer_toolkit_for_compiler(*, gcc: str) -> Remedy:
    """Return the newer toolkit that accepts this gcc version; "" for another compiler or an unknown version."""
    major = int(gcc.partition(".")[0]) if gcc else None
    first = first_toolkit_for_gcc(major) if major is not None else None
    which = f"CUDA {first} or newer accepts gcc {major}" if first else "newer ones accept newer compilers"
    return Remedy(
        summary=f"Install a newer CUDA toolkit ({which}), of the major version that PyTorch was built with",
        reference=POLICY,
    )


@fix
def build_without_isolation(
    *, package: str, pytorch: Pytorch, python: Python, system: System
) -> tuple[Remedy | Fix, ...]:
    """Return how to build a package so that its setup.py finds PyTorch. package: "" if unknown."""
    environment = environment_of(python, system)
    first = "" if pytorch.installed else ", after PyTorch is installed there"
    name = package or "PACKAGE"
    install = environment.install(["--no-build-isolation", name])
    return (
        Remedy(
            summary=f"Build {package or 'it'} in the environment itself with --no-build-isolation{first}. The build "
            "tools must be installed there too",
            commands=(
                *environment.setup,
                python_command(python, "-c", "import torch; print(torch.__version__)"),
                environment.install([*BUILD_TOOLS]),
                *((install,) if package else ()),
            ),
            reference=REFERENCE,
        ),
        Fix("build-without-isolation-in-uv", name=name),
    )


@fix
def use_toolkit(*, cuda: CudaVersion | None, toolkit: Toolkit, python: Python, system: System) -> Remedy | Fix:
    """Return how to compile with the toolkit for `cuda` (None: PyTorch's), and how to install it if it is missing."""
    fitting = [
        install
        for install in toolkit.toolkits or ()
        if install.has_nvcc and install.version is not None and (cuda is None or install.version.major == cuda.major)
    ]
    if fitting:
        nearest = max(fitting, key=lambda install: (install.version == cuda, str(install.version)))
        return Fix(
            "set-variable",
            name="CUDA_HOME",
            value=nearest.path,
            summary=f"Compile with the CUDA {nearest.version} toolkit, which is also installed",
        )
    of = f"CUDA {cuda}" if cuda else "the CUDA version that torch.version.cuda names"
    environment = environment_of(python, system)
    if environment.conda_prefix:
        return Fix("install-conda-toolkit-of-version" if cuda else "install-conda-toolkit", which=of, cuda=cuda)
    commands = tuple(_install(cuda, environment.windows, python, system))
    by_apt = any("apt-get install" in command for command in commands)
    source = ". The package is in NVIDIA's repository, which the linked page adds to apt" if by_apt else ""
    return Remedy(
        summary=f"Install the toolkit for {of} as well, and set CUDA_HOME to it{source}",
        commands=commands,
        needs=("root",),
        reference=ARCHIVE,
    )


def _install(cuda: CudaVersion | None, windows: bool, python: Python, system: System) -> Iterator[str]:
    if windows:
        version = f"v{cuda}" if cuda else "v12.8"
        yield rf"$env:CUDA_HOME = 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\{version}'"
        yield r"& $env:CUDA_HOME\bin\nvcc --version"
        return
    distribution = system.distribution
    first = first_apt_toolkit(distribution, system.distribution_version)
    if cuda is not None and first is not None and cuda < first:
        # NVIDIA's apt repository has no toolkit that old, so use the installer from the archive.
        yield with_sudo(f"sh cuda_{cuda}*_linux.run --toolkit --silent", system)
    elif cuda is not None and distribution in (None, *APT):
        # From NVIDIA's repository. The package cuda would also install a driver.
        yield with_sudo(f"apt-get install --yes cuda-toolkit-{cuda.major}-{cuda.minor}", system)
    if cuda is None:
        yield python_command(python, "-c", "import torch; print(torch.version.cuda)")
    home = f"/usr/local/cuda-{cuda}" if cuda else "/usr/local/cuda"
    yield f"export CUDA_HOME={home}"
    yield 'export PATH="$CUDA_HOME/bin:$PATH"'
    yield "nvcc --version"


@fix
def torch_for_toolkit(*, machine: Machine, nvcc: CudaVersion) -> tuple[Remedy, ...]:
    """Return how to install a PyTorch for the toolkit's CUDA major version; nothing if no release has one."""
    offered = {
        build.cuda for build in torch_builds() if build.cuda.major == nvcc.major and build.available is not False
    }
    if not offered:
        return ()
    cuda = max(offered, key=lambda version: (version <= nvcc, version if version <= nvcc else CudaVersion(0, 0)))
    remedy: Remedy = machine.call(install_torch, cuda=cuda)
    if not remedy.commands:
        return ()
    summary = f"Match PyTorch to the installed toolkit (CUDA {nvcc}): {remedy.summary}"
    return (replace(remedy, summary=summary),)


@fix
def name_to_cmake(devices: tuple[Device, ...] | None) -> Fix:
    """Return how to pass nvcc and the architectures to CMake."""
    return Fix("name-nvcc-to-cmake", listed=";".join(_capabilities(devices)).replace(".", "") or "86")


@fix
def name_architectures(*, devices: tuple[Device, ...] | None) -> Fix:
    """Return how to name the architectures to compile for."""
    found = _capabilities(devices)
    names = "of the GPU" if found else "of the GPUs that it will run on, for example"
    return Fix("list-architectures", listed=";".join(found) or "8.0;8.6;9.0", names=names)


def _capabilities(devices: tuple[Device, ...] | None) -> list[str]:
    return list(map(str, sorted({d.compute_capability for d in devices or () if d.compute_capability is not None})))


@fix
def other_architectures(*, architecture: str, nvcc: CudaVersion | None) -> Remedy:
    """Return which toolkit compiles for the architecture, or how to leave it out."""
    capability = ComputeCapability.parse(architecture)
    last = last_toolkit(capability)
    first = first_toolkit(capability)
    span = f"CUDA {last} is the last" if last else f"CUDA {first} is the first" if first else "another CUDA is needed"
    here = f", and nvcc here is from CUDA {nvcc}" if nvcc else ""
    return Remedy(
        summary=f"{span} that compiles for {architecture}{here}: compile with another toolkit, or leave it out of "
        "TORCH_CUDA_ARCH_LIST (CMAKE_CUDA_ARCHITECTURES with CMake) if no such GPU is used",
        commands=("nvcc --list-gpu-arch",),
    )
