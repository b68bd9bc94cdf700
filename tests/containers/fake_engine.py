"""An engine that is only described: images, containers and their files. Nothing is built and nothing runs."""

from __future__ import annotations

import base64
import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from tests.containers.archives import archive, chunks, member, saved

SECONDS = 2_000_000_000  # files that a test writes are older, whatever their times of change
DIRECTORY, LINK = 1 << 31, 1 << 27

Tree = Mapping[str, str]
"""Content of each file by its absolute path; "-> target" is a link."""


def time_of(seconds: float) -> str:
    """Return the time as an engine writes it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")


class FakeEngine:
    """What an engine answers. Each method raises docker.errors.NotFound for what it does not have.

    changes: container → what `diff` tells. removed: containers that were removed. asked: all that was asked.
    It is the client too, whose `api` it is.
    """

    base_url, timeout = "http://engine", 60

    def __init__(self, api_version: str = "1.44") -> None:
        self.api_version = api_version
        self.changes: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, str]] = []
        self.removed: list[str] = []
        self._images: dict[str, dict[str, Any]] = {}
        self._containers: dict[str, dict[str, Any]] = {}
        self._trees: dict[str, dict[str, str]] = {}
        self._layers: dict[str, list[Tree]] = {}
        self._times: dict[tuple[str, str], float] = {}
        self.log = b""
        self.layer_id = "<missing>"  # of a line of a history, with its number if it is "sha256:"
        self.is_closed = False
        self.api = self

    def add_image(
        self,
        *tags: str,
        tree: Tree | None = None,
        history: Sequence[str | tuple[str, int]] = (),
        created: float = SECONDS,
        times: Mapping[str, float] | None = None,
        layers: Sequence[Tree] = (),
        **about: Any,
    ) -> str:
        """Add an image and return its id. history: the oldest line first, with its time where it is not `created`."""
        identity = f"sha256:{len(self._images) + 1:064}"
        lines = [line if isinstance(line, tuple) else (line, int(created)) for line in history]
        known: dict[str, Any] = {
            "Id": identity,
            "Created": time_of(created),
            "RepoTags": list(tags),
            "Os": "linux",
            "Config": {},
        }
        known |= {"Architecture": "amd64", "RootFS": {"Layers": [f"layer of {identity}"]}, "Size": 1000}
        self._images[identity] = {**known, **about, "history": lines}
        self._trees[identity] = dict(tree or {})
        self._layers[identity] = list(layers)
        self._times.update({(identity, path): at for path, at in (times or {}).items()})
        return identity

    def add_container(self, name: str, image: str, tree: Tree | None = None, **about: Any) -> str:
        """Add a container with the files of its image, or others, and return its id."""
        identity = f"{len(self._containers) + 1:064}"
        state = {"Running": True, "StartedAt": time_of(SECONDS + 50), "Pid": 0}
        known: dict[str, Any] = {
            "Id": identity,
            "Name": f"/{name}",
            "Image": image,
            "Path": "python",
            "HostConfig": {},
            "Args": ["train.py"],
        }
        known |= {"State": state, "Config": {"Image": image, "WorkingDir": "/app"}, "Created": time_of(SECONDS + 40)}
        self._containers[identity] = {**known, **about}
        self._trees[identity] = dict(self._trees.get(image, {}) if tree is None else tree)
        return identity

    def replace_image(self, tag: str, **about: Any) -> str:
        """Add an image that takes the tag from the one that has it."""
        for image in self._images.values():
            image["RepoTags"] = [name for name in image["RepoTags"] if name != tag]
        return self.add_image(tag, **about)

    def lose_image(self, identity: str) -> None:
        """Forget an image; its containers stay."""
        del self._images[identity]

    def inspect_image(self, name: str) -> dict[str, Any]:
        from docker.errors import ImageNotFound

        self.asked.append(("inspect_image", name))
        for identity, about in self._images.items():
            if name in (identity, *about["RepoTags"]):
                return {key: value for key, value in about.items() if key != "history"}
        raise ImageNotFound(f"no image {name}", response=SimpleNamespace(status_code=404))  # type: ignore[arg-type]

    def inspect_container(self, name: str) -> dict[str, Any]:
        from docker.errors import NotFound

        for identity, about in self._containers.items():
            if name in (identity, str(about["Name"]).lstrip("/")):
                return about
        raise NotFound(f"no container {name}")

    def images(self) -> list[dict[str, Any]]:
        keys = ("Id", "RepoTags", "Size")
        return [
            {**{key: about[key] for key in keys}, "Created": about["history"][-1][1] if about["history"] else 0}
            for about in self._images.values()
        ]

    def history(self, identity: str) -> list[dict[str, Any]]:
        lines = [
            {
                "Id": f"{self.layer_id}{number}" if self.layer_id.endswith(":") else self.layer_id,
                "CreatedBy": line,
                "Created": at,
                "Comment": "buildkit.dockerfile.v0" if "buildkit" in line else "",
            }
            for number, (line, at) in enumerate(self._images[identity]["history"])
        ]
        return lines[::-1]

    def get_image(self, identity: str) -> Iterator[bytes]:
        layers = {
            f"{number}/layer": archive(*(member(path.lstrip("/"), text.encode()) for path, text in tree.items()))
            for number, tree in enumerate(self._layers[identity])
        }
        lines = [{"created_by": line} for line, _ in self._images[identity]["history"]]
        return chunks(saved(layers, lines[len(lines) - len(layers) :]))

    def create_container(self, image: str, **_: Any) -> dict[str, str]:
        image = str(self.inspect_image(image)["Id"])
        identity = self.add_container(f"of {image}", image)
        self._times.update({(identity, path): at for (of, path), at in [*self._times.items()] if of == image})
        return {"Id": identity}

    def remove_container(self, container: str, **_: Any) -> None:
        self.removed.append(container)

    def containers(self, **_: Any) -> list[dict[str, Any]]:
        return [
            {"Id": identity, "Names": [about["Name"]], "Labels": about["Config"].get("Labels"), "State": "running"}
            for identity, about in self._containers.items()
        ]

    def info(self) -> dict[str, Any]:
        return {"OperatingSystem": "Debian", "Runtimes": {"runc": {}, "nvidia": {}}}

    def version(self) -> dict[str, Any]:
        return {"Version": "28.1.0", "ApiVersion": "1.49"}

    def logs(self, container: str, **options: Any) -> Iterator[bytes]:
        self.asked.append(("logs", f"{options['tail']} since {options['since']}"))
        return chunks(self.log)

    def close(self) -> None:
        self.is_closed = True

    def diff(self, container: str) -> list[dict[str, Any]]:
        return self.changes.get(container, [])

    def head(self, address: str, params: Mapping[str, str], timeout: float) -> Any:
        about = self._about(address.split("/")[-2], params["path"])
        if about is None:
            return SimpleNamespace(status_code=404, ok=False, headers={})
        shown = base64.b64encode(json.dumps(about).encode()).decode()
        return SimpleNamespace(status_code=200, ok=True, headers={"X-Docker-Container-Path-Stat": shown})

    def get_archive(self, container: str, path: str) -> tuple[Iterable[bytes], Mapping[str, Any]]:
        from docker.errors import NotFound

        about = self._about(container, path)
        if about is None:
            raise NotFound("nothing there")
        self.asked.append(("get_archive", path))
        return chunks(archive(*self._members(container, path))), about

    def _tree(self, container: str) -> tuple[str, dict[str, str]]:
        identity = str(self.inspect_container(container)["Id"])
        return identity, self._trees[identity]

    def _about(self, container: str, path: str) -> dict[str, Any] | None:
        identity, tree = self._tree(container)
        known = {"name": posixpath.basename(path), "size": 0, "mode": 0o644, "linkTarget": ""}
        known["mtime"] = time_of(self._times.get((identity, path), SECONDS))
        text = tree.get(path)
        if text is None:
            is_folder = any(file.startswith(f"{path.rstrip('/')}/") for file in tree)
            return {**known, "mode": DIRECTORY | 0o755} if is_folder else None
        if text.startswith("-> "):
            return {**known, "mode": LINK | 0o777, "linkTarget": text[3:]}
        return {**known, "size": len(text.encode())}

    def _members(self, container: str, path: str) -> Iterator[Any]:
        identity, tree = self._tree(container)
        parent = posixpath.dirname(path)
        folders = {path} if path not in tree else set()
        for file in tree:
            if file.startswith(f"{path}/"):
                while (file := posixpath.dirname(file)) != path:
                    folders.add(file)
        for folder in sorted(folders):
            yield member(posixpath.relpath(folder, parent), type=b"5", mode=0o755, mtime=SECONDS)
        for file, text in tree.items():
            if file == path or file.startswith(f"{path}/"):
                facts: dict[str, Any] = {"mode": 0o644, "mtime": self._times.get((identity, file), SECONDS)}
                if text.startswith("-> "):
                    yield member(posixpath.relpath(file, parent), type=b"2", linkname=text[3:], **facts)
                else:
                    yield member(posixpath.relpath(file, parent), text.encode(), **facts)
