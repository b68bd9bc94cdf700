"""The worker that imports PyTorch, on pretended GPUs: real products in every precision, and what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.data.numerics import is_right
from gpudoctor.model import ComputeCapability, TorchRuntime
from gpudoctor.probes.torch_build import parse_torch_runtime
from tests.conftest import Install
from tests.environments import python_of
from tests.pretended_gpu import Fault, Gpu, Machine, pretend
from tests.stand_ins import facts_of

pytestmark = pytest.mark.environments

A100, T4 = Gpu(), Gpu(name="Tesla T4", capability=(7, 5))
MIG = Gpu(name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", uuid="MIG-0a1b2c3d-0000")


def ask(folder: Path, machine: Machine, install: Install, **environ: str) -> TorchRuntime:
    """Return the section that PyTorch's own process gives on a machine."""
    found = pretend(folder, machine, install)
    return parse_torch_runtime(facts_of("torch_runtime", {**found, **environ}, interpreter=python_of("torch-cpu")))


def test_every_device_is_tried_in_every_precision_that_it_has(tmp_path: Path, driver_stand_in: Install) -> None:
    runtime = ask(tmp_path, Machine(gpus=(A100, T4, MIG)), driver_stand_in, CUDA_VISIBLE_DEVICES=f"{MIG.uuid},1")
    assert (runtime.available, runtime.availability_error, runtime.device_count) == (True, "", 2)
    assert runtime.device_names == (MIG.name, T4.name)
    assert runtime.device_capabilities == (ComputeCapability(8, 0), ComputeCapability(7, 5))
    assert (runtime.matmul_tf32, runtime.cudnn_version, runtime.warnings) == (False, 91002, ())
    results = runtime.precision_results or ()
    assert [(result.device, result.precision) for result in results] == [
        *(("cuda:0", precision) for precision in ("fp32", "tf32", "fp16", "bf16")),
        *(("cuda:1", precision) for precision in ("fp32", "fp16", "bf16")),
    ]
    assert all(is_right(result) for result in results)
    errors = {result.precision: result.relative_error or 0.0 for result in results[:4]}
    assert 100 * errors["fp32"] < errors["tf32"] < errors["bf16"]


@pytest.mark.parametrize(
    ("machine", "visible", "error"),
    [
        pytest.param(
            Machine(init_error="Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility"),
            "0",
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility",
            id="CUDA does not start",
        ),
        pytest.param(Machine(), "-1", "RuntimeError: No CUDA GPUs are available", id="hidden"),
    ],
)
def test_no_device(machine: Machine, visible: str, error: str, tmp_path: Path, driver_stand_in: Install) -> None:
    runtime = ask(tmp_path, machine, driver_stand_in, CUDA_VISIBLE_DEVICES=visible)
    assert (runtime.available, runtime.availability_error) == (False, error)
    assert runtime.precision_results == ()
    assert "sm_80" in (runtime.architectures or ())


@pytest.mark.parametrize(
    ("machine", "error"),
    [
        pytest.param(Machine(architectures=("sm_90",)), "no kernel image is available", id="another architecture"),
        pytest.param(
            Machine(faults=(Fault(operator="aten::mul", message="an illegal memory access", call=2, sticky=True),)),
            "an illegal memory access",
            id="a poisoned context",
        ),
    ],
)
def test_products_that_fail(machine: Machine, error: str, tmp_path: Path, driver_stand_in: Install) -> None:
    """After an error that poisons the context every product fails, whatever its precision."""
    runtime = ask(tmp_path, machine, driver_stand_in)
    assert runtime.available is True
    results = runtime.precision_results or ()
    assert len(results) == 4
    assert all(result.relative_error is None for result in results)
    assert all(f"CUDA error: {error}" in (result.error or "") for result in results)


def test_a_device_that_another_process_has_for_itself(tmp_path: Path, driver_stand_in: Install) -> None:
    """is_available() says yes; nothing else works."""
    runtime = ask(tmp_path, Machine(busy=True), driver_stand_in)
    assert (runtime.available, runtime.device_count, runtime.precision_results) == (True, 1, ())
    assert "all CUDA-capable devices are busy or unavailable" in (runtime.availability_error or "")
