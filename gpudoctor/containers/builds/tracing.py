"""Where each file of the context ends in the target stage, through every stage on the way."""

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.containers.builds.context import BuildContext, ContextFile, is_below
from gpudoctor.containers.builds.copied_files import WILDCARDS, CopiedFile, Selection, select_files
from gpudoctor.containers.builds.dockerfile import Instruction, context_mounts
from gpudoctor.containers.builds.dockerignore import name_expression
from gpudoctor.containers.builds.stages import Copy, Stage, Step, find_stage, lineage
from gpudoctor.model.record import record


@record
class WholeFolder:
    """A folder of another stage that comes whole, where every file of it is one of the context or of a base image.

    target: in the image. source: in the stage. base: the image that the stage builds on. Both folders end with "/".
    """

    target: str
    source: str
    base: str


@record
class ResolvedCopy:
    """One COPY or ADD of the target stage (or of a stage that it builds on), with the files that it copies.

    So is a RUN that sees files of the context by --mount: it copies none, and they are its inputs.

    selection: what it takes from the context; for `--from` a stage, what that stage took of it, as far as it is known.
    opaque: why its files cannot be traced; "" if they can.
    inputs: files of the context that its files were made of; what was made of them cannot be seen.
    may_be_rewritten: a RUN of another stage may have changed the files before they were copied from there.
    whole: folders that it takes whole out of another stage, which runs nothing.
    overwritten: paths that a later COPY writes too: they say nothing about this one.
    later_run: a RUN follows in the image, which may change or remove what was copied.
    """

    copy: Copy
    selection: Selection
    opaque: str = ""
    inputs: tuple[ContextFile, ...] = ()
    may_be_rewritten: bool = False
    whole: tuple[WholeFolder, ...] = ()
    overwritten: frozenset[str] = frozenset()
    later_run: bool = False


def trace(
    context: BuildContext, stages: Sequence[Stage], target: Stage, others: Mapping[str, BuildContext] | None = None
) -> tuple[ResolvedCopy, ...]:
    """Return the copies of `target` in their order, those of the stages that it builds on first.

    others: folders that the build has names for, for --from.
    """
    return _Tracer(context, stages, others or {}).copies(target)


