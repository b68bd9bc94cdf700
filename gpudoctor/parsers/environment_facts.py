"""The answer of the worker python_environment: its facts as typed values, and the packages that they name."""

# The types of these fields are read at every start. As texts, evaluating them would take a millisecond.

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from gpudoctor.model import Package, PackageVersion
from gpudoctor.model.codec import from_json
from gpudoctor.model.record import record
from gpudoctor.parsers.conda import CondaRecord, parse_conda_record

_NAME = r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?"
_VERSION = r"[A-Za-z0-9.!+_-]{1,100}"
_INSTALLER = r"[A-Za-z0-9._-]{1,40}"


@record
class InterpreterFacts:
    """The interpreter. `pyvenv_cfg` is the file's text, None if the environment has none."""

    version: str
    executable: str
    prefix: str
    base_prefix: str
    os: str
    machine: str = ""
    platform: str
    free_threaded: bool
    externally_managed: bool
    pyvenv_cfg: str | None = None
    active: str = ""
    project: str = ""
    pip: bool


@record
class DistributionFacts:
    """An installed distribution as its metadata names it. `requires` has the lines of Requires-Dist."""

    name: str
    version: str
    installer: str = ""
    location: str = ""
    editable: bool = False
    requires: tuple[str, ...] = ()


@record
class TorchFacts:
    """The package torch. `package` is its folder, "" if there is none; `libraries` are the names in torch/lib."""

    package: str = ""
    version_file: str | None = None
    libraries: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    architectures: str | None = None
    cxx11_abi: bool | None = None


@record
class CupyFacts:
    """The package cupy. `wheel_file` is the text of cupy/.data/_wheel.json, None for a build from source."""

    package: str = ""
    version_file: str | None = None
    wheel_file: str | None = None


@record
class EnvironmentFacts:
    """Everything that the worker found. `conda` is None if conda does not manage the environment."""

    interpreter: InterpreterFacts
    conda: tuple[str, ...] | None = None
    distributions: tuple[DistributionFacts, ...] = ()
    shadowing: tuple[str, ...] = ()
    nvidia_libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    torch: TorchFacts = TorchFacts()
    cupy: CupyFacts = CupyFacts()

    @property
    def conda_records(self) -> tuple[CondaRecord, ...]:
        """The packages that conda installed."""
        return tuple(record for text in self.conda or () if (record := parse_conda_record(text)))

    def distributions_named(self, pattern: str) -> tuple[DistributionFacts, ...]:
        """Return the distributions whose whole name the regular expression matches, in the order of import."""
        return tuple(distribution for distribution in self.distributions if re.fullmatch(pattern, distribution.name))


def parse_environment_facts(facts: Mapping[str, Any]) -> EnvironmentFacts:
    """Return the typed facts, without distributions that have no name or version.

    Raises:
        ValueError: they are not the worker's; the message names the place.
    """
    read = from_json(EnvironmentFacts, dict(facts), "python_environment")
    sound = tuple(d for d in read.distributions if re.fullmatch(_NAME, d.name) and re.fullmatch(_VERSION, d.version))
    return replace(read, distributions=sound)


def package_of(distribution: DistributionFacts) -> Package:
    """Return the record of an installed distribution."""
    return Package(
        name=distribution.name,
        version=PackageVersion(distribution.version),
        installer=distribution.installer if re.fullmatch(_INSTALLER, distribution.installer) else "",
        location=distribution.location,
    )
