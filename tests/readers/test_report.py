"""Texts in, the snapshot of a machine out."""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.errors import UsageError
from gpudoctor.model import CudaVersion, Driver, DriverVersion, PackageVersion, Python, Snapshot, System, Torch
from gpudoctor.readers import report
from gpudoctor.readers.report import READERS, Reading, assemble, read_files, read_texts, unread_texts
from gpudoctor.readers.text import clean_text
from gpudoctor.reporters import json_report
from tests.own_checks import own_checks
from tests.readers import pasted

TOO_OLD = b"UserWarning: The NVIDIA driver on your system is too old (found version 11040). Please update"


def test_a_text_says_where_each_fact_is() -> None:
    snapshot = read_texts([("log.txt", TOO_OLD)])
    (report,) = [report for report in snapshot.reports if report.section == "driver"]
    assert (report.state, report.source, "cuda_version" in report.facts) == ("ok", "messages in log.txt", True)


# The readers in the order in which they count, with the words of which any one makes a text theirs.
KNOWN_BY = """\
messages:
cupy.show_config(): cupy | cuda | cufft | curand | cusolver | cusparse | nvrtc
collect_env: pytorch | cuda | nvidia driver version | [pip
nvidia-smi -q -x: <nvidia_smi_log
nvidia-smi -q: nvsmi log | attached gpus | clocks throttle reasons | clocks event reasons | fabric state | ecc errors
nvidia-smi -q: retired pages | remapped rows | fb memory usage | gpu reset status
nvidia-smi: nvidia-smi | bus-id | mib / | no devices were found
nvidia-smi -L: (uuid: | cpu affinity | --query-gpu | driver_version | compute_cap | uuid, | , uuid | pstate
nvidia-smi -L: pci.bus_id | memory. | .gpu
gpustat:  mb
kernel log: nvrm | xid | nvidia
ds_report: torch version . | deepspeed info .
accelerate env: accelerate
transformers env: version
environment table: sys.platform | cuda_home | built with | yolo | ultralytics | gpu count | available: | jaxlib
nvcc: nvcc | cuda compilation tools | build cuda_
conda info: platform
conda:
pip:
docker: docker | container | nvidia-ctk | cdi | runtimes | services: | log-driver | data-root | cli-version
commands:
paths: python | -packages | venv
words:
words on containers: docker | container | pod | kubernetes | k8s | k3s | k0s | minikube | openshift | runtimeclassname
words on containers: runargs | hostrequirements | exited with code | 容器 | コンテナ
"""


def test_which_readers_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Mock(**{f"{reader.function}.return_value": {"asked": True} for reader in READERS})
    monkeypatch.setattr(report, "import_module", lambda name: module)
    rows = [line.split(": ", 1) if ": " in line else (line.rstrip(":"), "") for line in KNOWN_BY.splitlines()]
    assert [reader.name for reader in READERS] == list(dict.fromkeys(name for name, _ in rows))
    readers = {reader.name: reader for reader in READERS}
    for name, words in rows:
        for word in words.split(" | "):
            assert readers[name].read(clean_text(f"x{word.upper()}x", "x")), (name, word)
        assert bool(readers[name].read(clean_text("x", "x"))) is not bool(words)


def test_what_no_text_shows_is_unknown() -> None:
    snapshot = read_texts([("log.txt", TOO_OLD)])
    report = snapshot.report("cupy")
    assert snapshot.cupy is None
    assert report is not None
    assert (report.state, report.detail) == ("not-run", "not in the report")


def test_evidence_names_the_text() -> None:
    report = run_checks(own_checks(), read_texts([("log.txt", TOO_OLD)]))
    assert report.findings[0].check_id == "driver-too-old"
    assert {evidence.source for evidence in report.findings[0].evidence} == {"log.txt", "messages in log.txt"}


