"""Shared memory for the workers of the data loader and for NCCL."""

from collections.abc import Iterator

from gpudoctor.model import Container, Finding, Fix, Place, Pytorch, Symptom, System
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

MIB = 1024 * 1024
# Docker's default. Source: https://docs.docker.com/reference/cli/docker/container/run/ (--shm-size)
DEFAULT_BYTES = 64 * MIB
PROGRAMS = {"nccl": "NCCL", "ray": "Ray"}


@check(family="container", explains=("nccl-p2p-problem",))
def shm_too_small(
    place: Place,
    pytorch: Pytorch,
    system: System = System(),
    container: Container = Container(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The shared memory is too small for the data loader's workers and NCCL.

    Why: worker processes pass batches through /dev/shm; Docker gives a container 64 MiB of it. When it is full, a
    worker dies with "Bus error", and NCCL fails to start. The same happens if a process may open too few files.
    Exception: a container without PyTorch passes, and so does data loading without workers. Outside containers,
    /dev/shm may use half of the main memory, so only a message that it is full counts. container-setup-shm-too-small
    checks containers from outside.
    Reference: https://github.com/pytorch/pytorch#using-pre-built-images
    """
    for failure in of_kind(symptoms, "shm-*")[:1]:
        yield next(iter(answers((failure,), "shm-too-small")), _too_small(failure, place, system, container))
        return
    skip_unless(known(system.container, "system.container"), "this is not a container")
    if not of_kind(symptoms, "data-loader-workers"):
        skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    total = known(system.shm_total_bytes, "system.shm_total_bytes")
    if total > DEFAULT_BYTES:
        return
    default = f"Docker's default is {DEFAULT_BYTES // MIB} MiB"
    summary = (
        f"The shared memory of this {system.container} container has {total // MIB} MiB, "
        f"{'which is the Docker default' if total == DEFAULT_BYTES else default}"
    )
    facts = ("system.shm_total_bytes", "system.container")
    yield Finding.warning("shared memory", summary, facts, Fix("enlarge-shared-memory", in_container=True))


def _too_small(failure: Symptom, place: Place, system: System, container: Container) -> Finding:
    size = system.shm_total_bytes
    size = size or container.shm_size_bytes
    program = PROGRAMS.get(failure.library, "the workers of PyTorch's data loader")
    on_host = system.container == ""
    in_container = True if place.about_container else False if on_host else None
    summary = f"The shared memory (/dev/shm{f', {size // MIB} MiB' if size else ''}) is too small for {program}"
    facts = (failure.fact,)
    return Finding.error("shared memory", summary, facts, Fix("enlarge-shared-memory", in_container=in_container))
