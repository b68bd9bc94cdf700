"""An image that is older than what it is built from."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, OutdatedImage, Symptom
from gpudoctor.registry import check, skip_unless


@check(family="container", explains=("torch-not-installed", "cupy-missing", "torch-import-failed"))
def stale_docker_image(symptoms: tuple[Symptom, ...], outdated_image: OutdatedImage) -> Iterator[Finding]:
    """The image lacks files or packages that its source or requirements have.

    Why: `docker compose up` and `restart` use the existing image. Only a build adds changed files, and a build takes
    each layer from its cache if it considers the files unchanged. So a program does not find a module that
    requirements.txt names, or runs old code.
    Exception: a module that no requirement names, or that is missing outside a container, has another cause.
    Reference: https://docs.docker.com/build/cache/invalidation/
    """
    skip_unless(symptoms and outdated_image.asked, "no message reports this problem")
    said = outdated_image.said
    if outdated_image.module:
        cached = outdated_image.from_cache
        why = "and the build took its packages from the cache" if cached else "which the requirements name"
        summary = (
            f"The program in the container finds no module {outdated_image.module}, {why}: the image is "
            "probably older than its source"
        )
        facts = (*outdated_image.module_facts, said.fact if said else "")
        yield Finding.error("container image", summary, facts, Fix("rebuild-image"), certain=False)
    elif said is not None:
        summary = f"The container probably runs code that is older than its source: {said.quote}"
        yield Finding.warning("container image", summary, (said.fact,), Fix("rebuild-image"), certain=False)