def test_two_values_are_a_contradiction() -> None:
    old, new = (Driver(version=DriverVersion.parse(text)) for text in ("470.57.02", "535.54.03"))
    snapshot = assemble([Reading("messages in a", {"driver": old}), Reading("messages in b", {"driver": new})])
    assert snapshot.driver is not None
    assert snapshot.driver.version == old.version
    (contradiction,) = snapshot.contradictions or ()
    assert (contradiction.fact, contradiction.taken, contradiction.other) == (
        "driver.version",
        "470.57.02 (messages in a)",
        "535.54.03 (messages in b)",
    )


@pytest.mark.parametrize(
    ("first", "second", "facts"),
    [
        ("2.4.0", "2.4.0+cu121", []),
        ("2.4", "2.4.0+cu121", []),
        ("2.1", "2.13.0+cu130", ["torch.version"]),
        ("2.13.0", "2.1", ["torch.version"]),
        ("2.4.0+cpu", "2.4.0+cu121", ["torch.version"]),
    ],
)
def test_a_version_that_says_less_is_no_contradiction(first: str, second: str, facts: list[str]) -> None:
    one, other = (Torch(version=PackageVersion(text)) for text in (first, second))
    snapshot = assemble([Reading("messages in a", {"torch": one}), Reading("messages in b", {"torch": other})])
    assert [found.fact for found in snapshot.contradictions or ()] == facts


@pytest.mark.parametrize(
    ("section", "one", "other", "agree"),
    [
        ("driver", Driver(version=DriverVersion((535,))), Driver(version=DriverVersion((535, 129, 3))), True),
        ("driver", Driver(version=DriverVersion((535, 12))), Driver(version=DriverVersion((535, 129))), False),
        ("driver", Driver(cuda_version=CudaVersion(12, 1)), Driver(cuda_version=CudaVersion(12, 10)), False),
        ("system", System(distribution_version="20.04"), System(distribution_version="20.04.6"), True),
        ("system", System(distribution_version="1"), System(distribution_version="11"), False),
        ("system", System(os="linux"), System(os="windows"), False),
        ("python", Python(version=PackageVersion("3.1")), Python(version=PackageVersion("3.12.3")), False),
        ("python", Python(version=PackageVersion("3.12")), Python(version=PackageVersion("3.12.3")), True),
    ],
)
def test_other_facts_of_which_one_may_say_less(section: str, one: Any, other: Any, agree: bool) -> None:
    snapshot = assemble([Reading("messages in a", {section: one}), Reading("messages in b", {section: other})])
    assert (snapshot.contradictions == ()) is agree


def test_a_saved_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    snapshot = Snapshot(taken_at="2026-01-01T00:00:00Z", driver=Driver(cuda_version=CudaVersion(12, 2)), symptoms=())
    file = tmp_path / "snapshot.json"
    file.write_text(json_report.render_snapshot(snapshot))
    assert read_files([str(file)]) == snapshot


def test_the_snapshot_in_a_report_is_read(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"schema": "gpudoctor/report/1", "snapshot": {"schema": "gpudoctor/snapshot/1"}}))
    assert read_files([str(file)]) == Snapshot(symptoms=())


def test_messages_of_an_older_snapshot_are_symptoms() -> None:
    messages = [{"kind": "cuda-driver-mismatch", "text": "error 803", "code": 803, "source": "log.txt"}]
    older = {"schema": "gpudoctor/snapshot/1", "messages": messages}
    (symptom,) = read_texts([("old.json", json.dumps(older).encode())]).symptoms or ()
    assert (symptom.kind, symptom.code, symptom.fact) == ("cuda-driver-mismatch", "cuda-803", "symptoms[0].text")


