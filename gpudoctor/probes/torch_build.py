"""PyTorch as it is on disk (which build, for what, whether it is complete), and as its own process imports it."""

import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.model import PackageVersion, Torch, TorchRuntime
from gpudoctor.model.codec import from_json
from gpudoctor.parsers import attempt
from gpudoctor.parsers.conda import is_cpu_only, torch_record
from gpudoctor.parsers.environment_facts import DistributionFacts, EnvironmentFacts, parse_environment_facts
from gpudoctor.parsers.torch_version_file import TorchVersionFile, build_of_version, parse_torch_version_file
from gpudoctor.untrusted import cleaned

_ARCHITECTURE = r"(?:sm|compute)_\d{2,3}[af]?|gfx[0-9a-f]{3,5}"
_LIBRARIES = {  # in torch/lib of every wheel; on Linux the libraries are followed instead
    "win32": ("torch_python.dll", "torch_cpu.dll", "c10.dll"),
    "darwin": ("libtorch_python.dylib", "libtorch_cpu.dylib", "libc10.dylib"),
}
_CUDA_LIBRARIES = {"win32": ("torch_cuda.dll", "c10_cuda.dll")}
_NOTHING_KNOWN = TorchVersionFile(version=None, cuda=None, hip=None, xpu=None)


def parse_torch(facts: Mapping[str, Any]) -> Torch:
    """Return the section that the worker's facts give.

    The version in torch/version.py wins: the metadata of a PyPI wheel say "2.14.1", the file "2.14.1+cu130".

    Raises:
        ValueError: they are not the worker's.
    """
    read = parse_environment_facts(facts)
    distribution = next(iter(read.distributions_named("torch")), None)
    if distribution is None and not read.torch.package:
        return Torch(installed=False)
    file = attempt(parse_torch_version_file, read.torch.version_file) or _NOTHING_KNOWN
    version = file.version or (distribution.version if distribution else None)
    build, cuda_version = (file.build, file.cuda_version) if file.build else build_of_version(version or "")
    has_mps = (read.interpreter.os, read.interpreter.machine) == ("darwin", "arm64")  # as all wheels for it
    record = torch_record(read.conda_records)
    return Torch(
        installed=True,
        version=PackageVersion(version) if version else None,
        build="mps" if build == "cpu" and has_mps else build,
        cuda_version=cuda_version,
        hip_version="" if build in ("cuda", "cpu", "xpu") else file.hip or None,
        location=read.torch.package or None,
        architectures=_architectures(read, build),
        cxx11_abi=read.torch.cxx11_abi,
        missing_libraries=_missing_libraries(read, distribution, build),
        conda_build=record.build if record else "",
        conda_cpuonly=is_cpu_only(read.conda_records),
    )


def _architectures(read: EnvironmentFacts, build: str | None) -> tuple[str, ...] | None:
    if build in ("cpu", "xpu"):
        return ()
    names = [flag.partition(":")[0] for flag in (read.torch.architectures or "").split()]
    return tuple(dict.fromkeys(name for name in names if re.fullmatch(_ARCHITECTURE, name))) or None


def _missing_libraries(
    read: EnvironmentFacts, distribution: DistributionFacts | None, build: str | None
) -> tuple[str, ...] | None:
    """Return what the build needs and the loader cannot find, None if that is unknown.

    Declared requirements are not evidence: Requires-Dist names NVIDIA's wheels in CPU builds too, and a library may
    come from elsewhere. On Linux the libraries themselves name what they need.
    """
    if not read.torch.package:
        return None if distribution and distribution.editable else ("torch/__init__.py",)
    missing = list(read.torch.unresolved)
    if distribution is not None and distribution.installer != "conda":  # conda keeps them in folders of its own
        system = read.interpreter.os
        expected = _LIBRARIES.get(system, ()) + (_CUDA_LIBRARIES.get(system, ()) if build == "cuda" else ())
        missing += [name for name in expected if name not in read.torch.libraries]
    return tuple(missing)


def parse_torch_runtime(facts: Mapping[str, Any]) -> TorchRuntime:
    """Return the answers after the import. Raises ValueError: a fact has a wrong value; the message names it."""
    return from_json(TorchRuntime, cleaned(dict(facts)), "torch_runtime")
