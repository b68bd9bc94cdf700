"""The compiler library NVRTC, which CuPy cannot do without."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    SharedLibrary,
    System,
    Toolkit,
    ToolkitInstall,
)
from gpudoctor.testing import run_check

L4 = Device(nvml_index=0, name="NVIDIA L4")
NOTHING = Toolkit(toolkits=(), system_libraries=(), library_path_libraries=())


def cupy(*nvrtc: str, **fields: Any) -> Cupy:
    return Cupy(
        **{
            "distributions": (Package(name="cupy-cuda12x", version=PackageVersion("14.2.0"), installer="pip"),),
            "platform": "cuda",
            "cuda_major": 12,
            "nvrtc_files": nvrtc,
            **fields,
        }
    )


def run(**sections: Any) -> Any:
    return run_check("cupy-nvrtc-missing", **{"cupy": cupy(), "devices": (L4,), **sections})


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param(
            CupyRuntime(import_error="ImportError: libnvrtc.so.12: cannot open shared object file: No such file"),
            id="on import",
        ),
        pytest.param(
            CupyRuntime(
                import_error="",
                calls=(
                    LibraryCall(
                        library="nvrtc", error="RuntimeError: CuPy failed to load libnvrtc.so.12: OSError: ..."
                    ),
                ),
            ),
            id="on the first call",
        ),
        pytest.param(
            CupyRuntime(
                import_error="",
                calls=(
                    LibraryCall(library="elementwise", error="ImportError: Could not find module 'nvrtc64_120_0.dll'"),
                ),
            ),
            id="on Windows",
        ),
    ],
)
def test_cupy_says_so(runtime: CupyRuntime) -> None:
    (finding,) = run(cupy_runtime=runtime).findings
    assert finding.severity is Severity.ERROR
    assert "nvrtc" in finding.summary
    assert finding.remedies[0].commands[0] == "python -m pip install --upgrade 'cupy-cuda12x[ctk]'"


@pytest.mark.parametrize(
    ("sections", "outcome"),
    [
        pytest.param({"toolkit": NOTHING}, Outcome.FOUND, id="neither wheel nor toolkit"),
        pytest.param({"cupy": cupy("/s/libnvrtc.so.12"), "toolkit": NOTHING}, Outcome.PASSED, id="a wheel"),
        pytest.param(
            {
                "toolkit": Toolkit(
                    toolkits=(ToolkitInstall(path="/usr/local/cuda", version=CudaVersion(12, 4)),), system_libraries=()
                )
            },
            Outcome.PASSED,
            id="a toolkit",
        ),
        pytest.param(
            {"toolkit": Toolkit(toolkits=(), system_libraries=(SharedLibrary(soname="libnvrtc.so.12", path="/l"),))},
            Outcome.PASSED,
            id="the loader has it",
        ),
        pytest.param(
            {"toolkit": NOTHING, "python": Python(environment="conda", packages=())}, Outcome.SKIPPED, id="conda"
        ),
        pytest.param(
            {"toolkit": NOTHING, "cupy_runtime": CupyRuntime(import_error="", calls=(LibraryCall(library="nvrtc"),))},
            Outcome.PASSED,
            id="it compiles all the same",
        ),
        pytest.param({"toolkit": NOTHING, "devices": (), "system": System(pci_gpus=())}, Outcome.SKIPPED, id="no GPU"),
    ],
)
def test_from_disk(sections: dict[str, Any], outcome: Outcome) -> None:
    assert run(**sections).outcome is outcome


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"cupy": cupy(nvrtc_files=None)}, "cupy.nvrtc_files is unknown", id="the wheels"),
        pytest.param({}, "toolkit.toolkits is unknown", id="the toolkits"),
        pytest.param({"cupy": Cupy()}, "cupy.distributions is unknown", id="CuPy"),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run(**sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)