def test_a_snapshot_and_a_text_are_one_machine(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json_report.render_snapshot(Snapshot(driver=Driver(version=DriverVersion.parse("470.57.02")))))
    snapshot = read_texts([("snapshot.json", file.read_bytes()), ("log.txt", TOO_OLD)])
    assert snapshot.driver is not None
    assert (str(snapshot.driver.version), snapshot.driver.cuda_version) == ("470.57.02", CudaVersion(11, 4))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": "gpudoctor/snapshot/2"}', "its schema is gpudoctor/snapshot/2, this gpudoctor reads"),
        (b'{"schema": "gpudoctor/snapshot/1", "driver": ', "a snapshot that is cut off or damaged"),
        (b'{"schema": "gpudoctor/snapshot/1", "driver": 3}', "a damaged snapshot"),
    ],
)
def test_what_cannot_be_read_is_one_line(content: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_texts([("x.json", content)])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"nothing of interest here", "not recognised as a GPU report"),
        (b'{"a": 1}', "not recognised as a GPU report"),
        (b"", "the text is empty"),
        (b" \n", "the text is empty"),
        (b"{}\n", "the JSON is empty"),
        (b"null", "the JSON is empty"),
    ],
)
def test_a_text_that_is_no_gpu_report_gives_no_facts(content: bytes, reason: str) -> None:
    snapshot = read_texts([("x.txt", content)])
    assert unread_texts(snapshot) == (f"x.txt: {reason}",)
    assert (snapshot.system, snapshot.devices, snapshot.symptoms) == (None, None, ())


def test_one_such_text_among_others_is_named() -> None:
    snapshot = read_texts([("log.txt", TOO_OLD), ("x.txt", b"hello")])
    assert unread_texts(snapshot) == ("x.txt: not recognised as a GPU report",)
    assert snapshot.driver is not None


def test_a_device_is_named_with_its_folder() -> None:
    assert unread_texts(read_files([os.devnull])) == (f"{os.devnull}: the text is empty",)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="/no/such/file: No such file or directory"):
        read_files(["/no/such/file"])


TENSORFLOW = (
    "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 22290 MB memory:  -> device: 0, "
    "name: NVIDIA GeForce RTX 3090, pci bus id: 0000:01:00.0, compute capability: 8.6"
)
COMFYUI = "Set vram state to: NORMAL_VRAM\nDevice: cuda:0 NVIDIA GeForce RTX 3070 : cudaMallocAsync"


@pytest.mark.parametrize(
    "text",
    [
        f"pytorch version: 2.7.1+cu128\n{COMFYUI}\nStarting server\nTo see the GUI go to: http://127.0.0.1:8188",
        "Set vram state to: SHARED\nDevice: mps",
        "macOS 14.5\n>>> torch.backends.mps.is_available()\nTrue",
        "NAME   ID   SIZE   PROCESSOR   UNTIL\nllama3:8b  365c0bd3  6.7 GB  100% GPU  4 minutes from now",
        "load_tensors: offloaded 33/33 layers to GPU",
        "GPU available: True (cuda), used: True",
        "GPU available: True, used: True",
        "Is CUDA available: True",
        f"2026-05-01 12:00:00.000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1928] {TENSORFLOW}",
        "| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CUDA       |  99 |  1 |  tg128 |  101.70 ± 0.42 |",
        "| llama 8B Q8_0          | 7.95 GiB |  8.03 B | Metal,BLAS |  99 |    pp512 |  720.31 ± 2.00 |",
    ],
)
def test_a_program_that_uses_the_gpu_is_proof(text: str) -> None:
    report = run_checks(own_checks(), read_texts([("x.txt", text.encode())]))
    assert (report.verdict, len(report.proof)) == ("healthy", 1)


@pytest.mark.parametrize(
    "text",
    [
        "torch.cuda.is_available() True, then python dies with Illegal instruction",
        "How can I get torch.cuda.is_available() True? RTX 3060",
        ">>> torch.cuda.is_available()\nTrue\n40 min per epoch, GPU at 1%, all CPU cores busy",
        "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')] and model.fit kills the kernel",
        f"{COMFYUI}\nE:\\ComfyUI>pause\nPress any key to continue . . .",
        f"{COMFYUI}\noutput images black",
        f"comfyui hangs at got prompt\n{COMFYUI}",
        f"pytorch version: 2.5.1+cu124\n{COMFYUI}".replace("3070", "5090"),
        "NAME   ID   SIZE   PROCESSOR   UNTIL\nllama3:8b  365c0bd3  6.7 GB  48%/52% CPU/GPU  4 minutes from now",
        "NAME   ID   SIZE   PROCESSOR   UNTIL\na  365c  6.7 GB  100% GPU  Forever\nb  365d  2 GB  100% CPU  Forever",
        "load_tensors: offloaded 20/33 layers to GPU",
        "| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CUDA       |   0 |  1 |  tg128 |    5.70 ± 0.42 |",
        "| qwen2 7B Q4_K - Medium | 4.36 GiB |  7.62 B | CPU        |  99 |  1 |  tg128 |    5.70 ± 0.42 |",
        "Is CUDA available: True\nbut it is slow",
        "GPU available: True (cuda), used: False",
    ],
)
def test_a_story_around_a_true_is_no_proof(text: str) -> None:
    report = run_checks(own_checks(), read_texts([("x.txt", text.encode())]))
    assert report.verdict != "healthy"


