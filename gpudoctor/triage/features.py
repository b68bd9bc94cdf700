"""What is known of a machine, in words by which next steps and possible causes are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpudoctor.model import Gpu, Origin, Place, Pytorch, Symptom, System

SYMPTOM = "symptom:"


def features(
    origin: Origin,
    system: System | None,
    place: Place,
    pytorch: Pytorch,
    gpu: Gpu,
    symptoms: tuple[Symptom, ...] | None,
) -> frozenset[str]:
    """Return the features: "os:windows", "place:docker", "about:ollama", "gpu:nvidia", "symptom:<kind>"."""
    kinds = {symptom.kind for symptom in symptoms or ()}
    found = {f"{SYMPTOM}{kind}" for kind in kinds}
    found |= {kind.replace("-", ":", 1) for kind in kinds if kind.startswith(("about-", "place-", "asks-", "shown-"))}
    found |= set(_system(system, place))
    found |= set(_gpu(gpu, kinds))
    if not origin.is_report:
        found.add("live")
    if pytorch.build:
        found.add(f"build:{pytorch.build}")
    if pytorch.installed or pytorch.available is not None:
        found.add("about:torch")
    return frozenset(found)


def _system(system: System | None, place: Place) -> Iterator[str]:
    if place.in_wsl:
        yield "os:wsl"
    elif system is not None and system.os:
        yield f"os:{system.os}"
    if place.about_container:
        yield "place:docker"
    if place.is_tegra:
        yield "place:jetson"


def _gpu(gpu: Gpu, kinds: Iterable[str]) -> Iterator[str]:
    if gpu.present or "nvidia-gpu-named" in kinds or "nvidia-gpu-owned" in kinds:
        yield "gpu:nvidia"
    if "amd-gpu-named" in kinds or "amd-gpu-told" in kinds:
        yield "gpu:amd"
    if "apple-mac-named" in kinds:
        yield "os:darwin"
