"""Proof that the GPU works: without it the verdict is never healthy."""

from collections.abc import Iterable, Iterator, Sequence

from gpudoctor.data.numerics import is_right
from gpudoctor.model import CupyRuntime, Devices, Driver, Origin, ProbeReport, Pytorch, Symptom, TorchRuntime
from gpudoctor.model.cuda_conclusions import CupyStatus
from gpudoctor.model.gpu_conclusions import DriverState, Proof
from gpudoctor.symptoms import Symptoms, of_kind, with_role

PYTHON = "python"  # in a process name: frameworks run in it
ALONE = "smi-table-alone"  # with words, which can be a complaint in any language, a process is no proof
WORDS = ("asks-words", "asks-but")
PRECISIONS = {"fp32": "fp32", "tf32": "TF32", "fp16": "fp16", "bf16": "bf16"}


def proof(
    origin: Origin,
    pytorch: Pytorch,
    torch_runtime: TorchRuntime,
    cupy_status: CupyStatus,
    cupy_runtime: CupyRuntime,
    driver: Driver,
    driver_state: DriverState,
    devices: Devices,
    symptoms: Symptoms,
    reports: tuple[ProbeReport, ...],
) -> Proof:
    """Return the proof that the GPU works.

    On a live machine: a product that a framework computed, or only the driver if no framework was tried. In a pasted
    report: a framework that sees or uses the GPU.
    """
    if origin.is_report:
        frameworks = (*_seen_by_torch(pytorch, torch_runtime), *_seen_by_cupy(cupy_status, cupy_runtime))
        seen = (*frameworks, *_seen_by_programs(symptoms, devices))
        harmless = _harmless(symptoms, with_role(symptoms, "works")) if seen else ()
        failures = tuple(symptom for symptom in with_role(symptoms, "failure") if symptom.kind not in harmless)
        return Proof(sentences=seen, failures=failures)
    by_torch = _computed_by_torch(pytorch, torch_runtime, len(devices or ()))
    computed = (*by_torch, *_computed_by_cupy(cupy_status, cupy_runtime, devices))
    return Proof(sentences=computed or tuple(_driver(driver, driver_state, devices, pytorch, cupy_status, reports)))


def _harmless(symptoms: Symptoms, working: Sequence[Symptom]) -> tuple[str, ...]:
    """Return the kinds of words that are not complaints: the writer is content, or the GPU is in use.

    With a "but" both are needed, and words of trouble ("asks-trouble") are always a complaint.
    """
    content = bool(of_kind(symptoms, "satisfaction-reported"))
    at_work = bool(of_kind(working, "@gpu-at-work"))
    return WORDS[: content + at_work]


def _computed_by_torch(pytorch: Pytorch, torch: TorchRuntime, there: int) -> Iterator[str]:
    """Yield a sentence for the GPUs whose float32 product was correct, with the correct precisions.

    there: how many GPUs the driver lists.
    """
    results = [result for result in torch.precision_results or () if result.device != "cpu" and is_right(result)]
    gpus = [result.device for result in results if result.precision == "fp32"]
    if not gpus:
        return
    precisions = dict.fromkeys(PRECISIONS[result.precision] for result in results if result.device in gpus)
    names = [_name(device, torch.device_names or ()) for device in gpus]
    yield f"{pytorch.label} computed correctly on {_gpus(names, there)[:-1]}; {', '.join(precisions)})"


def _name(device: str, names: Sequence[str]) -> str:
    """Return the GPU name of "cuda:1" or "mps"."""
    kind, _, number = device.partition(":")
    known = number.isdigit() and int(number) < len(names)
    return names[int(number)] if known else {"mps": "Apple GPU"}.get(kind, device)


def _gpus(names: Sequence[str], there: int = 0) -> str:
    """Return the GPUs, each product once: "3 GPUs (NVIDIA L4, NVIDIA L40S)", "1 of 2 GPUs (NVIDIA L4)"."""
    number = f"{len(names)} of {there}" if there > len(names) else f"{len(names)}"
    return f"{number} GPU{'s' if max(there, len(names)) > 1 else ''} ({', '.join(dict.fromkeys(names))})"


def _computed_by_cupy(status: CupyStatus, cupy: CupyRuntime, devices: Devices) -> Iterator[str]:
    calls = cupy.calls or ()
    if status.works and not any(call.error for call in calls):
        name = next((device.name for device in devices or () if device.name), "GPU 0")
        libraries = ", ".join(call.library for call in calls)
        yield f"{status.name or 'CuPy'} computed correctly on 1 GPU ({name}; {libraries})"


def _driver(
    driver: Driver,
    state: DriverState,
    devices: Devices,
    pytorch: Pytorch,
    cupy: CupyStatus,
    reports: Iterable[ProbeReport],
) -> Iterator[str]:
    """Yield that the driver works if nothing else could be verified, and no framework failed."""
    not_run = {report.section for report in reports if report.state == "not-run"}
    frameworks = (("PyTorch", "torch_runtime", pytorch.installed), ("CuPy", "cupy_runtime", cupy.installed))
    present = {name: section for name, section, installed in frameworks if installed is not False}
    if not (state.works and devices) or not present.keys() <= {
        n for n, section in present.items() if section in not_run
    }:
        return
    if driver.cuda_init_code:
        return
    names = [device.name or f"GPU {device.nvml_index}" for device in devices]
    cuda = f", CUDA up to {driver.cuda_version}" if driver.cuda_version else ""
    rest = (
        f"{' and '.join(present)} {'were' if len(present) > 1 else 'was'} not tried"
        if present
        else "neither PyTorch nor CuPy is installed"
    )
    label = state.label.removeprefix("NVIDIA ")
    yield f"NVIDIA {label} works with {_gpus(names)}{cuda}; {rest}, and nothing else was verified"


def _seen_by_torch(pytorch: Pytorch, torch: TorchRuntime) -> Iterator[str]:
    if torch.mps_available:
        yield f"the report shows that {pytorch.label} sees the Apple GPU"
    if torch.available and torch.device_count != 0:
        names = f" ({', '.join(dict.fromkeys(torch.device_names))})" if torch.device_names else ""
        yield f"the report shows that {pytorch.label} sees the GPU{names}"


def _seen_by_cupy(status: CupyStatus, cupy: CupyRuntime) -> Iterator[str]:
    if cupy.device_count:
        plural = "s" if cupy.device_count > 1 else ""
        yield f"the report shows that {status.name or 'CuPy'} sees {cupy.device_count} GPU{plural}"


def _seen_by_programs(symptoms: Symptoms, devices: Devices) -> Iterator[str]:
    held = ((device, process) for device in devices or () for process in device.processes or ())
    for device, process in held:
        if PYTHON in process.name and of_kind(symptoms, ALONE):
            yield f"the report shows that {process.name} computes on GPU {device.nvml_index}"
            break
    for symptom in with_role(symptoms, "works")[:1]:
        shown = symptom.names.get("shown", symptom.text)
        yield f'the report shows that a program uses the GPU: "{shown}"'
