"""Which files of the build context a COPY or ADD takes, and where each ends in the image.

Source: https://docs.docker.com/reference/dockerfile/#copy , and experiments with both builders if it is silent.
"""

import posixpath
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpudoctor.containers.builds.context import BuildContext, ContextFile, digest_of
from gpudoctor.containers.builds.dockerignore import DockerIgnore, name_expression, parse_dockerignore
from gpudoctor.containers.builds.stages import Copy
from gpudoctor.model.record import record

MAXIMUM_MEMBERS = 20_000
MAXIMUM_BYTES = 256 << 20
"""Of the unpacked files of an archive behind ADD; a larger one is not opened."""

MAXIMUM_IGNORED = 100
"""This many ignored files are named; whole ignored folders are not opened."""

WILDCARDS = re.compile(r"[*?\[\\]")
_REMOTE = re.compile(r"https?://|git@|git://|ssh://")
_COPIED = (stat.S_IFREG, stat.S_IFLNK)
_PACKED = re.compile(r"\.(tar\.zst|tzst)$", re.IGNORECASE)


class NotRead(Exception):
    """The archive has too many files to compare, or Python cannot unpack it."""


@record
class CopiedFile:
    """A file of the context and where it ends in the image.

    image_path: absolute. Where `inside_if_folder`, the image may have a folder of that name: then it goes inside.
    """

    file: ContextFile
    image_path: str
    inside_if_folder: bool = False

    @property
    def possible_paths(self) -> tuple[str, ...]:
        """Return the paths that it may have in the image."""
        inside = f"{self.image_path}/{posixpath.basename(self.file.path)}"
        return (self.image_path, inside) if self.inside_if_folder else (self.image_path,)


