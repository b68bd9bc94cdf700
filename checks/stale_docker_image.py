"""An image that is older than what it is built from."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Container, Finding, Project, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless

REFERENCE = "https://docs.docker.com/build/cache/invalidation/"
# What makes an image the reason for a module that is missing, and is no problem by itself.
WITH_A_MODULE = ("docker-image-old", "docker-source-updated")
# Modules whose distribution has another name.
DISTRIBUTIONS = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "pynvml": "nvidia-ml-py",
    "dotenv": "python-dotenv",
}


@check(family="container", explains=("torch-not-installed", "cupy-missing", "torch-import-failed"))
def stale_docker_image(
    symptoms: tuple[Symptom, ...],
    container: Container | None = None,
    system: System | None = None,
    project: Project | None = None,
) -> Iterator[Finding]:
    """The image lacks what its source or requirements already have.

    Why: `docker compose up` and `restart` start the container of the image that is there; only a build takes the
    changed files in, and a build takes each layer from its cache where it holds the files for unchanged. So a program
    does not find a module that stands in requirements.txt, or runs code of yesterday.
    Exception: a module that no requirement names is missing for another reason, and so it is outside a container.
    Reference: https://docs.docker.com/build/cache/invalidation/
    """
    stale = reported(symptoms, "docker-image-stale", "docker-not-rebuilt")
    missing = reported(symptoms, "python-module-missing", "torch-module-missing")
    skip_unless(stale or missing, "no such message in the report")
    inside = _in_container(container, system, symptoms)
    if missing and inside:
        stale += reported(symptoms, *WITH_A_MODULE)
    lacked = _lacked(missing, symptoms, project) if stale or inside else None
    if lacked is not None:
        fact, module, other = lacked
        cached = _is_layer(other, symptoms)
        why = "and the build took its packages from the cache" if cached else "which the requirements name"
        yield _finding(
            f"The program in the container finds no module {module}, {why}: the image is older than its source",
            (fact, other, *(path for path, _ in stale[:1])),
            Severity.ERROR,
            container,
        )
    elif stale:
        text = stale[0][1].text[:120].strip()
        yield _finding(
            f"What runs in the container is older than its source: {text}", (stale[0][0],), Severity.WARNING, container
        )


def _in_container(container: Container | None, system: System | None, symptoms: tuple[Symptom, ...] | None) -> bool:
    return told_of_container(system, container) or bool(reported(symptoms, "docker-layer-cached"))


def _lacked(
    missing: tuple[tuple[str, Symptom], ...], symptoms: tuple[Symptom, ...] | None, project: Project | None
) -> tuple[str, str, str] | None:
    """Return the fact and the name of a missing module that is required, and the fact that requires it."""
    named = reported(symptoms, "docker-requirement-named")
    cached = [(path, m) for path, m in reported(symptoms, "docker-layer-cached") if _installs(m.text)]
    for fact, message in missing:
        module = (message.names.get("module") or "torch").partition(".")[0]
        for path, other in named:
            if any(_same(module, package) for package in other.names.values()):
                return fact, module, path
        for number, requirement in enumerate((project.requirements if project is not None else None) or ()):
            if _same(module, requirement.name):
                return fact, module, f"project.requirements[{number}].name"
        if cached:
            return fact, module, cached[0][0]
    return None


def _is_layer(fact: str, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether the fact is a layer that the build took from its cache."""
    return any(path == fact for path, _ in reported(symptoms, "docker-layer-cached"))


def _installs(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in ("requirements", "pip install", "uv sync", "poetry install", "pyproject"))


def _same(module: str, package: str) -> bool:
    from packaging.utils import canonicalize_name

    plain = canonicalize_name(package)
    if module == "cupy" and plain.startswith("cupy-cuda"):
        return True
    return plain in (canonicalize_name(module), DISTRIBUTIONS.get(module, ""))


def _finding(summary: str, facts: tuple[str, ...], severity: Severity, container: Container | None) -> Finding:
    return Finding(
        severity=severity, summary=summary, subject="container image", facts=facts, remedies=_remedies(container)
    )


def _remedies(container: Container | None) -> tuple[Remedy, ...]:
    """Return how to build anew and start the new image: with compose first, unless docker run was used."""
    compose = Remedy(
        summary="Build the image anew, without its cached layers, and create the container from it "
        "(docker compose restart and up without --build keep the old one)",
        commands=(
            "docker compose build --no-cache SERVICE",
            "docker compose up --detach --force-recreate SERVICE",
            "docker compose images",
        ),
        needs=("restart",),
        reference=REFERENCE,
    )
    run = Remedy(
        summary="Without compose, build with --no-cache and --pull and start a new container, for an old one keeps its "
        "image",
        commands=("docker build --no-cache --pull --tag IMAGE .", "docker run --rm IMAGE python -m pip list"),
        needs=("restart",),
        reference=REFERENCE,
    )
    quick = Remedy(
        summary="From then on build with every start: docker compose up --build; a volume that is mounted over the "
        "code or over the environment (docker compose down --volumes) hides what the image has",
        commands=("docker compose up --build --detach",),
    )
    if container is not None and container.compose is None and container.gpus_requested is not None:
        return (run, compose)
    return (compose, quick, run)
