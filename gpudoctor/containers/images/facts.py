"""One image as the engine knows it, and how the plan of a build compares with it."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor.containers.builds.context import MAXIMUM_LINKS
from gpudoctor.containers.builds.copied_files import CopiedFile
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.comparison import CopyComparison, Moment, compare_copy, compared, conclude, image_path_of
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.engines.objects import Inspected
from gpudoctor.containers.images.base_images import bases_of, inspect_bases, is_built_on, written_at
from gpudoctor.containers.images.files import ImageFile, Layer, Unreadable
from gpudoctor.containers.images.history import Entry, HistoryMatch, entries_of, match_history
from gpudoctor.containers.images.reader import Files, real_paths
from gpudoctor.containers.images.stored_files import AnswerStore, StoredFiles, cache_folder
from gpudoctor.model.images import CopiedFiles

DOCKER_23 = (1, 42)
"""Its version of the API. Source: https://docs.docker.com/reference/api/engine/"""

LAYER_SECONDS = 8.0
"""For reading the layers of an image, which takes ten seconds for each gigabyte."""

MAXIMUM_SHOWN = 3
"""Changed files that are named."""

SOON_READ_BYTES = 48 << 20
"""The layers of a larger image, half a second and more, are read only if the times of its files say nothing."""


class ImageFacts:
    """One image, and the plan with what its base hands over.

    Raises:
        ValueError: the Dockerfile cannot be expanded on its base.
    """

    def __init__(self, api: APIClient, image: str, plan: Plan) -> None:
        self._api = api
        self.about: Inspected = api.inspect_image(image)
        self.id = str(self.about["Id"])
        self.entries = entries_of(api.history(self.id))
        self.bases = inspect_bases(api, plan)
        below = self._below(plan.base)
        first = match_history(self.entries, plan.stages, plan.target, below)
        self.plan = plan.on(bases_of(self.about, self.bases, plan, first))
        self.fit: HistoryMatch = match_history(self.entries, self.plan.stages, self.plan.target, below)
        if self.entries and self.fit.builder == "classic":
            self.plan = self.plan.by_classic_builder
        elif self.fit.builder == "buildkit" and tuple(map(int, str(api.api_version).split("."))) < DOCKER_23:
            self.plan = self.plan.by_old_buildkit

    def _below(self, base: str) -> tuple[Entry, ...] | None:
        """Return the history of the image that this one was built on; None if that is not known."""
        if base.lower() == "scratch":
            return ()
        about = self.bases.get(base)
        if about is None or not is_built_on(self.about, about):
            return None
        entries = entries_of(self._api.history(str(about["Id"])))
        texts = [entry.text for entry in entries]
        return entries if texts == [entry.text for entry in self.entries[: len(texts)]] else None

    @property
    def built_at(self) -> float:
        """Return when its tag was last written, else when it was created: seconds since 1970."""
        return written_at(self.about)

    @property
    def by_buildkit(self) -> bool:
        """Return whether BuildKit made it."""
        return any(entry.by_buildkit for entry in self.fit.own)

    def files(self, image_id: str = "") -> StoredFiles:
        """Return a context manager for the files of the image, or of the image with that id."""
        of = image_id or self.id
        return StoredFiles(self._api, of, AnswerStore(cache_folder(os.environ), of))

    def instructions(self, files: StoredFiles | None = None) -> tuple[CopiedFiles, ...]:
        """Return how each COPY and ADD of the plan compares with the image.

        files: of the image, if they are at hand.
        """
        if files is None:
            with self.files() as own:
                return self.instructions(own)
        copies = self.plan.copies
        there = read_copied(files, copies)
        known = _known(copies)
        looks = [compare_copy(self.plan.context, copy, there, self.moment(copy), known) for copy in copies]
        looks = [self._without_inherited(item) for item in looks]
        layers = self._layers(looks, files)
        concluded = [
            conclude(self.plan.context, item, self._layer(layers, item.traced), by_buildkit=self.by_buildkit)
            for item in looks
        ]
        seen = frozenset(path for item in looks for path in item.seen)
        return tuple(self._with_doubt(item, look, seen) for item, look in zip(concluded, looks, strict=True))

    def _without_inherited(self, look: CopyComparison) -> CopyComparison:
        """Return the look without extra files that another stage has from the image that it builds on."""
        folders = look.traced.whole if look.extra else ()
        inherited: set[str] = set()
        for folder in folders:
            about = self.bases.get(folder.base)
            if folder.base.lower() == "scratch":
                continue
            if about is None:
                return replace(look, extra=())
            with self.files(str(about["Id"])) as files:
                there = files.read({folder.source}, {})
            inherited |= {folder.target + path.removeprefix(folder.source) for path in there}
        return replace(look, extra=tuple(path for path in look.extra if path not in inherited)) if folders else look

    def _with_doubt(self, item: CopiedFiles, look: CopyComparison, seen: frozenset[str]) -> CopiedFiles:
        """Return the facts of a COPY from a stage, with what speaks against them: what the stage took has changed.

        seen: paths in the context whose content is known to be that in the image.
        """
        changed = look.changed_unseen(self.built_at, seen)
        if self.plan.changed_at > self.built_at and look.traced.inputs and look.has_reliable_times(self.built_at):
            changed = (*changed, "the Dockerfile")
        if not changed or item.stale or item.missing or item.extra:
            return item
        named = ", ".join(changed[:MAXIMUM_SHOWN])
        return replace(item, unknown=f"{named} changed after the build, and the image has only what was built from it")

    def moment(self, traced: ResolvedCopy) -> Moment | None:
        """Return when the COPY ran. The history has whole seconds, the image its exact end."""
        entry = self.fit.entry(traced.copy.instruction)
        if entry is None or not entry.created_at:
            return None
        end = seconds_of(str(self.about.get("Created") or ""))
        latest = end if int(end) == entry.created_at else entry.created_at + 1.0
        return Moment(earliest=float(entry.created_at), latest=latest, built_at=self.built_at)

    def _layers(self, looks: Sequence[CopyComparison], files: StoredFiles) -> tuple[Layer, ...] | None:
        """Return the layers with the doubtful files, the lowest first; None if none is doubtful or readable."""
        doubtful = {path: size for item in looks for path, size in item.doubtful.items()}
        is_small = int(self.about.get("Size") or 0) <= SOON_READ_BYTES
        if not doubtful or not (is_small or any(item.needs_layer for item in looks)):
            return None
        real = real_paths(files, doubtful)  # a layer has /usr/bin/x, where COPY goes through the link /bin
        sizes = {**{real[path]: size for path, size in doubtful.items()}, **doubtful}
        deadline = time.monotonic() + LAYER_SECONDS
        try:
            layers = files.layers(sizes, lambda: time.monotonic() < deadline)
        except Unreadable:
            return None
        return tuple(_as_copied(layer, real) for layer in layers)

    def _layer(self, layers: Sequence[Layer] | None, traced: ResolvedCopy) -> Mapping[str, ImageFile] | None:
        """Return the files of the layer that the COPY made; None if it is not known."""
        entry = self.fit.entry(traced.copy.instruction)
        if layers is None or entry is None:
            return None
        same_entries = [item for item in self.entries if item.text == entry.text]
        same_layers = [layer for layer in layers if layer.created_by == entry.text]
        number = next(number for number, item in enumerate(same_entries) if item is entry)
        return same_layers[number].files if len(same_layers) == len(same_entries) else None