@record
class Selection:
    """The files that one COPY selects.

    folders: of the image, into which whole folders are copied: other files in them are extra.
    matched: folders of the image, each with the names that a source with a wildcard may bring into it.
    ignored: files that its sources name and `.dockerignore` leaves out, each with the pattern.
    empty_patterns: sources with a wildcard that match nothing.
    missing: sources without a wildcard that are not there: a build would fail.
    opaque: sources whose files are not known: URLs, repositories, archives that cannot be opened.
    """

    placed: tuple[CopiedFile, ...] = ()
    folders: tuple[str, ...] = ()
    matched: tuple[tuple[str, re.Pattern[str]], ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()
    empty_patterns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()


def select_files(context: BuildContext, copy: Copy) -> Selection:
    """Return the files that `copy` selects from `context`."""
    return _Selector(context, copy).selection()


class _Selector:
    def __init__(self, context: BuildContext, copy: Copy) -> None:
        self._context = context
        self._copy = copy
        self._excluded: DockerIgnore = parse_dockerignore("\n".join(copy.excludes))
        self._placed: dict[str, CopiedFile] = {}  # by the path in the image: a later source wins
        self._folders: dict[str, None] = {}
        self._matched: list[tuple[str, re.Pattern[str]]] = []
        self._ignored: dict[str, str] = {}
        self._empty: list[str] = []
        self._missing: list[str] = []
        self._opaque: list[str] = []

    def selection(self) -> Selection:
        for source in self._copy.sources:
            self._take(source)
        return Selection(
            placed=tuple(self._placed.values()),
            folders=tuple(self._folders),
            matched=tuple(self._matched),
            ignored=tuple(self._ignored.items()),
            empty_patterns=tuple(self._empty),
            missing=tuple(self._missing),
            opaque=tuple(self._opaque),
        )

    def _take(self, source: str) -> None:
        heredoc = next((item for item in self._copy.heredocs if source.strip("<-'\"") == item.name), None)
        if source.startswith("<<") and heredoc is not None:
            content = ContextFile(path=source, size_bytes=len(heredoc.content), content=heredoc.content)
            self._place(content, heredoc.name)
        elif _REMOTE.match(source):
            self._opaque.append(source)
        elif WILDCARDS.search(source):
            self._take_matching(source)
        else:
            self._take_path(_inside(source), source)

    def _take_matching(self, source: str) -> None:
        names = [name for name in _inside(source).split("/") if name]
        matching = list(self._matching("", names))
        if not self._copy.keeps_parents and self._copy.destination.endswith("/"):
            self._matched.append((self._copy.destination, name_expression(names[-1])))
        if not matching:
            self._empty.append(source)
        for path in matching:
            self._take_path(path, path, one_of_many=len(matching) > 1)

    def _matching(self, folder: str, names: list[str]) -> Iterator[str]:
        """Yield the paths below `folder` that match the patterns `names`, one for each level, ignored ones left out."""
        if not names:
            yield folder
            return
        expression = name_expression(names[0])
        here = self._context.resolve(folder)
        for name in self._context.names(here):
            path = f"{folder}/{name}" if folder else name
            if expression.match(name) and self._context.ignore.decides(path) is None:
                yield from self._matching(path, names[1:])

    def _take_path(self, path: str, source: str, *, one_of_many: bool = False) -> None:
        """Take the file or the contents of the folder at `path`; a link there is followed, links below are kept."""
        real = self._context.resolve(path)
        found = self._context.entry(real)
        if found is None:
            self._missing.append(source)
        elif stat.S_ISDIR(found.st_mode):
            self._take_folder(real, path)
        elif not self._is_kept(real, posixpath.basename(real)) or stat.S_IFMT(found.st_mode) not in _COPIED:
            self._missing.append(source)
        elif self._copy.instruction.name != "ADD" or not self._unpack(self._context.file(real, found), path):
            name = path if self._copy.keeps_parents else posixpath.basename(path)
            self._place(self._context.file(real, found), name, many=one_of_many)

    def _unpack(self, file: ContextFile, path: str) -> bool:
        """Take the files in the archive; return whether it is one. What cannot be opened is opaque."""
        if _PACKED.search(path):  # which Python cannot read
            self._opaque.append(path)
            return True
        try:
            members = unpacked(self._context.root / file.path, file)
        except NotRead:
            self._opaque.append(path)
            return True
        if members is not None:
            self._folders[self._copy.destination.rstrip("/") + "/"] = None
        for name, member in members or ():
            self._put(member, f"{self._copy.destination.rstrip('/')}/{name}")
        return members is not None

    def _take_folder(self, real: str, path: str) -> None:
        target = self._copy.destination.rstrip("/") + "/"
        if self._copy.keeps_parents:
            target += f"{path}/"
        self._folders[target] = None
        for file in self._context.walk(real):
            relative = posixpath.relpath(file.path, real or ".")
            if self._is_kept(file.path, relative):
                self._put(file, target + relative)

    def _is_kept(self, path: str, relative: str) -> bool:
        pattern = self._context.ignore.decides(path)
        if pattern is not None and len(self._ignored) < MAXIMUM_IGNORED:
            self._ignored[path] = pattern
        return pattern is None and not self._excluded.ignores(relative)

    def _place(self, file: ContextFile, name: str, *, many: bool = False) -> None:
        destination = self._copy.destination
        if destination.endswith("/") or many or self._copy.keeps_parents:
            self._put(file, f"{destination.rstrip('/')}/{name}")
        else:
            self._put(file, destination, inside_if_folder=True)

    def _put(self, file: ContextFile, image_path: str, *, inside_if_folder: bool = False) -> None:
        mode = self._copy.chmod
        if re.fullmatch(r"0?[0-7]{3,4}", mode) and not file.link_target:
            file = replace(file, is_executable=bool(int(mode, 8) & stat.S_IXUSR))
        self._placed[image_path] = CopiedFile(file=file, image_path=image_path, inside_if_folder=inside_if_folder)


def _inside(source: str) -> str:
    """Return `source` relative to the context: "/a" is "a", and ".." ends at the context's root."""
    return posixpath.normpath(posixpath.join("/", source)).lstrip("/")


def unpacked(path: Path, file: ContextFile) -> tuple[tuple[str, ContextFile], ...] | None:
    """Return the files and links of the archive with their paths in it; None if it is not an archive.

    file: the archive as a file of the context. Whether it is one is given by its content, as the builders do.

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
            raise NotRead(f"{file.path} has more files than are compared")
        if name.startswith(("/", "../")) or name == "..":
            continue
        if member.issym():
            yield name, replace(file, link_target=member.linkname)
        elif member.isfile():
            executable = bool(member.mode & stat.S_IXUSR)
            digest = digest_of(archive.extractfile(member))
            yield name, replace(file, size_bytes=member.size, is_executable=executable, digest=digest)
