"""CuPy as it is on disk (its distributions and NVRTC), and as its own process imports it."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from gpudoctor.data.packages import cuda_major
from gpudoctor.model import Cupy, CupyRuntime, Package, PackageVersion
from gpudoctor.model.codec import from_json
from gpudoctor.parsers import conda
from gpudoctor.parsers.environment_facts import DistributionFacts, EnvironmentFacts, package_of, parse_environment_facts
from gpudoctor.untrusted import cleaned

# Source: cupy/_environment.py of CuPy 14.2, _detect_duplicate_installation, and docs.cupy.dev/en/stable/install.html
DISTRIBUTIONS = r"cupy|cupy-cuda\d+x?|cupy-rocm-[\d-]+|amd-cupy"


def parse_cupy(facts: Mapping[str, Any]) -> Cupy:
    """Return the section that the worker's facts give.

    If several distributions overwrote each other, cupy/.data/_wheel.json shows whose files are there.

    Raises:
        ValueError: they are not the worker's.
    """
    read = parse_environment_facts(facts)
    numpy = next(iter(read.distributions_named("numpy")), None)
    found = read.distributions_named(DISTRIBUTIONS)
    version = _version(read) or (found[0].version if found else None)
    present = _present(read, found)
    platform = _platform(read, present) if present or (version and not found) else None
    return Cupy(
        distributions=tuple(package_of(distribution) for distribution in found) or _without_metadata(read, version),
        version=PackageVersion(version) if version else None,
        platform=platform,
        cuda_major=_cuda_major(read, present) if platform == "cuda" else None,
        numpy_version=PackageVersion(numpy.version) if numpy else None,
        numpy_requirement=_numpy_requirement(present),
        nvrtc_files=_nvrtc_files(read),
    )


def _version(read: EnvironmentFacts) -> str | None:
    """Return what cupy/_version.py assigns, None if it is not there. The file is not executed."""
    text = read.cupy.version_file
    match = re.search(r"(?m)^__version__\s*=\s*['\"]([A-Za-z0-9.!+_-]{1,100})['\"]", text) if text else None
    return match[1] if match else None


def _without_metadata(read: EnvironmentFacts, version: str | None) -> tuple[Package, ...]:
    """Return the distribution of a package without metadata: sources on the path."""
    if version is None:
        return ()
    return (Package(name="cupy", version=PackageVersion(version), location=read.cupy.package),)


def _present(read: EnvironmentFacts, found: tuple[DistributionFacts, ...]) -> DistributionFacts | None:
    """Return the distribution whose files are on disk, None if that cannot be determined."""
    wheel = _wheel_cuda(read)
    fitting = [distribution for distribution in found if wheel and cuda_major(distribution.name) == wheel]
    candidates = fitting or found
    return candidates[0] if len(candidates) == 1 else None


def _wheel_cuda(read: EnvironmentFacts) -> int | None:
    """Return the CUDA major version that the wheel's own file names: "12.x", "11.5"."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        match = re.match(r"(\d{1,2})\.", str(json.loads(read.cupy.wheel_file or "{}").get("cuda")))
        return int(match[1]) if match else None
    return None


def _platform(read: EnvironmentFacts, present: DistributionFacts | None) -> str:
    name = present.name if present else "cupy"
    if "rocm" in name or name == "amd-cupy":
        return "rocm"
    return "cuda" if name != "cupy" or _from_conda(read, present) else "source"


def _from_conda(read: EnvironmentFacts, present: DistributionFacts | None) -> bool:
    """Return whether conda installed it: its distribution is named like a build from source."""
    recorded = any(record.name in ("cupy", "cupy-core") for record in read.conda_records)
    return present is not None and (present.installer == "conda" or (not present.installer and recorded))


def _cuda_major(read: EnvironmentFacts, present: DistributionFacts | None) -> int | None:
    if _from_conda(read, present):
        return conda.cuda_major(read.conda_records)
    return cuda_major(present.name) if present else None


def _numpy_requirement(present: DistributionFacts | None) -> str | None:
    """Return the required versions of NumPy, the lower bound first: ">=2.0,<2.6"."""
    for line in present.requires if present else ():
        match = re.fullmatch(r"numpy\s*\(?([\d.*,\s<>=!~a-z]*)\)?", line)
        if match:
            return ",".join(sorted((part.strip() for part in match[1].split(",")), reverse=True))
    return None


def _nvrtc_files(read: EnvironmentFacts) -> tuple[str, ...]:
    """Return the NVRTC libraries, without the builtins that belong to each."""
    return tuple(
        f"{folder}/{name}"
        for folder, names in read.nvidia_libraries.items()
        for name in names
        if re.fullmatch(r"libnvrtc\.so(\.\d+)*|nvrtc64_\d+_\d+\.dll", name)
    )


def parse_cupy_runtime(facts: Mapping[str, Any]) -> CupyRuntime:
    """Return the answers after the import. Raises ValueError: a fact has a wrong value; the message names it."""
    return from_json(CupyRuntime, cleaned(dict(facts)), "cupy_runtime")