TABLE = "| NVIDIA-SMI {0}       Driver Version: {0}   CUDA Version: 13.0 |\n|   0  {1}   On | 00000000:01:00.0 Off |"


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        (TABLE.format("580.65.06", "NVIDIA GeForce RTX 4090"), TABLE.format("580.65.06", "NVIDIA L4"), True),
        ("GPU: RTX 3060\nUbuntu 22.04", TABLE.format("580.65.06", "NVIDIA GeForce RTX 4090"), True),
        ("GPU: RTX 4090\nUbuntu 22.04", TABLE.format("580.65.06", "NVIDIA GeForce RTX 4090"), False),
        ("Ubuntu 22.04", TABLE.format("580.65.06", "NVIDIA L4"), False),
    ],
)
def test_texts_of_two_machines(first: str, second: str, differ: bool) -> None:
    snapshot = read_texts([("a.txt", first.encode()), ("b.txt", second.encode())])
    assert ("devices" in [found.fact for found in snapshot.contradictions or ()]) is differ


def test_of_two_texts_of_one_kind_the_last_counts() -> None:
    tables = [TABLE.format(driver, "NVIDIA L4") for driver in ("535.54.03", "580.65.06")]
    driver = read_texts([(f"{number}.txt", table.encode()) for number, table in enumerate(tables)]).driver
    assert str(driver and driver.version) == "580.65.06"


@pytest.mark.parametrize(
    ("severity", "verdict"),
    [("Corrected", "healthy"), ("Correctable", "healthy"), ("Uncorrected (Fatal)", "error")],
)
def test_a_pcie_error_that_the_hardware_corrected_is_no_complaint(severity: str, verdict: str) -> None:
    received = f"pcieport 0000:40:01.0: AER: {severity.partition(' ')[0]} error received: 0000:41:00.0"
    log = f"{received}\nnvidia 0000:41:00.0: PCIe Bus Error: severity={severity}, type=Physical Layer, (Receiver ID)"
    texts = [("smi.txt", pasted.NVIDIA_SMI.encode()), ("log.txt", log.encode())]
    report = run_checks(own_checks(), read_texts(texts))
    assert report.verdict == verdict


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        pytest.param("", "healthy", id="nothing"),
        pytest.param("\nma il mio script gira solo sul processore", "unknown", id="Italian"),
        pytest.param("\nmaar mijn script draait alleen op de processor", "unknown", id="Dutch"),
    ],
)
def test_a_process_of_nvidia_smi_is_no_proof_with_words_in_any_language(said: str, verdict: str) -> None:
    text = f"{pasted.NVIDIA_SMI.strip()}{said}"
    assert run_checks(own_checks(), read_texts([("x.txt", text.encode())])).verdict == verdict


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        pytest.param("", "healthy", id="short"),
        pytest.param("x" * 80_000 + "\n", "unknown", id="a long line"),
        pytest.param(
            "".join(f"step {number} {'ab'[number % 2] * (number % 97)}\n" for number in range(60_000)),
            "unknown",
            id="many lines",
        ),
    ],
)
def test_a_text_that_is_not_read_whole_is_not_healthy(before: str, verdict: str) -> None:
    text = f"{before}>>> import torch\n>>> torch.cuda.is_available()\nTrue\n>>> torch.__version__\n'2.7.0+cu128'\n"
    assert run_checks(own_checks(), read_texts([("x.txt", text.encode())])).verdict == verdict
