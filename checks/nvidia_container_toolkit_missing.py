"""The host's container engine and the GPU."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Container, DriverState, Finding, Fix, Gpu, Place, SeenSetup
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

ID = "nvidia-container-toolkit-missing"
NO_LIBCUDA = "libcuda-not-found-by-container"
NO_DRIVER = (NO_LIBCUDA, "container-library-not-loaded", "container-driver-error")


@check(family="container", explains=("container-without-gpu", "driver-capabilities-missing"))
def nvidia_container_toolkit_missing(
    place: Place,
    gpu: Gpu,
    driver_state: DriverState,
    setups: tuple[SeenSetup, ...],
    container: Container = Container(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """This machine's container engine cannot give the GPU to a container.

    Why: without the NVIDIA Container Toolkit, `docker run --gpus all` ends with "could not select device driver" and
    `--runtime=nvidia` with "unknown or invalid runtime name".
    Exception: many machines run containers that need no GPU, so without such a message this is advice. A CDI
    specification replaces the configured runtime; Docker Desktop under WSL has its own toolkit.
    container-engine-cannot-give-gpu checks containers from outside.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    """
    found = next(_reported(symptoms, driver_state), None)
    if found is not None:
        yield found
        return
    refused = any(seen.engine_lack or answers(seen.failures, ID) for seen in setups)
    skip_unless(not refused, "a checked container shows what the engine lacks")
    skip_unless(not place.in_container, "the host starts containers, not this container")
    skip_unless(not (place.is_windows or place.is_mac), "the toolkit is for Linux")
    skip_unless(not place.in_wsl, "Docker Desktop gives the GPU to containers in WSL by itself")
    skip_unless(gpu.present != "", "there is no NVIDIA GPU")
    skip_unless(driver_state.installed is not False, "no driver is installed")
    engine = "docker" if container.docker_installed else "podman" if container.podman_installed else ""
    if not engine:
        known(container.docker_installed, "container.docker_installed")
        skip_unless(engine, "there is no container engine")
    installed = known(container.toolkit_installed, "container.toolkit_installed")
    if container.cdi_devices or (installed and container.nvidia_runtime_configured is not False):
        return
    name = engine.capitalize()
    without = f"{name} is installed without the NVIDIA Container Toolkit, so it cannot start a GPU container"
    unused = f"The NVIDIA Container Toolkit is installed, but {engine} is not configured for it"
    yield Finding.advice(
        engine,
        unused if installed else without,
        (
            f"container.{engine}_installed",
            "container.nvidia_runtime_configured" if installed else "container.toolkit_installed",
        ),
        Fix("configure-engine", engine=engine) if installed else Fix("install-container-toolkit"),
    )


def _reported(symptoms: Symptoms, driver_state: DriverState) -> Iterator[Finding]:
    """Yield what the messages of engines and container runtimes answer.

    If the driver works on the host, a libcuda that alone is missing is libcuda-not-on-linker-path.
    """
    driver_works = driver_state.works
    host = (
        f", although {'the ' if driver_state.label.startswith('NVIDIA') else ''}{driver_state.label} works"
        if driver_works
        else ""
    )
    for symptom in symptoms or ():
        for found in answers((symptom,), ID):
            if symptom.kind not in NO_DRIVER:
                yield replace(found, summary=f"{found.summary}{host}")
            elif not (driver_works and symptom.kind == NO_LIBCUDA):
                where = "elsewhere, without the driver" if driver_works else "on a machine without a loaded driver"
                yield replace(
                    found,
                    summary=f"{found.summary}{host}: the engine runs {where}",
                    fixes=(Fix("let-engine-see-driver", driver_works=driver_works),),
                )
    if of_kind(symptoms, "docker-configuration-names-nvidia"):
        for running in of_kind(symptoms, "docker-runtimes-without-nvidia"):
            summary = (
                "The running Docker does not have the runtime nvidia from daemon.json: it was not "
                "restarted since then, or reads another file"
            )
            yield Finding.error("container engine", summary, (running.fact,), Fix("restart-docker-with-toolkit"))
