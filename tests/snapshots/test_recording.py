"""A recorded machine gives the same facts again, and names nobody."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.probes.host import Answer, ProbeContext, Question
from gpudoctor.snapshots.recording import RecordedHost, record

UUID = "GPU-8f1d6c1e-1111-2222-3333-123456789abc"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SYSTEM = Answer(
    state="ok",
    facts={
        "files": {
            "/proc/version": {"text": "Linux version 6.8\r\n"},
            "/etc/../odd name?": {"text": "x"},
            "/etc/shadow": {"error": "EACCES"},
            SECURE_BOOT: {"text": "\x06\x00\x00\x00\x01"},
            f"/dev/disk/{UUID}": {"text": "disk"},
        },
        "commands": {"dmesg": {"argv": ["dmesg"], "status": 0, "stdout": f"NVRM {UUID} at 10.1.2.3\n", "stderr": ""}},
        "distributions": [{"version": "9.24.0.43", "requires": ["nvidia-cublas==13.1.1.3"]}],
        "libraries": ["libcurand.so.10.3.10.19"],
        "values": {"uuid": UUID, "Serial Number": "Serial: 1650522123456"},
    },
)


@dataclass(frozen=True)
class OneAnswer:
    """A host that knows one answer."""

    setting: ProbeContext = field(
        default_factory=lambda: ProbeContext(environ={"CUDA_VISIBLE_DEVICES": UUID, "SECRET": "x"}, directory=Path())
    )
    taken_at: str = "2026-01-02T03:04:05Z"

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        assert "system" in {question.name for question in questions}
        return lambda: {"system": SYSTEM}


SYSTEM_QUESTION = Question(name="system", worker="read_host")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    record(OneAnswer(), tmp_path / "machine")
    return tmp_path / "machine"


def test_the_answers_come_back(recorded: Path) -> None:
    answer = RecordedHost.load(recorded).ask([SYSTEM_QUESTION, Question(name="nvml", worker="nvml_devices")])()
    assert list(answer) == ["system"]
    files = answer["system"].facts["files"]
    assert files["/proc/version"] == {"text": "Linux version 6.8\r\n"}
    assert files["/etc/shadow"] == {"error": "EACCES"}
    assert answer["system"].facts["commands"]["dmesg"]["stdout"].startswith("NVRM GPU-")


def test_raw_files_and_outputs_lie_there_to_be_edited(recorded: Path) -> None:
    assert (recorded / "files" / "proc" / "version").read_text() == "Linux version 6.8\n"
    (recorded / "files" / "proc" / "version").write_text("Linux version 5.4\n")
    answer = RecordedHost.load(recorded).ask([SYSTEM_QUESTION])()["system"]
    assert answer.facts["files"]["/proc/version"]["text"] == "Linux version 5.4\n"


def test_no_file_leaves_the_folder(recorded: Path) -> None:
    written = {path.relative_to(recorded).as_posix() for path in recorded.rglob("*") if path.is_file()}
    assert written == {
        "recording.json",
        "commands/system-dmesg.txt",
        "files/proc/version",
        "files/etc/%2E%2E/odd name%3F",
        f"files{SECURE_BOOT}",
        "files/dev/disk/GPU-00000000-0000-0000-0000-000000000001",
    }


def test_a_recording_is_written_to_be_read_and_compared(recorded: Path) -> None:
    text = (recorded / "recording.json").read_text()
    assert text.splitlines()[:2] == ["{", ' "answers": {']
    assert [line for line in text.splitlines() if line.startswith(' "')] == sorted(
        line for line in text.splitlines() if line.startswith(' "')
    )


def test_identities_are_replaced_the_same_everywhere(recorded: Path) -> None:
    texts = "".join(path.read_text() for path in recorded.rglob("*") if path.is_file())
    assert "8f1d6c1e" not in texts
    assert "1650522123456" not in texts
    assert "10.1.2.3" not in texts
    assert texts.count("GPU-00000000-0000-0000-0000-000000000001") == 4


def test_versions_of_four_numbers_are_no_addresses(recorded: Path) -> None:
    facts = RecordedHost.load(recorded).ask([SYSTEM_QUESTION])()["system"].facts
    assert facts["distributions"] == SYSTEM.facts["distributions"]
    assert facts["libraries"] == SYSTEM.facts["libraries"]


def test_files_named_by_an_identity_come_back(recorded: Path) -> None:
    files = RecordedHost.load(recorded).ask([SYSTEM_QUESTION])()["system"].facts["files"]
    assert files[SECURE_BOOT] == SYSTEM.facts["files"][SECURE_BOOT]
    assert files["/dev/disk/GPU-00000000-0000-0000-0000-000000000001"] == {"text": "disk"}


def test_only_the_variables_that_checks_read_are_kept(recorded: Path) -> None:
    host = RecordedHost.load(recorded)
    assert set(host.setting.environ) == {"CUDA_VISIBLE_DEVICES"}
    assert host.taken_at == "2026-01-02T03:04:05Z"


def test_nothing_is_overwritten(recorded: Path) -> None:
    with pytest.raises(UsageError, match="is not empty: name a new folder"):
        record(OneAnswer(), recorded)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "recording.json: .*No such file"),
        ("{", "recording.json: "),
        ('{"schema": "gpudoctor/recording/9"}', "schema is 'gpudoctor/recording/9', not"),
    ],
)
def test_what_is_no_recording(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "recording.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        RecordedHost.load(tmp_path)
