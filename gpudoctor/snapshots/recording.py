"""Record the raw answers to the probes, masked, so that a bug report becomes a test; and replay them.

A recording is a folder: `recording.json` (when, the environment variables, the answers), `files/` (the raw files that
were read) and `commands/` (the raw standard output of the commands that were run). Edit them to make another machine.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpudoctor.errors import UsageError
from gpudoctor.files import created_without, new_folder
from gpudoctor.privacy import mask
from gpudoctor.probes.environment import parse_environment
from gpudoctor.probes.host import Answer, Host, ProbeContext, Question
from gpudoctor.probes.questions import questions

SCHEMA = "gpudoctor/recording/1"
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
# A version may have four numbers too: the "9.24.0.43" of a package, the one in "libcurand.so.10.3.10.19".
_VERSION = r'(?<!\.)(?<![=<>~!]=)(?<!"version": ")'
_ADDRESS = re.compile(_VERSION + r"\b(?:\d{1,3}\.){3}\d{1,3}(?=[:/\s\"']|$)|\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
_SECURE_BOOT = "8be4df61-93ca-11d2-aa0d-00e098032b8c"  # in a file's name, the same on every machine with UEFI
_SERIAL = re.compile(r"(?i)(serial[^\n:=]{0,20}[:=>]\s*)\w{6,}")


def record(host: Host, folder: Path) -> None:
    """Ask `host` all questions, and write the masked answers to `folder`, which must be empty or new.

    Raises:
        UsageError: the folder is not empty, or cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"record: {folder} is not empty: name a new folder")
    answers = host.ask(questions(host.setting))()
    environment = mask(dict(parse_environment(host.setting.environ).variables), host.setting)
    try:
        with created_without(0o077), new_folder(folder) as temporary:
            writer = _Writer(temporary)
            entries = {name: writer.write_answer(name, answer) for name, answer in sorted(answers.items())}
            content = {"schema": SCHEMA, "taken_at": host.taken_at, "environment": environment, "answers": entries}
            writer.write(Path("recording.json"), json.dumps(content, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise UsageError(f"record: cannot write {folder}: {error.strerror}") from None


class _Writer:
    """Writes texts below a folder, UUIDs, network addresses and serial numbers replaced: the same one by the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers: dict[str, str] = {}

    def write_answer(self, name: str, answer: Answer) -> dict[str, Any]:
        """Write the answer's files and command outputs; return the rest of it."""
        facts = json.loads(json.dumps(answer.facts))
        for path, entry in facts.get("files", {}).items():
            if "text" in entry:
                self.write(_file_of(path), entry.pop("text"))
        for command, entry in facts.get("commands", {}).items():
            if "stdout" in entry:
                self.write(_command_of(name, command), entry.pop("stdout"))
        return {"state": answer.state, "detail": answer.detail, "facts": facts}

    def write(self, path: Path, text: str) -> None:
        """Write `text` to `path` below the folder."""
        target = self._folder / self._anonymous(path.as_posix())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._anonymous(text), encoding="utf-8", newline="")

    def _anonymous(self, text: str) -> str:
        text = _UUID.sub(self._number, text)
        return _SERIAL.sub(r"\g<1>000000", _ADDRESS.sub("192.0.2.1", text))

    def _number(self, match: re.Match[str]) -> str:
        if match[0].lower() == _SECURE_BOOT:
            return match[0]
        return self._numbers.setdefault(match[0].lower(), f"00000000-0000-0000-0000-{len(self._numbers) + 1:012d}")


def _file_of(path: str) -> Path:
    """Return where the file at `path` is in a recording: quoted, so that no name leads out of the folder."""
    parts = [quote(part, safe=" +,@~=") for part in re.split(r"[/\\]+", path)]
    return Path("files", *(part.replace("..", "%2E%2E") if set(part) == {"."} else part for part in parts))


def _command_of(question: str, command: str) -> Path:
    return Path("commands", f"{quote(question, safe='')}-{quote(command, safe='')}.txt")


@dataclass(frozen=True)
class RecordedHost:
    """Answers from a recording."""

    folder: Path
    content: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path) -> "RecordedHost":
        """Return the machine recorded in `folder`.

        Raises:
            UsageError: there is no recording, or one of a schema that this version does not know.
        """
        path = folder / "recording.json"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        if content.get("schema") != SCHEMA:
            raise UsageError(f"{path}: schema is {content.get('schema')!r}, not {SCHEMA!r}")
        return cls(folder, content)

    @property
    def taken_at(self) -> str:
        """UTC time of the recording."""
        return str(self.content["taken_at"])

    @property
    def setting(self) -> ProbeContext:
        """The environment of the recording; nothing of it is left to mask."""
        return ProbeContext(environ=self.content["environment"], directory=self.folder)

    def ask(self, questions: Iterable[Question]) -> Callable[[], Mapping[str, Answer]]:
        """Return the recorded answers. Questions that were not recorded have no answer."""
        names = [question.name for question in questions if question.name in self.content["answers"]]
        return lambda: {name: self._answer(name) for name in names}

    def _answer(self, name: str) -> Answer:
        entry = self.content["answers"][name]
        facts = json.loads(json.dumps(entry["facts"]))
        for path, file in facts.get("files", {}).items():
            if "error" not in file:
                file["text"] = self._text(_file_of(path))
        for command, outcome in facts.get("commands", {}).items():
            outcome.setdefault("stdout", self._text(_command_of(name, command)))
        return Answer(state=entry["state"], facts=facts, detail=entry["detail"])

    def _text(self, path: Path) -> str:
        with (self.folder / path).open(encoding="utf-8", newline="") as file:
            return file.read()
