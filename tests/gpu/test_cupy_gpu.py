"""CuPy on a real device: a call into each of its libraries agrees with NumPy."""

import importlib.util
from pathlib import Path

import pytest

from gpudoctor.model import CupyRuntime, Device, Outcome
from gpudoctor.probes.cupy_build import parse_cupy_runtime
from gpudoctor.testing import run_check
from tests.stand_ins import ask_worker

pytestmark = pytest.mark.gpu


def ask(**environ: str) -> CupyRuntime:
    return parse_cupy_runtime(ask_worker("cupy_runtime", environ, timeout=300)["facts"])


@pytest.fixture(scope="module")
def runtime() -> CupyRuntime:
    """Return the section, of a machine with a device and CuPy."""
    if not Path("/dev/nvidiactl").exists() or importlib.util.find_spec("cupy") is None:
        pytest.skip("needs an NVIDIA GPU and CuPy in this environment")
    return ask()


def test_the_import_works_and_sees_the_devices(runtime: CupyRuntime) -> None:
    assert (runtime.import_error, runtime.device_error) == ("", "")
    assert runtime.device_count
    assert None not in (runtime.build_cuda_version, runtime.runtime_cuda_version, runtime.driver_cuda_version)
    assert runtime.nvrtc_architectures


def test_every_library_agrees_with_numpy(runtime: CupyRuntime) -> None:
    assert [call.library for call in runtime.calls or ()] == [
        "nvrtc",
        "elementwise",
        "cublas",
        "cufft",
        "curand",
        "cusolver",
        "cusparse",
    ]
    assert [call for call in runtime.calls or () if call.error] == []
    compared = [call for call in runtime.calls or () if call.library not in ("nvrtc", "curand")]
    assert all(call.relative_error is not None and call.relative_error < 1e-12 for call in compared)


def test_no_kernel_is_left_in_the_cache(runtime: CupyRuntime, tmp_path: Path) -> None:
    assert ask(CUPY_CACHE_DIR=str(tmp_path)).calls == runtime.calls
    assert list(tmp_path.rglob("*.cubin")) == []


def test_a_healthy_device_has_no_finding(runtime: CupyRuntime) -> None:
    result = run_check("cupy-unusable", cupy_runtime=runtime, devices=(Device(nvml_index=0),))
    assert result.outcome is Outcome.PASSED


def test_a_hidden_device_is_an_error_with_its_text(runtime: CupyRuntime) -> None:
    hidden = ask(CUDA_VISIBLE_DEVICES="-1")
    assert hidden.device_count == 0
    assert "cudaErrorNoDevice" in (hidden.device_error or "")
    assert [call.library for call in hidden.calls or ()] == ["nvrtc"]
    assert hidden.nvrtc_version == runtime.nvrtc_version
