"""Facts about software: toolkits, Python, PyTorch, CuPy and the projects that need them.

`None` means unknown, never none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.model.versions import ComputeCapability, CudaVersion, PackageVersion


@record
class ToolkitInstall:
    """A CUDA toolkit found on this machine."""

    path: str
    version: CudaVersion | None = None
    has_nvcc: bool = False


@record
class SharedLibrary:
    """A shared library that a loader finds."""

    soname: str
    path: str


@record
class Toolkit:
    """CUDA toolkits, compilers, and libraries that the loader's path puts before those of wheels."""

    nvcc_path: Annotated[str | None, Fact("nvcc that PATH or CUDA_HOME gives; empty for none")] = None
    nvcc_version: Annotated[CudaVersion | None, Fact("its CUDA version", source="nvcc --version")] = None
    toolkits: Annotated[tuple[ToolkitInstall, ...] | None, Fact("toolkits found, links resolved")] = None
    library_path_libraries: Annotated[
        tuple[SharedLibrary, ...] | None,
        Fact("CUDA libraries that LD_LIBRARY_PATH would load first", source="LD_LIBRARY_PATH"),
    ] = None
    system_libraries: Annotated[
        tuple[SharedLibrary, ...] | None, Fact("CUDA libraries in the loader's cache", source="ldconfig -p")
    ] = None
    host_compiler: Annotated[str | None, Fact('"gcc", "clang", "cl"; empty for none')] = None
    host_compiler_version: Annotated[
        tuple[int, ...] | None, Fact("version of the host compiler", source="cc -dumpfullversion")
    ] = None
    host_compiler_max: Annotated[
        int | None,
        Fact("newest major version of gcc that this nvcc accepts", source="crt/host_config.h of the toolkit"),
    ] = None


@record
class Package:
    """An installed Python distribution that matters for GPUs."""

    name: Annotated[str, Fact("normalised name: lower case, hyphens")]
    version: PackageVersion
    installer: Annotated[str, Fact('"pip", "uv", "conda"; empty where not recorded')] = ""
    location: Annotated[str, Fact("folder it is installed in")] = ""


@record
class Python:
    """The diagnosed interpreter and environment."""

    version: Annotated[PackageVersion | None, Fact("Python version", source="sys.version_info")] = None
    executable: Annotated[str | None, Fact("path of the interpreter", source="sys.executable")] = None
    prefix: Annotated[str | None, Fact("root of the environment", source="sys.prefix")] = None
    environment: Annotated[str | None, Fact('"venv", "conda" or "system"')] = None
    active_environment: Annotated[
        str | None, Fact("VIRTUAL_ENV, else CONDA_PREFIX: the environment that the shell has activated; empty for none")
    ] = None
    conda_name: Annotated[str | None, Fact("name of the conda environment", source="report")] = None
    installer: Annotated[str | None, Fact('tool that manages it: "pip", "uv" or "conda"')] = None
    project: Annotated[
        str | None, Fact('tool whose lock file decides what is installed: "uv", "poetry", "pixi"; "" for none')
    ] = None
    runner: Annotated[
        str | None, Fact('what the user starts its python with: "pipenv run", "micromamba run -n ml"', source="report")
    ] = None
    externally_managed: Annotated[bool | None, Fact("the distribution forbids pip in it (PEP 668)")] = None
    free_threaded: bool | None = None
    platform_tag: Annotated[str | None, Fact('"linux_x86_64"', source="sysconfig.get_platform")] = None
    packages: Annotated[
        tuple[Package, ...] | None, Fact("installed distributions that bear on GPUs", source="package metadata")
    ] = None
    shadowed_modules: Annotated[
        tuple[str, ...] | None, Fact('files that hide an installed module of the same name: "/work/torch.py"')
    ] = None

    @property
    def tag(self) -> str:
        """Its version in wheel tables: "3.12", "3.13t" if free-threaded; "" if unknown."""
        return self.version.minor_release + ("t" if self.free_threaded else "") if self.version is not None else ""

    def package(self, name: str) -> tuple[str, PackageVersion] | None:
        """Return the dotted path and the version of an installed distribution; None if it is absent or unknown."""
        for number, found in enumerate(self.packages or ()):
            if found.name == name:
                return f"python.packages[{number}].version", found.version
        return None

    def matching(self, *names: str) -> tuple[Package, ...]:
        """Return the installed distributions of these names; a name may end with "*"."""
        return tuple(found for found in self.packages or () if _matches(found.name, names))


