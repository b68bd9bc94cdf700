"""Whether a container's image is older than its source, from modules that the program does not find."""

from gpudoctor.model import OutdatedImage, Place, Project, Symptom
from gpudoctor.symptoms import Symptoms, first, of_kind

# Symptoms that make an image the cause of a missing module, and are no problem by themselves.
WITH_A_MODULE = ("docker-image-old", "docker-source-updated")
# Module → distribution with another name.
DISTRIBUTIONS = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "pynvml": "nvidia-ml-py",
    "dotenv": "python-dotenv",
}


def outdated_image(place: Place, project: Project, symptoms: Symptoms) -> OutdatedImage:
    """Return the evidence about the image: a required module that it lacks, or a message about it."""
    stale = of_kind(symptoms, "docker-image-stale", "docker-not-rebuilt")
    missing = of_kind(symptoms, "python-module-missing", "torch-module-missing")
    asked = bool(stale or missing)
    inside = place.about_container or bool(of_kind(symptoms, "docker-layer-cached"))
    if missing and inside:
        stale += of_kind(symptoms, *WITH_A_MODULE)
    lacked = _lacked(missing, project, symptoms) if stale or inside else None
    if lacked is None:
        return OutdatedImage(said=first(stale), asked=asked)
    module, facts, from_cache = lacked
    return OutdatedImage(module=module, module_facts=facts, from_cache=from_cache, said=first(stale), asked=asked)


def _lacked(
    missing: tuple[Symptom, ...], project: Project, symptoms: Symptoms
) -> tuple[str, tuple[str, str], bool] | None:
    """Return a required module that is missing, its facts, and whether only a cached layer shows it."""
    cached = of_kind(symptoms, "docker-packages-cached")
    required = [
        (package, symptom.fact)
        for symptom in of_kind(symptoms, "docker-requirement-named")
        for package in symptom.names.values()
    ]
    for number, requirement in enumerate(project.requirements or ()):
        required.append((requirement.name, f"project.requirements[{number}].name"))
    for symptom in missing:
        module = (symptom.names.get("module") or "torch").partition(".")[0]
        for package, fact in required:
            if _is_of(package, module):
                return module, (symptom.fact, fact), False
        if cached:
            return module, (symptom.fact, cached[0].fact), True
    return None


def _is_of(package: str, module: str) -> bool:
    """Return whether the distribution provides the module."""
    from packaging.utils import canonicalize_name

    name = canonicalize_name(package)
    if module == "cupy" and name.startswith("cupy-cuda"):
        return True
    return name in (canonicalize_name(module), DISTRIBUTIONS.get(module, ""))
