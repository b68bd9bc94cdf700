"""The XML of nvidia-smi, old and new; what is no such XML is refused."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.model import CudaVersion, Device, DeviceProcess, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import parse_nvidia_smi_xml, pci_address

SAMPLES = Path(__file__).with_name("nvidia_smi")
R590 = (SAMPLES / "r590.xml").read_text()
R450 = (SAMPLES / "r450.xml").read_text()
MIB = 2**20


def test_a_new_driver() -> None:
    report = parse_nvidia_smi_xml(R590)
    assert (report.driver_version, report.cuda_version) == (DriverVersion.parse("590.44.01"), CudaVersion(13, 1))
    assert report.devices == (
        Device(
            nvml_index=0,
            name="NVIDIA RTX 6000 Ada Generation",
            uuid="GPU-6000ada0-0000-1111-2222-333344445555",
            pci_address="0000:41:00.0",
            pci_device_id="26B1",
            memory_total_bytes=49140 * MIB,
            memory_used_bytes=20480 * MIB,
            processes=(
                DeviceProcess(pid=4242, name="python & more", used_bytes=20300 * MIB),
                DeviceProcess(pid=4243),
            ),
            power_draw_watts=299.44,
            power_limit_watts=300.0,
            power_limit_default_watts=300.0,
            clock_sm_mhz=2505,
            clock_sm_max_mhz=3105,
            throttle_reasons=("sw_power_cap", "display_clock_setting"),
            performance_state=2,
            utilization_percent=97,
            temperature_celsius=71,
            ecc_uncorrected_volatile=6,
            remapped_rows_pending=True,
            remapped_rows_failed=False,
            persistence_enabled=False,
            compute_mode="exclusive-process",
            pcie_generation=1,
            pcie_generation_max=4,
            pcie_width=8,
            pcie_width_max=16,
            fabric_state="not-supported",
        ),
    )


def test_an_old_driver() -> None:
    device, lost = parse_nvidia_smi_xml(R450).devices
    assert (device.pci_address, device.pci_device_id, device.processes) == ("0007:00:00.0", "1DB1", ())
    assert (device.power_draw_watts, device.power_limit_watts, device.throttle_reasons) == (42.5, 250.0, ("gpu_idle",))
    assert device.ecc_uncorrected_volatile == 1
    assert (device.retired_pages_pending, device.remapped_rows_failed) == (True, None)
    assert (device.temperature_slowdown_celsius, device.fabric_state) == (87, None)
    assert lost == Device(nvml_index=1, error="GPU is lost", mig_enabled=True)


def test_fabric() -> None:
    text = R590.replace("<state>N/A</state>", "<state>Completed</state>")
    assert parse_nvidia_smi_xml(text).devices[0].fabric_state == "completed"


def test_mig_that_is_off_has_no_instances() -> None:
    device = parse_nvidia_smi_xml(R590.replace("<current_mig>N/A", "<current_mig>Disabled")).devices[0]
    assert (device.mig_enabled, device.mig_uuids) == (False, ())


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        pytest.param("71 C", "71 ° of something", "temperature_celsius", id="unit"),
        pytest.param("71 C", "-71 C", "temperature_celsius", id="negative"),
        pytest.param("49140 MiB", "99999999999999999 MiB", "memory_total_bytes", id="too long"),
        pytest.param("299.44 W</instant", "[Insufficient Permissions]</instant", "", id="no permission"),
        pytest.param("26B110DE", "26B11002", "pci_device_id", id="another vendor"),
        pytest.param("00000000:41:00.0</pci_bus", "$(reboot)</pci_bus", "pci_address", id="no address"),
    ],
)
def test_a_value_that_cannot_be_read_is_unknown(old: str, new: str, field: str) -> None:
    assert old in R590
    device = parse_nvidia_smi_xml(R590.replace(old, new)).devices[0]
    assert getattr(device, field) is None if field else device.power_draw_watts == 290.10
    assert device.name == "NVIDIA RTX 6000 Ada Generation"


def test_texts_are_made_fit_to_show() -> None:
    device = parse_nvidia_smi_xml(
        R590.replace("RTX 6000 Ada", "\N{RIGHT-TO-LEFT OVERRIDE}\x9bRTX" + "x" * 9999)
    ).devices[0]
    assert (device.name or "").startswith("NVIDIA RTXxxx")
    assert len(device.name or "") <= 1000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("No devices were found", id="no XML"),
        pytest.param(R590[: len(R590) // 2], id="cut off"),
        pytest.param("<html><gpu/></html>", id="another document"),
        pytest.param(R590.replace("nvidia_smi_log SYSTEM", "nvidia_smi_log [<!ENTITY a 'aaaa'>] "), id="entity"),
        pytest.param(
            '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><nvidia_smi_log>&f;</nvidia_smi_log>', id="file"
        ),
        pytest.param("<nvidia_smi_log>&f;</nvidia_smi_log>", id="entity nobody declared"),
        pytest.param(R590.replace("python", "\x1b[2J"), id="control character"),
        pytest.param("<nvidia_smi_log>" + " " * 17 * MIB + "</nvidia_smi_log>", id="too long"),
    ],
)
def test_what_is_no_such_xml_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the XML of nvidia-smi"):
        parse_nvidia_smi_xml(text)


PIECES = st.text(max_size=8) | st.sampled_from(["<gpu>", "</gpu>", "<!--", "&amp;", "]]>", "9" * 400, "\x00", "\ud800"])


@settings(max_examples=150, deadline=None)
@given(text=st.sampled_from([R450, R590]), data=st.data())
def test_a_changed_text_gives_devices_or_a_value_error(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + data.draw(PIECES) + text[end:]
    with contextlib.suppress(ValueError):
        for device in parse_nvidia_smi_xml(text).devices:
            assert (device.name or "").isprintable()
            assert len(device.name or "") <= 1000


def test_deep_nesting_does_no_harm() -> None:
    depth = 100_000
    text = "<nvidia_smi_log>" + "<a>" * depth + "</a>" * depth + "</nvidia_smi_log>"
    assert parse_nvidia_smi_xml(text).devices == ()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:01:00.0", "0000:01:00.0"),
        ("0000:C1:00.1", "0000:c1:00.1"),
        ("0000000F:01:00.0", "000f:01:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
)
def test_pci_address(text: str, address: str) -> None:
    assert pci_address(text) == address


@pytest.mark.parametrize("text", ["", "01:00.0", "0000:01:00.9", "0000:01:00.0; reboot"])
def test_no_pci_address(text: str) -> None:
    with pytest.raises(ValueError, match="not a PCI address"):
        pci_address(text)


@pytest.mark.parametrize(("unread", "broken"), [(4, False), (5, True)])
def test_a_device_of_which_most_values_cannot_be_read(unread: int, broken: bool) -> None:
    values = "<x>[Unknown Error]</x>" * unread
    text = f'<nvidia_smi_log><gpu id="00000000:01:00.0"><uuid>GPU-1</uuid>{values}</gpu></nvidia_smi_log>'
    (device,) = parse_nvidia_smi_xml(text).devices
    assert bool(device.error) is broken


@pytest.mark.parametrize("text", ["GPU is lost", "GPU requires reset"])
def test_a_device_that_does_not_answer(text: str) -> None:
    xml = f'<nvidia_smi_log><gpu id="00000000:01:00.0"><uuid>GPU-1</uuid><fan>[{text}]</fan></gpu></nvidia_smi_log>'
    (device,) = parse_nvidia_smi_xml(xml).devices
    assert device.error == text
