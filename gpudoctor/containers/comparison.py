"""What an image has compared with what a build would copy into it now."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping

from gpudoctor.containers.builds.context import MAXIMUM_LINKS, BuildContext, ContextFile
from gpudoctor.containers.builds.copied_files import CopiedFile, Selection
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.model.images import CopiedFiles
from gpudoctor.model.record import record

MAXIMUM_NAMED = 1000
"""Paths of one kind that are named for one instruction."""

STAGE_SECONDS = 600
"""A file of another stage that is no older than this when it is copied may have been written by that stage itself."""

GENERATED = re.compile(r"/(?:build/(?:lib|bdist)[^/]*|[^/]+\.egg-info|__pycache__)/")
"""What `pip install .` leaves in the folder of a project, with the times of the files that it was made of."""

MAXIMUM_EXTRA = 200
"""More files that no COPY copies are those of the base image, and are not opened."""


@record
class Moment:
    """When an instruction ran, as exactly as it is given: seconds since 1970.

    built_at: when the last build ended, which may have taken the instruction out of the cache.
    """

    earliest: float
    latest: float
    built_at: float = 0.0

    def is_before(self, file: ContextFile) -> bool:
        """Return whether the file changed after this moment and no later build read it."""
        return file.changed_at > max(self.latest, self.built_at)


@record
class Difference:
    """One file that is not as the context has it.

    kind: "stale", "missing", "opaque" (another stage may have made it so), or "doubtful": a later instruction may have.
    there: the file of the image, None if it is missing.
    otherwise: what a doubtful one is by the times, if the layer of the COPY is not read: "stale", "missing", "later"
        (the work of a later instruction, or of the other stage), or "" if unknown.
    """

    kind: str
    placed: CopiedFile
    image_path: str
    there: ImageFile | None = None
    otherwise: str = ""


@record
class CopyComparison:
    """How one COPY compares with the final files of the image, before its layer is asked.

    extra: paths in the image that no COPY copies now and that are older than this one: it may have copied them.
    """

    traced: ResolvedCopy
    differences: tuple[Difference, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def doubtful(self) -> dict[str, int]:
        """Return the paths that only the layer of the COPY can decide about, with the sizes to take the digest for.

        A hard link among them is in the layer as the name of another file of the same size.
        """
        sizes = {d.image_path: d.placed.file.size_bytes for d in self.differences if d.kind == "doubtful"}
        wanted = set(sizes.values())
        linked = {item.image_path: item.file.size_bytes for item in compared(self.traced)} if sizes else {}
        linked = {path: size for path, size in linked.items() if size in wanted}
        return {**dict.fromkeys(self.extra, -1), **linked, **sizes}

    @property
    def seen(self) -> frozenset[str]:
        """Return the paths in the context of the files that the image has as they are now."""
        differing = {item.placed.file.path for item in self.differences}
        return frozenset(placed.file.path for placed in compared(self.traced)) - differing

    def changed_unseen(self, built_at: float, seen: frozenset[str]) -> tuple[str, ...]:
        """Return the paths in the context of files that only another stage took, and that changed after the build.

        built_at: seconds since 1970. seen: paths whose content is known to be that in the image.
        """
        opaque = (item.placed.file for item in self.differences if item.kind == "opaque" and not item.otherwise)
        unseen = [file for file in (*self.traced.inputs, *opaque) if file.path not in seen]
        if not self.has_reliable_times(built_at):
            return ()
        return tuple(sorted(file.path for file in unseen if file.changed_at > built_at))

    def has_reliable_times(self, built_at: float) -> bool:
        """Return whether a file is older than the build: in a new checkout no file is, and times prove nothing."""
        inputs = (*self.traced.inputs, *(item.file for item in self.traced.selection.placed))
        return any(file.changed_at <= built_at for file in inputs)

    @property
    def needs_layer(self) -> bool:
        """Return whether the times do not decide it, so that the layer must be read."""
        return bool(self.extra) or any(d.kind == "doubtful" and not d.otherwise for d in self.differences)


def compare_copy(
    context: BuildContext,
    traced: ResolvedCopy,
    files: Mapping[str, ImageFile],
    copied: Moment | None,
    known: frozenset[str],
) -> CopyComparison:
    """Return how the files of one COPY in the image differ from those of the context.

    files: of the image, by path.
    copied: when the instruction ran; None if its history does not say.
    known: paths that any COPY writes, of those also below the destinations that cannot be traced.
    """
    judge = _Judge(context, traced, copied)
    differences = []
    for placed in compared(traced):
        path = image_path_of(placed, files)
        there = files.get(path)
        kind, otherwise = judge.difference(placed, there)
        if kind:
            differences.append(Difference(kind=kind, placed=placed, image_path=path, there=there, otherwise=otherwise))
    return CopyComparison(traced=traced, differences=tuple(differences), extra=_extra(traced, files, copied, known))


def compared(traced: ResolvedCopy) -> list[CopiedFile]:
    """Return the files of the COPY that no later COPY overwrites."""
    return [item for item in traced.selection.placed if item.image_path not in traced.overwritten]


def conclude(
    context: BuildContext, look: CopyComparison, layer: Mapping[str, ImageFile] | None, *, by_buildkit: bool
) -> CopiedFiles:
    """Return the final comparison of one COPY.

    layer: the files of its own layer at the doubtful paths; None if it was not read.
    by_buildkit: the builder that made the image.
    """
    found: dict[str, list[Difference]] = defaultdict(list)
    for item in look.differences:
        found[_decided(context, item, layer)].append(item)
    undecided = len(found[""]) + (len(look.extra) if layer is None else 0)
    changed = [item.placed.file for item in (*found["stale"], *found["missing"])]
    traced, copy = look.traced, look.traced.copy
    rewritten = f"stage {copy.origin} may have changed its files" if found["opaque"] and not changed else ""
    return CopiedFiles(
        line=copy.instruction.line,
        text=copy.instruction.text,
        stage=copy.stage,
        compared=len(compared(traced)),
        stale=_paths(found["stale"]),
        missing=_paths(found["missing"]),
        extra=tuple(path for path in look.extra if layer is not None and path in layer),
        changed_later=tuple(item.image_path for item in found["later"][:MAXIMUM_NAMED]),
        ignored=tuple(path for path, _ in traced.selection.ignored),
        empty_patterns=traced.selection.empty_patterns,
        opaque=traced.opaque or rewritten,
        unknown=f"{undecided} files may come from another instruction, because its layer cannot be read"
        if undecided and not changed
        else "",
        newest_change_at=max((file.changed_at for file in changed), default=None),
        may_be_kept=any(
            _may_be_kept(item.placed, (layer or {}).get(item.image_path, item.there), by_buildkit=by_buildkit)
            for item in found["stale"]
        ),
    )


def image_path_of(placed: CopiedFile, files: Mapping[str, ImageFile]) -> str:
    """Return where the file is: inside, where the image has a folder (or a link to one) at the path of the COPY.

    A link to a file is followed too: the builders write to the file that it leads to.
    """
    path = placed.image_path
    there = files.get(path)
    if not placed.inside_if_folder:
        return path
    inside = placed.possible_paths[-1]
    if inside in files or (there is not None and there.kind == "folder"):
        return inside
    for _ in range(MAXIMUM_LINKS):
        if there is None or there.kind != "link":
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), there.link_target))
        there = files.get(path)
    return path


class _Judge:
    """Says of what kind a difference is, by what may have happened to a file after it was copied."""

    def __init__(self, context: BuildContext, traced: ResolvedCopy, copied: Moment | None) -> None:
        self._context = context
        self._traced = traced
        self._copied = copied
        # Where every file is newer (a new checkout, for one), their times say nothing about the image.
        self._has_reliable_times = copied is not None and any(
            item.file.changed_at <= copied.latest for item in traced.selection.placed
        )

    def difference(self, placed: CopiedFile, there: ImageFile | None) -> tuple[str, str]:
        """Return the kind of the difference, "" for none, and what it is taken for if it is doubtful."""
        if there is None:
            return self._missing(placed)
        if is_same(self._context, placed, there):
            return "", ""
        if self._traced.may_be_rewritten:
            is_mode = self._is_only_mode(placed, there)
            return ("stale" if self._is_unwritten(placed, there) else "opaque"), "later" if is_mode else ""
        if not self._traced.later_run:
            return "stale", ""
        is_older = self._copied is not None and there.changed_at < self._copied.earliest
        if is_older and not self._is_only_mode(placed, there):
            return "doubtful", "stale"
        return "doubtful", "later" if self._is_unchanged_since(placed) else ""

    def _missing(self, placed: CopiedFile) -> tuple[str, str]:
        copied = self._copied
        is_newer = self._has_reliable_times and copied is not None and copied.is_before(placed.file)
        if self._traced.may_be_rewritten:
            return ("missing" if is_newer else "opaque"), ""
        if self._traced.later_run:
            return "doubtful", "missing" if is_newer else "later" if self._is_unchanged_since(placed) else ""
        return "missing", ""

    def _is_unchanged_since(self, placed: CopiedFile) -> bool:
        """Return whether the file was copied as it is now: what differs is the work of a later instruction."""
        return self._copied is not None and placed.file.changed_at < self._copied.earliest

    def _is_only_mode(self, placed: CopiedFile, there: ImageFile) -> bool:
        """Return whether nothing but the executable bit differs, which a chmod changes without any trace in times."""
        is_file = there.kind == "file" and not placed.file.link_target and there.size_bytes == placed.file.size_bytes
        return is_file and there.digest == self._context.digest(placed.file)

    def _is_unwritten(self, placed: CopiedFile, there: ImageFile) -> bool:
        """Return whether the stage that it came through did not write it: far older, and the context changed since.

        BuildKit keeps the old content of a file whose size and time are unchanged: those are the same then.
        """
        if self._copied is None or there.changed_at >= self._copied.earliest - STAGE_SECONDS:
            return False
        if self._is_only_mode(placed, there):
            return False
        kept = there.size_bytes == placed.file.size_bytes and int(there.changed_at) == int(placed.file.modified_at)
        return kept or self._copied.is_before(placed.file)


def is_same(context: BuildContext, placed: CopiedFile, there: ImageFile) -> bool:
    """Return whether the file equals the one in the context: content or link target, and executable bit."""
    file = placed.file
    if file.link_target:
        return there.kind == "link" and there.link_target == file.link_target
    if there.kind != "file" or there.size_bytes != file.size_bytes or there.is_executable != file.is_executable:
        return False
    return there.digest == context.digest(file)


def _may_be_kept(placed: CopiedFile, there: ImageFile | None, *, by_buildkit: bool) -> bool:
    """Return whether a build may have kept the old content of the file.

    BuildKit does where size and modification time (in an archive, whole seconds) are unchanged; the classic builder
    where the file was changed by another of its names.
    """
    file = placed.file
    if not by_buildkit:
        return file.has_other_names
    return there is not None and there.size_bytes == file.size_bytes and abs(there.changed_at - file.modified_at) <= 1


def _decided(context: BuildContext, item: Difference, layer: Mapping[str, ImageFile] | None) -> str:
    """Return the kind of a difference, of a doubtful one by the content of the COPY's own layer; "" if unknown."""
    if item.kind != "doubtful" or layer is None:
        return item.kind if item.kind != "doubtful" else item.otherwise
    in_layer = layer.get(item.image_path)
    if in_layer is None:
        return "missing"
    return "later" if is_same(context, item.placed, in_layer) else "stale"