def read_copied(files: Files, copies: Sequence[ResolvedCopy]) -> dict[str, ImageFile]:
    """Return the image files to compare, by the paths that they are copied to."""
    folders = {folder for copy in copies for folder in copy.selection.folders}
    folders |= {folder for copy in copies for folder, _ in copy.selection.matched}
    sizes: dict[str, int] = {}
    for placed in (placed for copy in copies for placed in compared(copy)):
        sizes.update(dict.fromkeys(placed.possible_paths, placed.file.size_bytes))
    found = files.read(folders, sizes) if sizes or folders else {}
    for placed in (placed for copy in copies for placed in compared(copy) if placed.inside_if_folder):
        found.update(_behind_links(files, found, placed))
    return found


def _behind_links(files: Files, found: Mapping[str, ImageFile], placed: CopiedFile) -> dict[str, ImageFile]:
    """Return the files to which the links at the path of a COPY lead, each by the name that the link gives."""
    more: dict[str, ImageFile] = {}
    while (path := image_path_of(placed, {**found, **more})) not in (found.keys() | more.keys()):
        behind = files.read((), {path: placed.file.size_bytes})
        if not behind or len(more) > MAXIMUM_LINKS:
            break
        more.update(behind)
    return more


def _as_copied(layer: Layer, real: Mapping[str, str]) -> Layer:
    """Return the layer with its files by the paths to which they are copied. real: see `real_paths`."""
    moved = {path: layer.files[place] for path, place in real.items() if place in layer.files}
    return Layer(created_by=layer.created_by, files={**layer.files, **moved})


def _known(copies: Sequence[ResolvedCopy]) -> frozenset[str]:
    """Return the paths that any COPY writes; for one that cannot be traced, its destination with "/"."""
    paths = {placed.image_path for copy in copies for placed in copy.selection.placed}
    copied = [copy for copy in copies if copy.copy.instruction.name != "RUN"]
    unknown = [copy.copy for copy in copied if copy.opaque or (copy.copy.origin and not copy.whole)]
    opaque = {f"{copy.destination.rstrip('/')}/" for copy in unknown}
    return frozenset(paths | opaque)