class _Tracer:
    def __init__(self, context: BuildContext, stages: Sequence[Stage], others: Mapping[str, BuildContext]) -> None:
        self._context = context
        self._others = others
        self._stages = tuple(stages)
        self._known: dict[int, tuple[ResolvedCopy, ...]] = {}

    def copies(self, stage: Stage) -> tuple[ResolvedCopy, ...]:
        if stage.index not in self._known:
            self._known[stage.index] = self._trace(stage)
        return self._known[stage.index]

    def _trace(self, stage: Stage) -> tuple[ResolvedCopy, ...]:
        base = find_stage(self._stages[: stage.index], stage.base)
        traced = [] if base is None else list(self.copies(base))
        for step in stage.steps:
            if _is_run(step):
                traced = [replace(item, later_run=True) for item in traced]
                traced += self._mounted(step.instruction, stage)
            elif step.copy is not None:
                new = self._one(step.copy, stage)
                paths = frozenset(placed.image_path for placed in new.selection.placed)
                traced = [_before_a_copy(item, paths) for item in traced]
                traced.append(new)
        return tuple(traced)

    def _one(self, copy: Copy, stage: Stage) -> ResolvedCopy:
        if not copy.origin or copy.origin in self._others:  # its name goes before that of a stage
            selection = self._selection(copy)
            opaque = f"{', '.join(selection.opaque)} is not a file of the context" if selection.opaque else ""
            return ResolvedCopy(copy=copy, selection=selection, opaque="" if selection.placed else opaque)
        origin = find_stage(self._stages[: stage.index], copy.origin)
        if origin is None:
            return ResolvedCopy(copy=copy, selection=Selection(), opaque=f"it copies from another image, {copy.origin}")
        return self._from_stage(copy, origin)

    def _mounted(self, run: Instruction, stage: Stage) -> Iterator[ResolvedCopy]:
        """Yield what a RUN sees of the context."""
        sources = tuple(mount.get("source", ".") for mount in context_mounts(run))
        copy = Copy(instruction=run, stage=stage.name, sources=sources, destination="/")
        plain = all("$" not in source and not WILDCARDS.search(source) for source in sources)
        inputs = tuple(placed.file for placed in select_files(self._context, copy).placed) if plain else ()
        if inputs:
            yield ResolvedCopy(
                copy=copy, selection=Selection(), opaque="the files it creates cannot be traced", inputs=inputs
            )

    def _selection(self, copy: Copy) -> Selection:
        """Return what `copy` takes of a folder; files outside the context by their path from it."""
        if not copy.origin:
            return select_files(self._context, copy)
        other = self._others[copy.origin]
        selection = select_files(other, copy)
        way = os.path.relpath(os.path.realpath(other.root), os.path.realpath(self._context.root))
        placed = tuple(
            replace(item, file=replace(item.file, path=posixpath.join(way, item.file.path)))
            for item in selection.placed
        )
        return replace(selection, placed=placed)

    def _from_stage(self, copy: Copy, origin: Stage) -> ResolvedCopy:
        """Return what `copy` copies of the files that `origin` took from the context."""
        known = {placed.image_path: (placed, item) for item in self.copies(origin) for placed in item.selection.placed}
        placed: dict[str, CopiedFile] = {}
        rewritten = False
        for source in copy.sources:
            path = posixpath.normpath(posixpath.join("/", source))
            for found, (before, item) in known.items():
                if (matched := _matched(path, found)) is not None:
                    target = _target(copy, matched, found)
                    placed[target] = CopiedFile(
                        file=before.file,
                        image_path=target,
                        inside_if_folder=found == matched and not copy.destination.endswith("/"),
                    )
                    rewritten = rewritten or item.later_run or item.may_be_rewritten
        whole = () if copy.keeps_parents else tuple(self._whole(copy, origin))
        selection = Selection(placed=tuple(placed.values()), folders=tuple(folder.target for folder in whole))
        if not placed:
            opaque = f"stage {origin.name} creates its files"
            return ResolvedCopy(copy=copy, selection=selection, opaque=opaque, inputs=self._inputs(origin))
        return ResolvedCopy(copy=copy, selection=selection, may_be_rewritten=rewritten, whole=whole)

    def _whole(self, copy: Copy, origin: Stage) -> Iterator[WholeFolder]:
        """Yield the folders that `copy` takes whole, if nothing but COPY can have put files into them."""
        before = self.copies(origin)
        stages = lineage(self._stages, origin)
        if any(item.opaque for item in before) or any(_is_run(step) for stage in stages for step in stage.steps):
            return
        folders = {folder for item in before for folder in item.selection.folders}
        for source in copy.sources:
            path = posixpath.normpath(posixpath.join("/", source)).rstrip("/") + "/"
            for folder in sorted(folders):
                inner = folder if folder.startswith(path) else path if path.startswith(folder) else ""
                if inner and not WILDCARDS.search(source):
                    target = f"{copy.destination.rstrip('/')}/{inner[len(path) :]}"
                    yield WholeFolder(target=target, source=inner, base=stages[0].base)

    def _inputs(self, stage: Stage) -> tuple[ContextFile, ...]:
        """Return the files of the context that the stage took, also by way of other stages."""
        copies = self.copies(stage)
        own = (placed.file for item in copies for placed in item.selection.placed)
        return tuple({file.path: file for file in (*own, *(file for item in copies for file in item.inputs))}.values())


def _is_run(step: Step) -> bool:
    return step.instruction.name == "RUN" and not step.instruction.onbuild


def _matched(source: str, found: str) -> str | None:
    """Return the file or folder that the source names and that is, or contains, the file `found`; None without one."""
    if not WILDCARDS.search(source):
        return source if is_below(found, (source,)) else None
    names, parts = source.split("/"), found.split("/")
    is_match = len(parts) >= len(names) and all(
        name_expression(name).match(part) for name, part in zip(names, parts, strict=False)
    )
    return "/".join(parts[: len(names)]) if is_match else None


def _target(copy: Copy, source: str, found: str) -> str:
    """Return where the file at `found` of the other stage ends. source: the file, or the folder that it is in."""
    if found != source:
        return posixpath.normpath(posixpath.join(copy.destination, posixpath.relpath(found, source)))
    return (
        posixpath.join(copy.destination, posixpath.basename(found))
        if copy.destination.endswith("/")
        else copy.destination
    )


def _before_a_copy(item: ResolvedCopy, paths: frozenset[str]) -> ResolvedCopy:
    mine = {placed.image_path for placed in item.selection.placed} & paths
    return replace(item, overwritten=item.overwritten | mine) if mine else item