def _extra(
    traced: ResolvedCopy, files: Mapping[str, ImageFile], copied: Moment | None, known: frozenset[str]
) -> tuple[str, ...]:
    """Return files below the copied folders, or of names that match a pattern, that no COPY copies now.

    Only what is older than the copy can have come by it: what later instructions made is newer.
    """
    if copied is None:
        return ()
    older = (path for path, file in files.items() if file.kind in ("file", "link") and file.changed_at < copied.latest)
    found = sorted(
        path
        for path in older
        if _is_taken(path, traced.selection)
        and not _is_known(path, known)
        and not (traced.later_run and GENERATED.search(path))
    )
    return tuple(found) if len(found) <= MAXIMUM_EXTRA else ()


def _is_taken(path: str, selection: Selection) -> bool:
    """Return whether such a COPY may have brought `path` to the image."""
    folder, _, name = path.rpartition("/")
    matched = (names.match(name) for where, names in selection.matched if where == f"{folder}/")
    return path.startswith(selection.folders) or any(matched)


def _is_known(path: str, known: frozenset[str]) -> bool:
    parts = path.split("/")
    return path in known or any("/".join(parts[:end]) + "/" in known for end in range(1, len(parts)))


def _paths(differences: list[Difference]) -> tuple[str, ...]:
    return tuple(sorted({item.placed.file.path for item in differences})[:MAXIMUM_NAMED])
