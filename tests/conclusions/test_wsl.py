"""What keeps the driver of Windows out of WSL."""

from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Device, Driver, Snapshot, Symptom, System, TorchRuntime, Wsl
from gpudoctor.symptoms.facts import with_symptoms

NO_GPUS = TorchRuntime(available=False, availability_error="No CUDA GPUs are available")
BLOCKED = Symptom(kind="nvml-blocked-by-os", text="x", code="nvml-17")
LISTED = (Device(nvml_index=0, uuid="GPU-1"),)


def wsl_of(**sections: Any) -> Wsl:
    found = Facts(with_symptoms(Snapshot(**sections))).get("wsl")
    assert isinstance(found, Wsl)
    return found


@pytest.mark.parametrize(
    ("kernel", "old"),
    [
        pytest.param("5.10.43.3-microsoft-standard-WSL2", "", id="first with GPUs"),
        pytest.param("5.10.43.2-microsoft-standard-WSL2", "5.10.43.2", id="last without"),
        pytest.param("6.6.87.2-microsoft-standard-WSL2", "", id="new"),
        pytest.param("4.4.0-19041-Microsoft", "4.4.0", id="WSL 1"),
        pytest.param(None, "", id="unknown"),
    ],
)
def test_kernel(kernel: str | None, old: str) -> None:
    assert wsl_of(system=System(kernel=kernel)).old_kernel == old


@pytest.mark.parametrize(
    ("symptom", "old"),
    [
        (Symptom(kind="windows-build", text="x", names={"build": "19043"}), "Windows build 19043"),
        (Symptom(kind="windows-build", text="x", names={"build": "19044"}), ""),
        *(
            (Symptom(kind="windows-10-release", text="x", names={"release": name}), f"Windows 10 {name.upper()}")
            for name in ("1809", "1903", "1909", "2004", "20H2", "21h1")
        ),
        (Symptom(kind="windows-10-release", text="x", names={"release": "21H2"}), ""),
    ],
)
def test_windows(symptom: Symptom, old: str) -> None:
    found = wsl_of(symptoms=(symptom,))
    assert (found.old_windows, found.old_windows_fact) == (old, "symptoms[0].text" if old else "")


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        pytest.param(Driver(libcuda_path="/usr/lib/wsl/lib/libcuda.so.1"), ("", ""), id="Windows"),
        pytest.param(Driver(libcuda_path="/usr/local/cuda/compat/libcuda.so.1"), ("", ""), id="compatibility package"),
        pytest.param(
            Driver(libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "driver.libcuda_path"),
            id="loaded",
        ),
        pytest.param(
            Driver(libcuda_files=("/usr/lib/wsl/lib/libcuda.so.1.1", "/usr/lib/libcuda.so.535.129.03")),
            ("/usr/lib/libcuda.so.535.129.03", "driver.libcuda_files[1]"),
            id="there",
        ),
        pytest.param(Driver(libcuda_files=("/usr/lib/libcuda.so.1.1",)), ("", ""), id="a copy of that of Windows"),
    ],
)
def test_a_linux_driver_inside(driver: Driver, expected: tuple[str, str]) -> None:
    found = wsl_of(driver=driver)
    assert (found.driver_inside, found.driver_inside_fact) == expected


@pytest.mark.parametrize(
    ("sections", "works", "failure"),
    [
        pytest.param({"torch_runtime": TorchRuntime(available=True)}, True, "", id="PyTorch"),
        pytest.param({"torch_runtime": NO_GPUS}, False, "torch_runtime.availability_error", id="no GPU"),
        pytest.param({"torch_runtime": TorchRuntime(available=False)}, False, "torch_runtime.available", id="silent"),
        pytest.param({"devices": LISTED}, True, "", id="NVML"),
        pytest.param({"devices": LISTED, "symptoms": (BLOCKED,)}, False, "symptoms[0].text", id="Windows' own table"),
        pytest.param(
            {"devices": LISTED, "torch_runtime": NO_GPUS, "system": System(kernel="4.19.128-microsoft-standard")},
            False,
            "torch_runtime.availability_error",
            id="nvidia-smi alone in an old WSL",
        ),
        pytest.param({"driver": Driver(nvml_code=17)}, False, "driver.nvml_code", id="blocked"),
    ],
)
def test_what_fails(sections: dict[str, Any], works: bool, failure: str) -> None:
    found = wsl_of(**sections)
    assert (found.works, found.failure) == (works, failure)


@pytest.mark.parametrize(("kind", "misses"), [("smi-table-alone", False), ("nvidia-smi-not-found", True)])
def test_a_table_of_nvidia_smi_misses_no_gpu(kind: str, misses: bool) -> None:
    found = wsl_of(system=System(os="linux", wsl=2), symptoms=(Symptom(kind=kind, text="x", fact="symptoms[0].text"),))
    assert bool(found.failure) is misses
