"""The matrix of `nvidia-smi topo -m`."""

from __future__ import annotations

from gpudoctor.readers.nvidia_smi_list import read
from gpudoctor.readers.text import clean_text

MATRIX = """        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
GPU0     X      NV4     SYS     0-15            0
GPU1    NV4      X      PXB     16-31           1
NIC0    SYS     PXB      X

Legend:
  X    = Self
"""


def test_devices() -> None:
    assert [device.nvml_index for device in read(clean_text(MATRIX, "report"))["devices"]] == [0, 1]


def test_other_tables_have_none() -> None:
    assert read(clean_text("GPU0 X NV4\n", "report")) == {}
    assert read(clean_text("CPU Affinity\nGPU0 is at X\n", "report")) == {}
