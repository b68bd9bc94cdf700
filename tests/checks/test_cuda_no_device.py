import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Outcome, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check

ERROR_100 = Symptom(kind="cuda-no-device", text="no CUDA-capable device is detected")
NAMED = Symptom(kind="nvidia-gpu-named", text="RTX 3060")
DRIVER = Driver(version=DriverVersion.parse("550.54.14"))


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"symptoms": (ERROR_100, NAMED)}, id="the report names it"),
        pytest.param({"symptoms": (ERROR_100,), "devices": (Device(nvml_index=0, name="NVIDIA L4"),)}, id="listed"),
        pytest.param({"symptoms": (ERROR_100,), "driver": DRIVER}, id="a driver"),
        pytest.param({"driver": Driver(cuda_init_code=100), "devices": (Device(nvml_index=0),)}, id="live"),
    ],
)
def test_next_to_a_gpu_it_is_an_error(sections: dict[str, object]) -> None:
    (finding,) = run_check("cuda-no-device", **sections).findings
    assert "nvidia-smi -L" in finding.remedies[0].commands


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"symptoms": (ERROR_100,)}, id="no GPU is shown"),
        pytest.param({"symptoms": (NAMED,)}, id="another code"),
        pytest.param({"symptoms": (ERROR_100, NAMED), "torch_runtime": TorchRuntime(available=False)}, id="PyTorch"),
        pytest.param(
            {"symptoms": (ERROR_100, Symptom(kind="no-nvidia-gpu-reported", text="no GPU")), "driver": DRIVER},
            id="denied",
        ),
    ],
)
def test_otherwise_it_says_nothing(sections: dict[str, object]) -> None:
    assert run_check("cuda-no-device", **sections).outcome is not Outcome.FOUND


def test_windows_gets_commands_of_windows() -> None:
    (finding,) = run_check("cuda-no-device", symptoms=(ERROR_100, NAMED), system=System(os="windows")).findings
    assert not any("grep" in command or "/dev" in command for command in finding.remedies[0].commands)
