import pytest

from gpudoctor.conclusions.gpu_faults import gpu_faults
from gpudoctor.model import Device, Driver, Place, Snapshot
from gpudoctor.symptoms.facts import with_symptoms

NOT_STARTED = Driver(kernel_messages=("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x24:0xffff:1220)",))
ANSWERS, LOST = Device(nvml_index=0), Device(nvml_index=0, error="Unknown Error")


@pytest.mark.parametrize(
    ("devices", "faulty"),
    [
        pytest.param((), True, id="no device answers"),
        pytest.param((LOST,), True, id="the only device does not answer"),
        pytest.param((ANSWERS,), False, id="a device answers: the line may be of the past"),
    ],
)
def test_a_line_of_the_kernel_log_counts_while_no_device_answers(devices: tuple[Device, ...], faulty: bool) -> None:
    symptoms = with_symptoms(Snapshot(driver=NOT_STARTED)).symptoms
    found = gpu_faults(NOT_STARTED, devices, symptoms, Place())
    assert [fault.severe for fault in found.faulty] == ([True] if faulty else [])


@pytest.mark.parametrize("driver", [Driver(nvml_code=15), Driver(nvml_error="GPU is lost")])
def test_nvml_names_no_device_when_it_loses_the_only_one(driver: Driver) -> None:
    (fault,) = gpu_faults(driver, None, with_symptoms(Snapshot(driver=driver)).symptoms, Place()).faulty
    assert (fault.nvml_index, fault.lost, fault.signs[0].text) == (None, True, 'the error "GPU is lost"')
