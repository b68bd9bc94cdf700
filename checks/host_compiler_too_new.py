"""The host compiler against the CUDA toolkit."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import extension_to_build
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import CudaVersion, Finding, Project, Python, Remedy, Severity, Symptom, System, Toolkit
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import environment_of, with_sudo

APT = ("ubuntu", "debian")
POLICY = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy"

# The newest gcc of a toolkit, by the first toolkit with that limit.
# Source: "Host Compiler Support Policy" of the installation guides of CUDA 11.0 to 13.0; host_config.h of CUDA 8.0
# to 10.2.
GCC_LIMITS = (
    (CudaVersion(13, 0), 15),
    (CudaVersion(12, 8), 14),
    (CudaVersion(12, 4), 13),
    (CudaVersion(12, 0), 12),
    (CudaVersion(11, 5), 11),
    (CudaVersion(11, 1), 10),
    (CudaVersion(11, 0), 9),
    (CudaVersion(10, 1), 8),
    (CudaVersion(9, 2), 7),
    (CudaVersion(9, 0), 6),
    (CudaVersion(8, 0), 5),
)
# Where neither a message nor a toolkit tells the limit: what every CUDA 12 accepts.
USUAL_LIMIT = 12
# nvcc of CUDA 11.5, the one of Ubuntu 22.04, takes gcc 11 and fails in its std_function.h.
# Source: https://github.com/NVIDIA/VisRTX/issues/71, https://github.com/NVlabs/instant-ngp/issues/1240
BEFORE_GCC_11 = 10
COMPILERS = {
    "compiler-clang-too-new": "clang",
    "compiler-clang-unsupported": "clang",
    "compiler-msvc-too-new": "cl",
    "compiler-msvc-too-new-stl": "cl",
}


@check(family="cuda")
def host_compiler_too_new(
    toolkit: Toolkit | None = None,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The host compiler is newer than this nvcc accepts.

    Why: nvcc hands the host code to gcc and ends with "unsupported GNU version! gcc versions later than N are not
    supported", "unsupported Microsoft Visual Studio version", or errors in the headers of the compiler.
    Exception: without nvcc nothing is compiled. Unless the project requires a package that is still to be compiled this
    is advice. The limit is that of the toolkit's own header; compilers other than gcc are not compared.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
    """
    told = reported(symptoms, "compiler-*")
    if told:
        yield _told_finding(told[0], toolkit or Toolkit(), python, system)
        return
    toolkit = known(toolkit, "toolkit")
    skip_unless(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch or CuPy")
    skip_unless(known(toolkit.host_compiler, "toolkit.host_compiler") == "gcc", "the host compiler is not gcc")
    version = known(toolkit.host_compiler_version, "toolkit.host_compiler_version")
    newest = known(toolkit.host_compiler_max, "toolkit.host_compiler_max")
    if not version or version[0] <= newest:
        return
    extension = extension_to_build(project, python)
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    nvcc = f" of CUDA {toolkit.nvcc_version}" if toolkit.nvcc_version else ""
    yield Finding(
        severity=Severity.WARNING if extension else Severity.INFO,
        summary=f"gcc is {'.'.join(map(str, version))}, and nvcc{nvcc} accepts {newest} at most{needs}",
        subject="gcc",
        facts=(
            "toolkit.host_compiler_version",
            "toolkit.host_compiler_max",
            *(("toolkit.nvcc_version",) if toolkit.nvcc_version else ()),
            *(("project.requirements",) if extension else ()),
        ),
        remedies=(_remedy(newest, python, system),),
    )


def _told_finding(told: tuple[str, Symptom], toolkit: Toolkit, python: Python | None, system: System | None) -> Finding:
    """Return the finding where a build ended because of the compiler."""
    fact, message = told
    kind = COMPILERS.get(message.kind, "gcc")
    nvcc = f" of CUDA {toolkit.nvcc_version}" if toolkit.nvcc_version else ""
    if kind == "cl":
        remedies: tuple[Remedy, ...] = tuple(_for_visual_studio(message))
        summary = f"Visual Studio is newer than nvcc{nvcc} accepts: {message.text}"
    elif kind == "clang":
        limit = int(message.names["limit"]) if "limit" in message.names else None
        older = f"older than {limit}, as nvcc{nvcc} needs it to be" if limit else f"one that nvcc{nvcc} accepts"
        summary = f"clang is not {older}: {message.text}"
        compiler = (
            _use_clang(limit - 1) if limit else _remedy(_limit_of(toolkit.nvcc_version) or USUAL_LIMIT, python, system)
        )
        remedies = (compiler, _newer_toolkit(None))
    else:
        newest = _newest(message, toolkit.nvcc_version)
        version = message.names.get("version") or ".".join(map(str, toolkit.host_compiler_version or ()))
        gcc = f"gcc is {version}" if version else "gcc is newer"
        accepts = f"nvcc{nvcc} accepts {newest} at most" if newest else f"nvcc{nvcc} accepts none so new"
        if message.kind == "compiler-headers-too-new":
            accepts = f"nvcc{nvcc} cannot read its headers"
        summary = f"{gcc}, and {accepts}"
        remedies = (_remedy(newest or USUAL_LIMIT, python, system), _newer_toolkit(version))
    return Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject=kind,
        facts=(fact, *(("toolkit.nvcc_version",) if toolkit.nvcc_version else ())),
        remedies=remedies,
        details=dict(message.names),
    )


