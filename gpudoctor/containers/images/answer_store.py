"""What was read of an image, kept for the next look: an image never changes, its id is the digest of what it holds."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SCHEMA = "gpudoctor/image-answers/1"
MAXIMUM_BYTES = 8 << 20
"""Of the answers about one image; more are not kept."""

MAXIMUM_IMAGES = 50


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where the user's programs keep what can be read again. Source: XDG Base Directory Specification."""
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/nonexistent", ".cache"), "gpudoctor")


class AnswerStore:
    """The answers about one image, by question. Only a folder that nobody else can write to is used."""

    def __init__(self, folder: Path, image_id: str) -> None:
        self._folder = folder / "images"
        self._path = self._folder / f"{re.sub('[^a-z0-9]', '-', image_id)[-64:]}.json"
        self._image_id = image_id
        self._answers: dict[str, Any] = self._load()
        self._is_changed = False

    def __contains__(self, question: str) -> bool:
        return question in self._answers

    def __getitem__(self, question: str) -> Any:
        return self._answers[question]

    def __setitem__(self, question: str, answer: Any) -> None:
        self._answers[question] = answer
        self._is_changed = True

    def save(self) -> None:
        """Write what was added, whole or not at all."""
        content = {"schema": SCHEMA, "image": self._image_id, "answers": self._answers}
        text = json.dumps(content) if self._is_changed else ""
        if not text or len(text) > MAXIMUM_BYTES:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(self._folder):
                return
            descriptor, temporary = tempfile.mkstemp(dir=self._folder, suffix=".new")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self._path)
            self._remove_oldest()

    def _load(self) -> dict[str, Any]:
        try:
            if not _is_own(self._folder) or self._path.stat().st_size > MAXIMUM_BYTES:
                return {}
            content = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        known = isinstance(content, dict) and (content.get("schema"), content.get("image")) == (SCHEMA, self._image_id)
        answers = content.get("answers") if known else None
        return answers if isinstance(answers, dict) else {}

    def _remove_oldest(self) -> None:
        files = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[MAXIMUM_IMAGES:]:
            path.unlink()


def question_of(*parts: Any) -> str:
    """Return a key for any parts that JSON can write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _is_own(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    about = folder.lstat()
    return about.st_uid == os.geteuid() and not about.st_mode & 0o022
