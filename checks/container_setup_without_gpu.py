"""A container, seen from outside, that is not given the GPU."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, GpuIntent, SeenSetup, Severity, once_per_service
from gpudoctor.registry import check, skip_unless


@check(family="container", explains=("container-setup-nvml-lost", "container-setup-image-needs-newer-driver"))
def container_setup_without_gpu(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A container or service is meant to use the GPU, but is started without it.

    Why: a container sees a GPU only if its engine gives it one: `docker run --gpus all`, a compose device reservation.
    A CUDA image, or a PyTorch built for CUDA, without such a request runs on the CPU.
    Exception: a container that hides the GPUs itself does so on purpose. If another service with the same image has the
    GPU, or the host has none, this is advice.
    Reference: https://docs.docker.com/engine/containers/gpu/
    """
    skip_unless(setups, "no container was checked")
    images_with_gpu = {seen.setup.image for seen in setups if seen.gpu_access}
    # A runtime nvidia of its own says that it does not give up the GPU.
    asking = [seen for seen in setups if not seen.declines_gpu or (seen.setup.runtime or "").startswith("nvidia")]
    without = [(seen, seen.gpu_intent) for seen in asking if seen.gpu_access == ""]
    intents = {seen.path: intent for seen, intent in without if intent is not None}
    for seen in once_per_service(seen for seen, _ in without if seen.path in intents):
        on_purpose = seen.setup.image in images_with_gpu or seen.host_has_gpu is False
        yield _finding(seen, intents[seen.path], on_purpose)


def _finding(seen: SeenSetup, intent: GpuIntent, on_purpose: bool) -> Finding:
    weak = not intent.certain or seen.host_has_gpu is None
    facts = [seen.fact("gpu_requests"), intent.fact]
    why = "nothing asks for one"
    if seen.by_nvidia_runtime:
        facts.insert(1, seen.fact("environment"))
        value = seen.setup.environment.get("NVIDIA_VISIBLE_DEVICES")
        shown = "is unset" if value is None else f'is "{value[:40]}"'
        why = f"NVIDIA_VISIBLE_DEVICES {shown}, with which the runtime nvidia gives none"
    severity = Severity.INFO if on_purpose else Severity.WARNING if weak else Severity.ERROR
    summary = f"The {seen.label} gets no GPU: {why}, and {intent.words}"
    return Finding.of(severity, seen.label, summary, dict.fromkeys(facts), Fix("give-container-gpu", setup=seen.setup))