@record
class Torch:
    """PyTorch on disk, read without importing it."""

    installed: Annotated[bool | None, Fact("a distribution or package torch is there")] = None
    version: Annotated[PackageVersion | None, Fact("torch.__version__", source="torch/version.py")] = None
    build: Annotated[str | None, Fact('"cuda", "rocm", "cpu", "xpu" or "mps"', source="torch/version.py")] = None
    cuda_version: Annotated[CudaVersion | None, Fact("CUDA version it was built with", source="torch/version.py")] = (
        None
    )
    hip_version: Annotated[
        str | None, Fact("ROCm version it was built with; empty for none", source="torch/version.py")
    ] = None
    location: Annotated[str | None, Fact("folder of the package")] = None
    architectures: Annotated[
        tuple[str, ...] | None, Fact('machine code and PTX inside: "sm_80", "compute_90"', source="flags in the binary")
    ] = None
    cxx11_abi: Annotated[bool | None, Fact("built with the C++11 ABI of libstdc++")] = None
    missing_libraries: Annotated[
        tuple[str, ...] | None,
        Fact("libraries that belong to the build and are not on disk", source="torch/lib, nvidia wheels"),
    ] = None
    conda_build: Annotated[
        str | None, Fact("build string of conda's package; empty without conda", source="conda-meta")
    ] = None
    conda_cpuonly: Annotated[
        bool | None, Fact("conda's package cpuonly or a cpu mutex is installed", source="conda-meta")
    ] = None


@record
class PrecisionResult:
    """A small product in one precision on one device, compared with the float64 result."""

    device: Annotated[str, Fact('"cuda:0", "mps", "cpu"')]
    precision: Annotated[str, Fact('"fp32", "tf32", "fp16", "bf16"')]
    relative_error: Annotated[float | None, Fact("largest error, relative to the largest value of the result")] = None
    error: Annotated[str, Fact("exception raised instead of a result; empty for none")] = ""


@record
class TorchRuntime:
    """PyTorch's answers after an import in a separate process."""

    import_error: Annotated[
        str | None, Fact("last line of the import's traceback; empty when it worked", source="import torch")
    ] = None
    version: Annotated[PackageVersion | None, Fact("torch.__version__", source="torch.__version__")] = None
    cuda_version: Annotated[CudaVersion | None, Fact("torch.version.cuda", source="torch.version.cuda")] = None
    hip_version: Annotated[str | None, Fact("torch.version.hip; empty for none", source="torch.version.hip")] = None
    available: Annotated[bool | None, Fact("torch.cuda.is_available()", source="torch.cuda.is_available")] = None
    availability_error: Annotated[
        str | None, Fact("why CUDA cannot be initialised; empty for no error", source="torch.cuda.init")
    ] = None
    device_count: Annotated[int | None, Fact("torch.cuda.device_count()", source="torch.cuda.device_count")] = None
    device_names: tuple[str, ...] | None = None
    device_capabilities: tuple[ComputeCapability, ...] | None = None
    architectures: Annotated[
        tuple[str, ...] | None, Fact("torch.cuda.get_arch_list()", source="torch.cuda.get_arch_list")
    ] = None
    cudnn_version: Annotated[int | None, Fact("torch.backends.cudnn.version(): 91002 is 9.10.2; 0 for none")] = None
    cudnn_error: Annotated[str | None, Fact("why cuDNN cannot be used; empty for no error")] = None
    matmul_tf32: Annotated[
        bool | None, Fact("float32 products may run in TF32", source="torch.backends.cuda.matmul")
    ] = None
    cudnn_benchmark: Annotated[bool | None, Fact("torch.backends.cudnn.benchmark", source="torch.backends.cudnn")] = (
        None
    )
    mps_built: bool | None = None
    mps_available: bool | None = None
    warnings: Annotated[tuple[str, ...] | None, Fact("warnings raised on the way", source="warnings")] = None
    precision_results: Annotated[tuple[PrecisionResult, ...] | None, Fact("products compared with float64")] = None

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """The path and text of every error and warning in it."""
        for name in ("import_error", "availability_error", "cudnn_error"):
            yield f"torch_runtime.{name}", getattr(self, name) or ""
        for number, text in enumerate(self.warnings or ()):
            yield f"torch_runtime.warnings[{number}]", text
        for number, result in enumerate(self.precision_results or ()):
            yield f"torch_runtime.precision_results[{number}].error", result.error


