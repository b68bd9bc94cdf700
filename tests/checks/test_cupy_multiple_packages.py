"""How many CuPy distributions are installed."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    LibraryCall,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    System,
)
from gpudoctor.testing import run_check

L4 = Device(nvml_index=0, name="NVIDIA L4")
WORKS = CupyRuntime(import_error="", device_error="", calls=(LibraryCall(library="elementwise"),), warnings=())
FAILS = CupyRuntime(import_error="ImportError: libnvrtc.so.11.2: cannot open shared object file")


def cupy(*names: str) -> Cupy:
    return Cupy(
        distributions=tuple(Package(name=name, version=PackageVersion("13.6.0"), installer="pip") for name in names)
    )


TWINS = cupy("cupy-cuda11x", "cupy-cuda12x")


@pytest.mark.parametrize(
    ("sections", "severity"),
    [
        pytest.param({}, Severity.WARNING, id="not imported"),
        pytest.param({"cupy_runtime": WORKS}, Severity.WARNING, id="works"),
        pytest.param({"cupy_runtime": FAILS}, Severity.ERROR, id="fails"),
        pytest.param(
            {"cupy_runtime": FAILS, "devices": (), "system": System(pci_gpus=())}, Severity.WARNING, id="without a GPU"
        ),
    ],
)
def test_severity(sections: dict[str, Any], severity: Severity) -> None:
    (finding,) = run_check("cupy-multiple-packages", **{"cupy": TWINS, "devices": (L4,), **sections}).findings
    assert finding.severity is severity
    assert finding.summary == "cupy-cuda11x 13.6.0 and cupy-cuda12x 13.6.0 are installed at once"


def test_one_that_is_listed_twice_is_one() -> None:
    twice = cupy("cupy-cuda12x", "cupy-cuda12x")
    assert run_check("cupy-multiple-packages", cupy=twice, devices=(L4,)).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("installer", "commands"),
    [
        (
            "pip",
            (
                "/v/bin/python -m pip uninstall -y cupy-cuda11x cupy-cuda12x",
                "/v/bin/python -m pip install 'cupy-cuda12x[ctk]'",
            ),
        ),
        (
            "uv",
            (
                "uv pip uninstall --python /v/bin/python cupy-cuda11x cupy-cuda12x",
                "uv pip install --python /v/bin/python 'cupy-cuda12x[ctk]'",
            ),
        ),
    ],
)
def test_commands(installer: str, commands: tuple[str, ...]) -> None:
    (finding,) = run_check(
        "cupy-multiple-packages",
        cupy=TWINS,
        devices=(L4,),
        python=Python(executable="/v/bin/python", installer=installer),
        driver=Driver(version=DriverVersion.parse("550.120"), cuda_version=CudaVersion(12, 4)),
    ).findings
    assert finding.remedies[0].commands[:2] == commands


def test_the_warning_of_cupy_alone() -> None:
    runtime = CupyRuntime(
        import_error="",
        warnings=("CuPy may not function correctly because multiple CuPy packages are installed in your environment:",),
    )
    (finding,) = run_check("cupy-multiple-packages", cupy_runtime=runtime).findings
    assert finding.facts == ("cupy_runtime.warnings[0]",)


@pytest.mark.parametrize(
    ("there", "outcome", "reason"),
    [
        pytest.param(cupy("cupy-cuda12x"), Outcome.PASSED, "", id="one"),
        pytest.param(cupy(), Outcome.PASSED, "", id="none"),
        pytest.param(Cupy(), Outcome.SKIPPED, "cupy.distributions is unknown", id="not known"),
    ],
)
def test_outcome(there: Cupy, outcome: Outcome, reason: str) -> None:
    result = run_check("cupy-multiple-packages", cupy=there)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_the_warning_names_what_is_to_be_removed() -> None:
    text = "UserWarning: multiple CuPy packages are installed in your environment: cupy-cuda11x, cupy-cuda12x Follow"
    (finding,) = run_check("cupy-multiple-packages", cupy_runtime=CupyRuntime(warnings=(text,))).findings
    assert finding.facts == ("cupy_runtime.warnings[0]",)
    assert finding.remedies[0].commands[0] == "python -m pip uninstall -y cupy-cuda11x cupy-cuda12x"
