"""Whether the loader, and the linker, find the driver's libcuda."""

from collections.abc import Iterator

from gpudoctor.model import Devices, Driver, Finding, Fix, Place, Pytorch
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind
from gpudoctor.symptoms.answers import answers

# Symptoms of a loader: a machine without a driver has them too.
LOADERS = ("libcuda-not-found-by-numba", "libcuda-not-opened", "nvidia-smi-without-cuda")


@check(
    family="cuda",
    explains=(
        *("torch-cuda-unavailable", "cupy-unusable", "nvidia-container-toolkit-missing"),
        "container-engine-cannot-give-gpu",
    ),
)
def libcuda_not_on_linker_path(
    place: Place,
    pytorch: Pytorch,
    driver: Driver = Driver(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The driver's library libcuda is installed where the loader or the linker does not look.

    Why: PyTorch and CuPy load libcuda.so.1 by its name; if the loader does not find it they report no driver. Triton
    and builds of extensions link with libcuda.so and end with "cannot find -lcuda".
    Exception: stubs of a toolkit and forward compatibility packages do not count as the driver's libcuda, but are
    enough for a linker. If the loader finds none and no driver answers, that is driver-missing.
    Reference: https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    linker = answers(symptoms, "libcuda-not-on-linker-path")[:1]
    if linker:
        yield from linker
        return
    skip_unless(not place.in_wsl, "wsl-driver-problem checks where libcuda is in WSL")
    said = first(of_kind(symptoms, "nvidia-smi-works-reported"))
    # A loaded module whose version a program prints shows a driver too: the program read it, but found no libcuda.
    listed = bool(devices) and not driver.nvml_error and bool(of_kind(symptoms, "shown-nvidia-smi"))
    shows_driver = said is not None or driver.module_version is not None or listed
    messages = of_kind(symptoms, *LOADERS) or (of_kind(symptoms, "libcuda-not-found") if shows_driver else ())
    loader = first(messages) if not pytorch.available and not place.is_windows else None
    # nvidia-smi needs no libcuda: it showed a driver.
    driver_answers = driver.version is not None and bool(devices) and not driver.nvml_error
    if loader is not None and (driver_answers or shows_driver) and not place.in_container:
        library = loader.names.get("library", "libcuda.so.1")
        facts, works = ("driver.version",), f"driver {driver.version} works"
        if not driver_answers and said is not None:
            facts, works = (said.fact,), "nvidia-smi works"
        elif not driver_answers and listed:
            facts, works = ("devices[0].name",), "nvidia-smi lists the GPU"
        elif not driver_answers:
            facts, works = ("driver.module_version",), f"the driver's kernel module {driver.module_version} is loaded"
        summary = f"The loader finds no {library}, although {works}"
        yield Finding.error(
            library,
            summary,
            (loader.fact, *facts),
            Fix("find-libcuda"),
            certain=driver_answers or listed or driver.module_version is not None,
        )
        return
    opened = first(of_kind(symptoms, "libcuda-not-opened"))
    if opened is not None and place.asks_for_gpu:
        summary = "The loader in the container finds no libcuda.so.1, although the container asks for the GPU"
        evidence = (opened.fact, "container.gpus_requested")
        yield Finding.error("libcuda.so.1", summary, evidence, Fix("find-libcuda-in-container"), certain=False)
        return
    if known(driver.libcuda_path, "driver.libcuda_path"):
        return
    files = known(driver.libcuda_files, "driver.libcuda_files")
    of_driver = [path for path in files if "/stubs/" not in path and "/compat/" not in path]
    if of_driver:
        reason = driver.libcuda_refusal
        yield Finding.error(
            "libcuda.so.1",
            f"The loader finds no libcuda.so.1, although {of_driver[0]} is there" + (f" ({reason})" if reason else ""),
            ("driver.libcuda_path", "driver.libcuda_files", "driver.libcuda_error" if reason else ""),
            Fix("add-libcuda-folder", folder=of_driver[0].rpartition("/")[0]),
        )