@record
class Cupy:
    """CuPy on disk, read without importing it."""

    distributions: Annotated[
        tuple[Package, ...] | None, Fact("every installed CuPy distribution; () for none", source="package metadata")
    ] = None
    version: Annotated[PackageVersion | None, Fact("version of the CuPy package", source="package metadata")] = None
    platform: Annotated[str | None, Fact('"cuda", "rocm" or "source"', source="name of the distribution")] = None
    cuda_major: Annotated[int | None, Fact("CUDA major version it is built for; None for a source build")] = None
    numpy_version: Annotated[PackageVersion | None, Fact("installed NumPy", source="package metadata")] = None
    numpy_requirement: Annotated[
        str | None, Fact('NumPy versions it declares: ">=2.0,<2.6"', source="package metadata")
    ] = None
    nvrtc_files: Annotated[
        tuple[str, ...] | None, Fact("NVRTC libraries that wheels brought", source="nvidia/*/lib")
    ] = None


@record
class LibraryCall:
    """A call into one of the libraries that CuPy uses, compared with NumPy."""

    library: Annotated[str, Fact('"elementwise", "cufft", "cublas", "nvrtc", "curand", "cusolver", "cusparse"')]
    relative_error: Annotated[float | None, Fact("largest error, relative to the largest value of the result")] = None
    error: Annotated[str, Fact("exception raised instead of a result; empty for none")] = ""

    @property
    def is_invalid(self) -> bool:
        """Whether the result is wrong by more than rounding, which the probe notes in `error`."""
        return self.error.startswith(("not finite", "not uniform"))


@record
class CupyRuntime:
    """CuPy's answers after an import in a separate process."""

    import_error: Annotated[
        str | None, Fact("last line of the import's traceback; empty when it worked", source="import cupy")
    ] = None
    version: PackageVersion | None = None
    build_cuda_version: Annotated[CudaVersion | None, Fact("CUDA that CuPy was built with")] = None
    runtime_cuda_version: Annotated[
        CudaVersion | None, Fact("CUDA runtime that it loaded", source="runtimeGetVersion")
    ] = None
    driver_cuda_version: Annotated[
        CudaVersion | None, Fact("CUDA of the driver that it sees", source="driverGetVersion")
    ] = None
    local_cuda_version: Annotated[
        CudaVersion | None,
        Fact("CUDA runtime that the loader finds, in addition to the one in CuPy", source="cupy.show_config()"),
    ] = None
    nvrtc_version: Annotated[CudaVersion | None, Fact("NVRTC that it loaded", source="nvrtc.getVersion")] = None
    nvrtc_architectures: Annotated[
        tuple[str, ...] | None, Fact("architectures NVRTC knows", source="nvrtcGetSupportedArchs")
    ] = None
    device_count: int | None = None
    device_error: Annotated[str | None, Fact("why no device is available; empty for no error")] = None
    calls: Annotated[tuple[LibraryCall, ...] | None, Fact("library calls compared with NumPy")] = None
    warnings: tuple[str, ...] | None = None

    @property
    def first_error(self) -> str | None:
        """The dotted path of the first error, the import's first; None if there is none."""
        if self.import_error or self.device_error:
            return f"cupy_runtime.{'import' if self.import_error else 'device'}_error"
        failed = (f"cupy_runtime.calls[{number}].error" for number, call in enumerate(self.calls or ()) if call.error)
        return next(failed, None)

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """The path and text of every error and warning in it."""
        for name in ("import_error", "device_error"):
            yield f"cupy_runtime.{name}", getattr(self, name) or ""
        for number, call in enumerate(self.calls or ()):
            yield f"cupy_runtime.calls[{number}].error", call.error
        for number, text in enumerate(self.warnings or ()):
            yield f"cupy_runtime.warnings[{number}]", text


