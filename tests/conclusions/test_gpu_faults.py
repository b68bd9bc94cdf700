import pytest

from gpudoctor.conclusions.gpu_faults import gpu_faults
from gpudoctor.model import Device, Driver, Place, Snapshot, Symptom
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


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        *((error, True) for error in ("GPU is lost", "GPU requires reset", "requires a restart", "fallen off the bus")),
        *((error, True) for error in ("ERR!", "its power cannot be read")),
        ("Unknown Error", False),
    ],
)
def test_a_device_that_is_lost_says_so(error: str, lost: bool) -> None:
    found = gpu_faults(Driver(), (ANSWERS, Device(nvml_index=1, error=error)), None, Place())
    assert [(fault.nvml_index, fault.lost) for fault in found.faulty] == ([(1, True)] if lost else [])


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        *((kind, True) for kind in ("gpu-fallen-off-bus", "gpu-is-lost")),
        *((kind, True) for kind in ("gpu-handle-unknown-error", "gpu-pcie-bus-error")),
        ("gpu-nvswitch-error", False),
    ],
)
def test_messages_of_a_gpu_that_is_lost(kind: str, lost: bool) -> None:
    symptom = Symptom(kind=kind, text="as printed", fact="symptoms[0].text")
    (fault,) = gpu_faults(Driver(), None, (symptom,), Place()).faulty
    assert (fault.nvml_index, fault.severe, fault.lost) == (None, True, lost)