def _newest(message: Symptom, nvcc: CudaVersion | None) -> int | None:
    """Return the newest major version of gcc that nvcc accepts: as the message says, else by the toolkit."""
    names = message.names
    if "newest" in names:
        return int(names["newest"])
    if "limit" in names:
        return int(names["limit"]) - (0 if names.get("inclusive") else 1)
    if "parameter packs" in message.text.lower():
        return int(names["version"]) - 1 if "version" in names else BEFORE_GCC_11
    return _limit_of(nvcc)


def _limit_of(nvcc: CudaVersion | None) -> int | None:
    return next((newest for first, newest in GCC_LIMITS if nvcc is not None and nvcc >= first), None)


def _newer_toolkit(version: str | None) -> Remedy:
    major = int(version.partition(".")[0]) if version else None
    first = min((cuda for cuda, newest in GCC_LIMITS if major is not None and newest >= major), default=None)
    which = f"CUDA {first} or newer accepts gcc {major}" if first else "newer ones accept newer compilers"
    return Remedy(
        summary=f"Or install a newer CUDA toolkit ({which}), of the major version that PyTorch was built with",
        reference=POLICY,
    )


def _use_clang(major: int) -> Remedy:
    commands = (f"export CC=clang-{major} CXX=clang++-{major} NVCC_CCBIN=clang++-{major}", f"clang-{major} --version")
    return Remedy(summary=f"Compile with clang {major}, or with gcc", commands=commands)


def _for_visual_studio(message: Symptom) -> Iterator[Remedy]:
    needed = message.names.get("needed")
    if needed:
        yield Remedy(
            summary=f"Install the CUDA toolkit {needed} or newer, of the major version that PyTorch was built with",
            reference="https://developer.nvidia.com/cuda-toolkit-archive",
        )
    versions = message.names.get("versions")
    yield Remedy(
        summary="Install the Visual Studio Build Tools of an older version beside the newer one"
        + (f" (nvcc accepts {versions})" if versions else " (MSVC 14.39 or older of Visual Studio 2022)")
        + " and build in its command prompt, x64 Native Tools",
        reference="https://learn.microsoft.com/en-us/visualstudio/releases/2022/release-history",
    )
    if not needed:
        yield Remedy(
            summary="Or install a newer CUDA toolkit; the nvcc flag -allow-unsupported-compiler passes the check, at "
            "one's own risk",
            commands=("$env:NVCC_APPEND_FLAGS = '-allow-unsupported-compiler'",),
        )


def _remedy(newest: int, python: Python | None, system: System | None) -> Remedy:
    environment = environment_of(python, system)
    if environment.conda_prefix:
        command = environment.conda("install", ["--channel", "conda-forge", f"gxx_linux-64={newest}"])
        return Remedy(summary=f"Install gcc {newest} in the conda environment", commands=(command, "$CC --version"))
    # PyTorch hands CC to nvcc as its host compiler, CMake takes CUDAHOSTCXX, nvcc itself NVCC_CCBIN for its -ccbin.
    # Source: torch/utils/cpp_extension.py; CMake's documentation of CUDAHOSTCXX; nvcc --help.
    use = (
        f"export CC=gcc-{newest} CXX=g++-{newest} NVCC_CCBIN=g++-{newest} CUDAHOSTCXX=g++-{newest}",
        f"gcc-{newest} --version",
    )
    if system is not None and system.distribution in APT:
        install = with_sudo(f"apt-get install --yes gcc-{newest} g++-{newest}", system)
        return Remedy(
            summary=f"Install gcc {newest} beside the newer one and compile with it",
            commands=(install, *use),
            needs=("root",),
        )
    return Remedy(
        summary=f"Install gcc {newest} (Debian and Ubuntu: gcc-{newest} g++-{newest}) beside the newer one and compile "
        f"with it (nvcc -ccbin g++-{newest})",
        commands=use,
        needs=("root",),
    )