@record
class Container:
    """The container engines on this machine, from their files, and how a container was started.

    Only a pasted report shows how one was started: by its command, compose file or Dockerfile.
    """

    docker_installed: Annotated[bool | None, Fact("a docker command is on PATH")] = None
    podman_installed: bool | None = None
    toolkit_installed: Annotated[bool | None, Fact("nvidia-ctk or nvidia-container-cli is on PATH")] = None
    nvidia_runtime_configured: Annotated[
        bool | None, Fact("the engine's configuration names the NVIDIA runtime", source="/etc/docker/daemon.json")
    ] = None
    cdi_devices: Annotated[
        tuple[str, ...] | None, Fact("CDI specifications of NVIDIA devices", source="/etc/cdi, /var/run/cdi")
    ] = None
    engine: Annotated[
        str | None, Fact('what started the container: "docker", "podman", "kubernetes", "singularity"', source="report")
    ] = None
    cluster: Annotated[
        str | None, Fact('distribution of Kubernetes that runs its own containerd: "k3s", "rke2"', source="report")
    ] = None
    image: Annotated[
        str | None, Fact('image of the container: "nvidia/cuda:12.2.2-devel-ubuntu22.04"', source="report")
    ] = None
    name: Annotated[str | None, Fact("name of the container or pod", source="report")] = None
    image_cuda_version: Annotated[
        CudaVersion | None, Fact("CUDA version in the image, by its tag or the banner that it prints", source="report")
    ] = None
    gpus_requested: Annotated[
        bool | None,
        Fact("the command or compose file that started it asks for GPUs; False if it is whole and does not"),
    ] = None
    arguments: Annotated[
        tuple[str, ...] | None, Fact("arguments of `docker run` that started it, if a shell takes them as they are")
    ] = None
    compose: Annotated[bool | None, Fact("it was started by docker compose", source="report")] = None
    shm_size_bytes: Annotated[int | None, Fact("--shm-size or shm_size of its start", "bytes", "report")] = None
    docker_snap: Annotated[bool | None, Fact("Docker was installed as a snap", source="report")] = None
    docker_desktop: Annotated[bool | None, Fact("the engine is Docker Desktop", source="report")] = None
    rootless: Annotated[bool | None, Fact("the engine runs without root", source="report")] = None

    @property
    def is_described(self) -> bool:
        """Whether a report shows how a container was started."""
        return self.gpus_requested is not None or bool(self.image or self.compose or self.engine)


@record
class Environment:
    """Environment variables that matter for GPUs; no others are read."""

    variables: Annotated[Mapping[str, str], Fact("set variables; a variable that is not there is unset")] = field(
        default_factory=dict
    )

    def get(self, name: str) -> str | None:
        """Return the variable's value; None if it is unset."""
        return self.variables.get(name)


@record
class Requirement:
    """A package that the project in the working directory requires."""

    name: Annotated[str, Fact("normalised name: lower case, hyphens")]
    specifier: Annotated[str, Fact('versions asked for: ">=2.4"; empty for any')] = ""
    source: Annotated[str, Fact('where it stands: "requirements.txt line 3"')] = ""


@record
class Project:
    """The requirements of the project in the working directory."""

    requirements: Annotated[
        tuple[Requirement, ...] | None, Fact("packages named by requirements files and pyproject.toml")
    ] = None

    def requires(self, *names: str) -> Requirement | None:
        """Return the first requirement on one of `names`; a name may end with "*"."""
        return next((found for found in self.requirements or () if _matches(found.name, names)), None)

    def always_requires(self, *names: str) -> Requirement | None:
        """Return the first requirement on one of `names` that is in no optional extra or group."""
        always = (found for found in self.requirements or () if not re.search(r" (extra|group) ", found.source))
        return next((found for found in always if _matches(found.name, names)), None)


def lacks_module(import_error: str | None, module: str) -> bool:
    """Return whether the import failed because this module itself is missing, not one that it imports."""
    return re.search(rf"No module named '?{module}'?$", import_error or "") is not None


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in patterns)
