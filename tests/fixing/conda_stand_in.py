"""A stand-in for conda: `install` and `remove` with `--dry-run --json`, on an environment that has conda-meta.

Written from conda's documentation and threads, not beside a real conda. It knows one change: the build of PyTorch.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ADDED = {"pytorch": ("2.6.0", "cuda126_0"), "cuda-version": ("12.6", "h1_3")}
SIZE = 424242


def package(prefix: Path, name: str, version: str, build: str) -> None:
    """Install a package of two files. That of PyTorch is a distribution of Python too."""
    files = [f"lib/{name}.txt", f"nvvm/{name}/{build}"]
    if name == "pytorch":
        packages = next(prefix.glob("lib/python*/site-packages")).relative_to(prefix)
        files.append(f"{packages}/torch-{version}.dist-info/METADATA")
    for path in files:
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).unlink(missing_ok=True)
        is_metadata = path.endswith("METADATA")
        (prefix / path).write_text(f"Name: torch\nVersion: {version}\n" if is_metadata else f"{version} {build}\n")
    content = {"name": name, "version": version, "build": build, "files": files}
    (prefix / "conda-meta").mkdir(exist_ok=True)
    (prefix / "conda-meta" / f"{name}-{version}-{build}.json").write_text(json.dumps(content))


def installed(prefix: Path, name: str) -> Path | None:
    return next(prefix.glob(f"conda-meta/{name}-[0-9]*.json"), None)


def row(name: str, version: str, build: str) -> dict[str, object]:
    return {"name": name, "version": version, "build_string": build, "dist_name": f"{name}-{version}-{build}"}


def main() -> int:
    words = sys.argv[1:]
    prefix = Path(words[words.index("--prefix") + 1])
    if "nosuch" in words:
        print(json.dumps({"message": "The following packages are not available:\n  - nosuch", "success": False}))
        return 1
    unlink, link = [], []
    for name, (version, build) in ADDED.items():
        old = installed(prefix, name)
        if old is not None:
            about = json.loads(old.read_text())
            unlink.append((name, about["version"], about["build"]))
        link.append((name, version, build))
    if "--dry-run" in words:
        fetch = [{**row(*item), "size": SIZE} for item in link]
        actions = {"FETCH": fetch, "LINK": [row(*i) for i in link], "UNLINK": [row(*i) for i in unlink]}
        print(json.dumps({"actions": {**actions, "PREFIX": str(prefix)}, "dry_run": True, "success": True}))
        return 0
    for name, _, _ in unlink:
        old = installed(prefix, name)
        assert old is not None
        for path in json.loads(old.read_text())["files"]:
            (prefix / path).unlink()
            if path.endswith("METADATA"):
                (prefix / path).parent.rmdir()
        old.unlink()
    if os.environ.get("STAND_IN_CONDA") == "fails":
        print("CondaError: it fails halfway", file=sys.stderr)
        return 1
    for item in link:
        package(prefix, *item)
    with (prefix / "conda-meta" / "history").open("a") as history:
        history.write("+pytorch\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
