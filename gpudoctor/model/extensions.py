"""What is concluded of compiled extensions of PyTorch."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record
from gpudoctor.model.software import Package, Requirement
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import PackageVersion


@record
class BuiltExtension:
    """What an installed extension was built for, as the local part of its version says; None if it does not say."""

    package: Package
    fact: str
    torch: Annotated[str | None, Fact('release of PyTorch: "2.3"')] = None
    cuda_major: int | None = None
    cxx11_abi: bool | None = None


@record
class FailedExtension:
    """An extension that could not be loaded, by a message."""

    symptom: Symptom
    name: Annotated[str, Fact('its distribution: "flash-attn"; empty if unknown')] = ""
    version: PackageVersion | None = None
    facts: tuple[str, ...] = ()
    abi: Annotated[str, Fact('C++ ABI that it asks for: "the C++11 ABI"; empty if unknown')] = ""


@record
class Extensions:
    """Compiled extensions of PyTorch."""

    built: Annotated[tuple[BuiltExtension, ...] | None, Fact("installed ones that name the PyTorch they need")] = None
    failed: tuple[FailedExtension, ...] = ()
    to_build: Annotated[Requirement | None, Fact("a requirement that nvcc still has to compile")] = None
