"""Import PyTorch and ask it what it can do here; on every device, compare small products with float64.

Standard library and PyTorch only, from Python 3.8 and PyTorch 1.x on, for builds of every vendor: what a build does not
have stays out of the answer. A value that is left out is unknown.
"""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Mapping, Tuple

from gpudoctor.probes.workers.asking import ask, attempt, error_text, put_known, traceback_text, warning_texts

SIZE = 256  # rows and columns of the matrices; gpudoctor/numerics.py computes its bounds for it
TF32_FROM = (8, 0)  # compute capability of the first devices with TF32 (NVIDIA A100 whitepaper)

Facts = Dict[str, Any]


def collect(arguments: Mapping[str, Any]) -> Facts:
    """Return the facts of section torch_runtime. `{"products": false}` leaves the products out."""
    with warnings.catch_warnings(record=True) as caught:
        facts, torch = _import_torch()
        if torch is not None:
            facts.update(_versions(torch), **_cuda(torch), **_switches(torch), **_mps(torch))
    facts["warnings"] = warning_texts(caught)
    if torch is not None and arguments.get("products", True):
        facts["precision_results"] = _products(torch, _devices(facts))
    return facts


def _import_torch() -> Tuple[Facts, Any]:
    """Return the facts about the import, and the module: None if it failed."""
    try:
        import torch

        version = str(torch.__version__)  # a folder or file of that name that is not PyTorch has none
    except BaseException as error:  # an import may raise SystemExit too
        return {"import_error": error_text(error), "import_traceback": traceback_text()}, None
    return {"import_error": "", "version": version}, torch


def _versions(torch: Any) -> Facts:
    facts: Facts = {"hip_version": str(ask(lambda: torch.version.hip) or "")}
    cuda = ask(lambda: torch.version.cuda)
    if cuda is not None:
        facts["cuda_version"] = str(cuda)
    return facts


def _cuda(torch: Any) -> Facts:
    """Return what torch.cuda says. Initialising it names the error that is_available() swallows."""
    facts: Facts = {}
    on_gpu = bool(ask(lambda: torch.version.cuda) or ask(lambda: torch.version.hip))
    available, error = attempt(lambda: bool(torch.cuda.is_available()))
    facts["available"] = bool(available)
    if on_gpu:
        _, init_error = attempt(lambda: torch.cuda.init())  # noqa: PLW0108 - torch.cuda itself may be missing
        error = init_error or error
    facts["availability_error"] = error
    put_known(facts, "device_count", lambda: int(torch.cuda.device_count()))
    facts.update(_architectures(torch, on_gpu), **_cudnn(torch))
    if facts["available"] and not error:
        facts.update(_device_facts(torch, facts.get("device_count") or 0))
    return facts


def _device_facts(torch: Any, count: int) -> Facts:
    facts: Facts = {}
    put_known(facts, "device_names", lambda: [str(torch.cuda.get_device_name(index)) for index in range(count)])
    if ask(lambda: torch.version.hip) is None:  # an AMD GPU has a gfx target, no compute capability
        put_known(
            facts,
            "device_capabilities",
            lambda: ["{}.{}".format(*torch.cuda.get_device_capability(index)) for index in range(count)],
        )
    return facts


def _architectures(torch: Any, on_gpu: bool) -> Facts:
    """Return the architectures of the build; get_arch_list() is empty without a device, whatever the build has."""
    if not on_gpu:
        return {"architectures": []}
    flags = ask(lambda: torch._C._cuda_getArchFlags())  # noqa: PLW0108 - older ones have no such function
    listed = str(flags).split() if flags else ask(lambda: [str(arch) for arch in torch.cuda.get_arch_list()])
    return {"architectures": listed} if listed else {}


def _cudnn(torch: Any) -> Facts:
    version, error = attempt(lambda: int(torch.backends.cudnn.version() or 0))
    return {"cudnn_error": error} if version is None else {"cudnn_version": version, "cudnn_error": ""}


