"""Archives of the context that ADD unpacks: which files they bring."""

import posixpath
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpudoctor.containers.builds.context import ContextFile, digest_of

MAXIMUM_MEMBERS = 20_000
MAXIMUM_BYTES = 256 << 20
"""Of the unpacked files; a larger archive is not looked into."""


class NotRead(Exception):
    """It holds more than is looked into, or is packed in a way that Python cannot read."""


def unpacked(path: Path, file: ContextFile) -> tuple[tuple[str, ContextFile], ...] | None:
    """Return the files and links of the archive with their paths in it; None where it is no archive.

    file: the archive as a file of the context. Whether it is one is told by its content, as the builders do.

    Raises:
        NotRead: see there.
    """
    try:
        with tarfile.open(path, "r:*") as archive:
            found = dict(_members(archive, file))
    except tarfile.ReadError:
        return None
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise NotRead(str(error)) from None
    return tuple(found.items())


def _members(archive: tarfile.TarFile, file: ContextFile) -> Iterator[tuple[str, ContextFile]]:
    left = MAXIMUM_BYTES
    for number, member in enumerate(archive):
        name = posixpath.normpath(member.name)
        left -= member.size if member.isfile() else 0
        if number >= MAXIMUM_MEMBERS or left < 0:
            raise NotRead(f"{file.path} holds more than is looked into")
        if name.startswith(("/", "../")) or name == "..":
            continue
        if member.issym():
            yield name, replace(file, link_target=member.linkname)
        elif member.isfile():
            executable = bool(member.mode & 0o100)
            digest = member_digest(archive, member)
            yield name, replace(file, size_bytes=member.size, is_executable=executable, digest=digest)


def member_digest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    """Return the SHA-256 of a regular file in the archive."""
    stream = archive.extractfile(member)
    assert stream is not None, "a regular file"
    return digest_of(stream)
