"""Sizes as programs write them."""

import pytest

from gpudoctor.conclusions.shortage import parse_bytes, shortage
from gpudoctor.model import Device, Shortage, Symptom, shown_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("2.00 GiB", 2 * 2**30, id="GiB"),
        pytest.param("512.00 MiB", 512 * 2**20, id="MiB"),
        pytest.param("1018.00 KiB", 1018 * 2**10, id="KiB"),
        pytest.param("1.5 TiB", 3 * 2**39, id="TiB"),
        pytest.param("9.07 GB", int(9.07 * 2**30), id="MPS writes GB"),
        pytest.param("1,024 bytes", 1024, id="CuPy writes commas"),
        pytest.param("4187881472", 4187881472, id="bytes without a unit"),
        pytest.param("1.13GiB", int(1.13 * 2**30), id="TensorFlow writes no space"),
        pytest.param("much", None, id="no size"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse(text: str, size: int | None) -> None:
    assert parse_bytes(text) == size


def test_shown() -> None:
    assert shown_bytes(3 * 2**29) == "1.50 GiB"
    assert shown_bytes(20 * 2**20) == "20 MiB"


def message(kind: str = "torch-out-of-memory", **names: str) -> Symptom:
    return Symptom(kind=kind, text="as printed", names=names, fact="symptoms[0].text")


def gib(*sizes: float | None) -> list[int | None]:
    return [None if size is None else round(size * 2**30) for size in sizes]


@pytest.mark.parametrize(
    ("names", "cause", "sizes"),
    [
        pytest.param({}, "unknown", (None, None, None, None, None, None), id="no number"),
        pytest.param(
            {"tried": "2 GiB", "total": "16 GiB", "free": "1 GiB", "allocated": "14 GiB", "reserved": "0 GiB"},
            "too-large",
            (2, 16, 1, 14, 0, None),
            id="the job has it all",
        ),
        pytest.param(
            {"tried": "2 GiB", "total": "16 GiB", "free": "1 GiB", "allocated": "8 GiB", "pool": "11 GiB"},
            "others",
            (2, 16, 1, 11, 3, 4),
            id="more than a context is left over",
        ),
        pytest.param(
            {"tried": "4 GiB", "total": "16 GiB", "free": "1 GiB", "allocated": "11.5 GiB", "pool": "13.5 GiB"},
            "too-large",
            (4, 16, 1, 13.5, 2, None),
            id="free and reserved memory together are not enough; a context is no other process",
        ),
        pytest.param(
            {"tried": "3 GiB", "total": "16 GiB", "free": "1 GiB", "allocated": "11.5 GiB", "pool": "13.5 GiB"},
            "fragmented",
            (3, 16, 1, 13.5, 2, None),
            id="free and reserved memory together are just enough",
        ),
        pytest.param(
            {"tried": "1 GiB", "total": "32 GiB", "free": "0 GiB", "allocated": "30 GiB", "reserved": "1 GiB"},
            "fragmented",
            (1, 32, 0, 31, 1, None),
            id="as much is reserved as is asked for",
        ),
        pytest.param(
            {"tried": "2 GiB", "total": "32 GiB", "free": "0 GiB", "allocated": "30 GiB", "reserved": "1 GiB"},
            "too-large",
            (2, 32, 0, 31, 1, None),
            id="less is reserved",
        ),
        pytest.param(
            {"tried": "2 GiB", "total": "16 GiB", "free": "1 GiB"},
            "too-large",
            (2, 16, 1, None, None, None),
            id="nothing is known of the job, nor of others",
        ),
        pytest.param(
            {"tried": "2 GiB", "total": "16 GiB", "free": "1 GiB", "mine": "14.5 GiB", "allocated": "12 GiB"},
            "too-large",
            (2, 16, 1, 14.5, None, 0.5),
            id="what the process has counts before its allocator",
        ),
        pytest.param(
            {"tried": "2 GiB", "total": "16 GiB", "free": "1 GiB", "mine": "13 GiB"},
            "others",
            (2, 16, 1, 13, None, 2),
            id="a tenth of the device is another's",
        ),
        pytest.param(
            {"asked": "1 GiB", "left": "1 GiB"}, "refused", (1, None, 1, None, None, None), id="as much is free"
        ),
        pytest.param({"size": "2 GiB", "used": "1 GiB"}, "too-large", (2, None, None, 1, None, None), id="other names"),
        pytest.param(
            {
                "tried": "2 GiB",
                "total": "16 GiB",
                "free": "1 GiB",
                "allocated": "10 GiB",
                "processes": "Process 1 has 11 GiB memory in use. Process 2 has 4 GiB memory in use.",
            },
            "others",
            (2, 16, 1, 10, None, 4),
            id="one of the processes is the job",
        ),
        pytest.param(
            {
                "tried": "2 GiB",
                "total": "16 GiB",
                "free": "1 GiB",
                "mine": "10 GiB",
                "processes": "Process 1 has 11 GiB memory in use. Process 2 has 4 GiB memory in use.",
            },
            "others",
            (2, 16, 1, 10, None, 15),
            id="none is, if the message names the job",
        ),
    ],
)
def test_what_the_numbers_of_a_message_show(names: dict[str, str], cause: str, sizes: tuple[float | None, ...]) -> None:
    found = shortage((message(**names),), None)
    assert found.cause == cause
    assert [found.tried, found.total, found.free, found.mine, found.reserved, found.others] == gib(*sizes)


@pytest.mark.parametrize(
    ("processes", "mine", "pids"),
    [
        ("", "10 GiB", ()),
        ("Process 7 has 2 GiB memory in use. Process 9 has 3 GiB memory in use.", "10 GiB", (9, 7)),
        ("Process 7 has 11 GiB memory in use. Process 9 has 3 GiB memory in use.", "", (9,)),
        ("".join(f"Process {n} has {n} GiB memory in use. " for n in range(1, 9)), "1 GiB", (8, 7, 6, 5, 4)),
    ],
)
def test_the_largest_other_processes_that_a_message_names(processes: str, mine: str, pids: tuple[int, ...]) -> None:
    names = {"total": "16 GiB", "free": "1 GiB", "allocated": "10 GiB", "processes": processes}
    found = shortage((message(**names, **({"mine": mine} if mine else {})),), None)
    assert found.others_pids == pids


@pytest.mark.parametrize(("used", "cause"), [(8 * 2**30 + 1, "others"), (8 * 2**30, "unknown"), (None, "unknown")])
def test_without_numbers_the_device_of_the_report_counts(used: int | None, cause: str) -> None:
    devices = (Device(nvml_index=0, memory_total_bytes=16 * 2**30, memory_used_bytes=used),)
    assert shortage((message(),), devices).cause == cause


@pytest.mark.parametrize(
    ("kinds", "kind", "certain"),
    [
        (("host-process-killed", "cublas-no-handle"), "cublas-no-handle", False),
        (("memory-short-in-words", "host-out-of-memory"), "host-out-of-memory", True),
        (("host-out-of-memory", "torch-out-of-memory"), "torch-out-of-memory", True),
        (("torch-out-of-memory", "tensorflow-host-out-of-memory"), "torch-out-of-memory", True),
        (("host-process-killed",), "host-process-killed", False),
        ((), "", True),
    ],
)
def test_which_of_several_messages_counts(kinds: tuple[str, ...], kind: str, certain: bool) -> None:
    found = shortage(tuple(map(message, kinds)), None)
    assert (found.kind, found.certain) == (kind, certain)


def test_no_message_is_no_shortage() -> None:
    assert shortage(None, None) == Shortage()


def test_a_complaint_about_kept_memory_is_confirmed_by_the_process_that_is_listed() -> None:
    listed = message("memory-holder-listed", pid="812", size="512 MiB")
    found = shortage((message("guess-memory-held"), listed), None)
    assert (found.cause, found.others, found.others_pids, found.certain) == ("others", 512 * 2**20, (812,), False)
    assert shortage((listed,), None) == Shortage()
