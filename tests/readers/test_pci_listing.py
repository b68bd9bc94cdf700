"""GPUs that `lspci`, `lshw` and `ubuntu-drivers` list."""

from __future__ import annotations

import pytest

from gpudoctor.model import PciGpu
from gpudoctor.readers.pci_listing import read_pci
from gpudoctor.readers.text import clean_text

ROW = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"
EMULATED = "00:02.0 VGA compatible controller: Device 1234:1111 (rev 02)\n"
OTHERS = "".join(f"00:1f.{number} SMBus: Intel Corporation Device {number}\n" for number in range(5))
INTEL = "00:02.0 VGA compatible controller: Intel Corporation UHD Graphics 620 (rev 07)\n"


def gpus(text: str) -> tuple[PciGpu, ...] | None:
    found = list(read_pci(clean_text(text, "report.txt")))
    assert [facts["system"].os for facts in found] == ["linux"] * len(found)
    return found[0]["system"].pci_gpus if found else None


def gpu(**fields: str) -> PciGpu:
    return PciGpu(**{"address": "0000:01:00.0", "vendor": "nvidia", "device_id": "", "name": "", **fields})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW, gpu(name="NVIDIA GeForce RTX 3090")),
        ("01:00.0 VGA compatible controller: NVIDIA Corporation Device 2684 (rev a1)\n", gpu(device_id="2684")),
        (
            "01:00.0 3D controller [0302]: NVIDIA Corporation GP108M [GeForce MX150] [10de:1d10] (rev a1)\n",
            gpu(device_id="1D10", name="NVIDIA GeForce MX150"),
        ),
        ("ffff0002:01:00.0 3D controller: 10de:2330\n", gpu(address="0002:01:00.0")),
        *(
            (f"01:00.0 {kind}: NVIDIA Corporation AD104GL [L4]\n", gpu(name="NVIDIA L4"))
            for kind in ("Display controller", "Processing accelerators", "Video device")
        ),
    ],
)
def test_a_row(row: str, expected: PciGpu) -> None:
    assert gpus(row) == (expected,)


@pytest.mark.parametrize(
    ("row", "vendor", "name"),
    [
        ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XTX]", "amd", "Radeon RX 7900 XTX"),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Navi 31", "amd", ""),
        ("Intel Corporation DG2 [Arc A770]", "intel", "Arc A770"),
        ("Matrox Electronics Systems Ltd. G200eR2", None, None),
    ],
)
def test_the_gpus_of_others(row: str, vendor: str | None, name: str | None) -> None:
    found = gpus(f"{ROW}02:00.0 VGA compatible controller: {row}\n") or ()
    assert [(gpu.vendor, gpu.name) for gpu in found[1:]] == ([] if vendor is None else [(vendor, name)])


def test_the_driver_that_is_bound_is_its_own() -> None:
    second = ROW.replace("01:00.0", "02:00.0")
    text = f"{ROW}\tSubsystem: X\n\tKernel driver in use: nouveau\n{second}\tKernel driver in use: vfio-pci\n{INTEL}"
    assert [gpu.bound_driver for gpu in gpus(text) or ()] == ["nouveau", "vfio-pci", ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(INTEL, None, id="one row may be a part"),
        pytest.param(INTEL + OTHERS, ["intel"], id="five other devices: the whole bus"),
        pytest.param(INTEL + OTHERS.partition("\n")[2], None, id="four are not"),
        pytest.param(f"$ lspci | grep -iE 'vga|3d|nvidia'\n{INTEL}", ["intel"], id="filtered by nvidia"),
        pytest.param(f"$ lspci | grep -i 3d\n{INTEL}", ["intel"], id="filtered by 3D"),
        pytest.param(f"$ lspci | grep -i vga\n{INTEL}", None, id="filtered by VGA: a 3D controller may be left out"),
        pytest.param(f"$ lspci -s 3d:00.0 | grep -i vga\n{INTEL}", None, id="of bus 3d, filtered by VGA"),
        pytest.param(EMULATED + OTHERS, [], id="the whole bus of a virtual machine without a GPU"),
        pytest.param(EMULATED, None, id="an emulated display: a GPU may be left out"),
        pytest.param("$ lspci | grep -i nvidia\n$ uname\n", [], id="no answer"),
        pytest.param("$ lspci | grep -i vga\n$ uname\n", None, id="no answer to another question"),
        pytest.param("$ lspci | grep -i nvidia\nNVIDIA was there\n$ uname\n", None, id="an answer in another form"),
        pytest.param("$ lspci | grep -i nvidia\n", None, id="cut off"),
    ],
)
def test_no_gpu_of_nvidia(text: str, expected: list[str] | None) -> None:
    found = gpus(text)
    assert (None if found is None else [gpu.vendor for gpu in found]) == expected


def test_ubuntu_drivers() -> None:
    text = (
        "modalias : pci:v000010DEd00002684sv00001043sd000088E2bc03sc00i00\nvendor   : NVIDIA Corporation\n"
        "model    : AD102 [GeForce RTX 4090]\n"
    )
    assert gpus(text) == (gpu(address="", device_id="2684", name="NVIDIA GeForce RTX 4090"),)
    assert gpus(text.replace("[GeForce RTX 4090]", "")) == (gpu(address="", device_id="2684", name="AD102"),)
    assert gpus(text.replace("10DE", "8086")) is None


@pytest.mark.parametrize(("ending", "bound"), [("driver=nouveau latency=0", "nouveau"), ("resources: irq:16", "")])
def test_lshw(ending: str, bound: str) -> None:
    text = (
        "product: GA102 [GeForce RTX 3090]\nvendor: NVIDIA Corporation\nphysical id: 0\n"
        f"bus info: pci@0000:01:00.0\nconfiguration: {ending}\n"
    )
    assert gpus(text) == (gpu(name="NVIDIA GeForce RTX 3090", bound_driver=bound),)
