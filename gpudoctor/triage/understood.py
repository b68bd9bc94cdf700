"""Sentences for the user: what was understood about a machine, and what a verdict still needs."""

from collections.abc import Iterator

from gpudoctor.model import Concern, Cupy, Devices, Driver, Gpu, Place, Pytorch, Symptom, System
from gpudoctor.model.symptom import shortened
from gpudoctor.symptoms import Symptoms, of_kind, with_role
from gpudoctor.symptoms.tables import row_of

SYSTEMS = {"linux": "Linux", "windows": "Windows", "darwin": "macOS"}
MOST_FAILURES = 3
AT_WORK = "@gpu-at-work"
NO_FAULT = "the writer probably has no fault now: the text reads like a question, a wish, advice or a solved problem"

TELLING_WORDS = ("asks-failure", "asks-complaint", "asks-trouble")
MERE_WORDS = (*TELLING_WORDS, "asks-words", "asks-but")  # such a message shows that something is wrong, not what


def understood(
    system: System,
    place: Place,
    gpu: Gpu,
    driver: Driver,
    pytorch: Pytorch,
    cupy: Cupy,
    symptoms: Symptoms,
    concern: Concern,
) -> tuple[str, ...]:
    """Return what is known about the machine and what the report complains about."""
    found = (
        *((NO_FAULT,) if concern.no_fault else ()),
        *_system(system, place),
        *_gpu(gpu, symptoms),
        *((f"NVIDIA {driver.label}",) if driver.version else ()),
        *_frameworks(pytorch, cupy),
        *_at_work(symptoms),
        *_said(symptoms),
    )
    return tuple(dict.fromkeys(found))


def _system(system: System, place: Place) -> Iterator[str]:
    distribution = system.distribution_label
    if place.in_wsl:
        yield f"WSL{f' ({distribution})' if distribution else ''}"
    elif distribution or system.os in SYSTEMS:
        yield distribution or SYSTEMS[system.os or ""]
    if place.about_container:
        yield "a container"


def _gpu(gpu: Gpu, symptoms: Symptoms) -> Iterator[str]:
    named = of_kind(symptoms, "nvidia-gpu-named", "nvidia-gpu-owned", "amd-gpu-named")
    if gpu.present:
        alike = len(gpu.known) if len({known.name for known in gpu.known}) == 1 else 1
        yield f"{alike} x {gpu.present}" if alike > 1 else gpu.present
        return
    yield from [symptom.text for symptom in named if "NVIDIA-SMI" not in symptom.text][:1]


def _frameworks(pytorch: Pytorch, cupy: Cupy) -> Iterator[str]:
    if pytorch.version is not None:
        says_cuda = pytorch.version.local.startswith("cu")  # another PyTorch of the report is the one without
        yield f"{pytorch.label}{', a build without CUDA' if pytorch.build == 'cpu' and not says_cuda else ''}"
    if cupy.version is not None:
        yield f"CuPy {cupy.version}"


def _at_work(symptoms: Symptoms) -> Iterator[str]:
    """Yield what shows that a program uses the GPU: a failure elsewhere in the report does not take that back."""
    for symptom in _working(symptoms)[:1]:
        yield f'a program uses the GPU: "{shortened(symptom.names.get("shown", symptom.text))}"'


def _working(symptoms: Symptoms) -> tuple[Symptom, ...]:
    return of_kind(with_role(symptoms, "works"), AT_WORK)


def _said(symptoms: Symptoms) -> Iterator[str]:
    """Yield the topic of the report and its failures, each with the words that show it."""
    for symptom in of_kind(symptoms, "about-*", "place-*", "cupy-named", "intel-gpu-named"):
        row = row_of(symptom.kind)
        if row is not None:
            yield row.says
    failures = [
        symptom
        for symptom in with_role(symptoms, "failure")
        if symptom.kind not in MERE_WORDS and not symptom.text.isdecimal()  # a code that other words express
    ]
    if not failures and (words := _mere_words(symptoms)):
        yield f"words that may describe a failure: {words}"
    for symptom in failures[:MOST_FAILURES]:
        row = row_of(symptom.kind)
        says = row.says if row is not None else "an error that gpudoctor does not know"
        yield f'{says}: "{symptom.quote}"'


def _mere_words(symptoms: Symptoms) -> str:
    """Return the words that keep a report from being healthy."""
    found = dict.fromkeys(symptom.quote for symptom in of_kind(symptoms, *TELLING_WORDS))
    return ", ".join(f'"{quote}"' for quote in list(found)[:MOST_FAILURES])


def missing(
    system: System, driver: Driver, devices: Devices, pytorch: Pytorch, symptoms: Symptoms, concern: Concern
) -> tuple[str, ...]:
    """Return the facts that a verdict needs and that are unknown."""
    is_mac = system.os == "darwin"
    about_torch = pytorch.version is not None or bool(of_kind(symptoms, "about-torch-named"))
    wanted = (
        ("whether something fails now", concern.no_fault),
        ("the operating system", system.os is None),
        ("the driver version", not is_mac and driver.version is None),
        ("which GPU the driver sees", not is_mac and not devices),
        ("the PyTorch version", about_torch and pytorch.version is None),
        ("the PyTorch build (CUDA or CPU)", about_torch and pytorch.build is None),
        ("whether a program computes on the GPU", not _working(symptoms)),
    )
    return tuple(name for name, is_missing in wanted if is_missing)