def _switches(torch: Any) -> Facts:
    """Return the precision switches. Reading them changes none of them."""
    facts: Facts = {}
    backends = ask(lambda: torch.backends)
    put_known(facts, "matmul_tf32", lambda: _tf32(backends, backends.cuda.matmul))
    put_known(facts, "cudnn_benchmark", lambda: bool(torch.backends.cudnn.benchmark))
    return facts


def _tf32(backends: Any, matmul: Any) -> bool:
    """Return whether TF32 is allowed, by the newer switch if there is one.

    Once it has been set, reading the older one raises RuntimeError: "mix of the legacy and new APIs"
    (https://github.com/pytorch/pytorch/issues/173731). "none" means the setting above it.
    """
    precision = ask(lambda: matmul.fp32_precision)
    if precision == "none":
        precision = ask(lambda: backends.fp32_precision)
    return bool(matmul.allow_tf32) if precision is None else precision == "tf32"


def _mps(torch: Any) -> Facts:
    backend = ask(lambda: torch.backends.mps)
    if backend is None:
        return {"mps_built": False, "mps_available": False}
    facts: Facts = {}
    put_known(facts, "mps_built", lambda: bool(backend.is_built()))
    put_known(facts, "mps_available", lambda: bool(backend.is_available()))
    return facts


def _devices(facts: Facts) -> Dict[str, List[str]]:
    """Return the devices to try, each with its precisions."""
    devices = {}
    capabilities = facts.get("device_capabilities") or []
    count = (facts.get("device_count") or 0) if facts["available"] and not facts["availability_error"] else 0
    for index in range(count):
        has_tf32 = index < len(capabilities) and tuple(map(int, capabilities[index].split("."))) >= TF32_FROM
        devices["cuda:{}".format(index)] = ["fp32", *(["tf32"] if has_tf32 else []), "fp16", "bf16"]
    if facts.get("mps_available"):
        devices["mps"] = ["fp32", "fp16", "bf16"]
    return devices


def _products(torch: Any, devices: Mapping[str, List[str]]) -> List[Facts]:
    """Return how far each product is from the float64 one. Nothing is computed if there is no device."""
    if not devices:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the older TF32 switch; those of the library are caught before
        torch.set_num_threads(1)
        generator = torch.Generator()
        generator.manual_seed(0)
        left = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.float32)
        right = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.float32)
        return [
            _product(torch, device, precision, (left, right))
            for device, precisions in devices.items()
            for precision in precisions
        ]


def _product(torch: Any, device: str, precision: str, factors: Any) -> Facts:
    result: Facts = {"device": device, "precision": precision}
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    try:
        expected = torch.mm(*(factor.double() for factor in factors))
        if device.startswith("cuda") and precision in ("fp32", "tf32"):
            _allow_tf32(torch, precision == "tf32")
        # `mul` is a kernel of PyTorch itself: cuBLAS alone may know a device for which PyTorch has no kernel.
        left, right = (factor.to(device).mul(1).to(dtype) for factor in factors)
        # Copying to the CPU waits for the device, so that its errors are raised here.
        actual = torch.mm(left, right).float().cpu().double()
        missing = int((~torch.isfinite(actual)).sum())
        if missing:
            result["error"] = "not finite: {} of {} values".format(missing, actual.numel())
        else:
            error = (actual - expected).abs().max() / expected.abs().max()
            result["relative_error"] = float("{:.3e}".format(float(error)))
    except Exception as error:
        result["error"] = error_text(error)
    return result


def _allow_tf32(torch: Any, allowed: bool) -> None:
    """Set TF32 for products in this process. The older switch sets the newer one along with it, not the reverse."""
    matmul = torch.backends.cuda.matmul
    try:
        matmul.allow_tf32 = allowed
    except Exception:
        if hasattr(matmul, "fp32_precision"):
            matmul.fp32_precision = "tf32" if allowed else "ieee"
        elif allowed:  # before PyTorch 1.7 there is no TF32 to forbid
            raise
