"""A stand-in for pixi: `add`, `remove` and `list --json` in a project with pixi.toml, pixi.lock and its environment.

Written from pixi's documentation and its source (`list` of 2026), not next to a real pixi. It knows wheels, one per
line in the project's file, and conda packages, which it makes itself. The lock file is JSON, which only pixi reads.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fixing.conda_stand_in import installed, package

MANIFEST, LOCK, ENVIRONMENT = Path("pixi.toml"), Path("pixi.lock"), Path(".pixi/envs/default")
SIZE = 4242
FAILED = "Error:   × "  # noqa: RUF001 - as pixi writes it
ERROR = """\
{failed}failed to solve requirements of environment 'default' for platform 'linux-
  │ 64'
  ╰─▶ Cannot solve the request because of: No candidates were found for
      {name} *.
"""


def wheels(name: str) -> list[str]:
    """Return the versions that the index has."""
    folder = Path(os.environ["PIP_FIND_LINKS"])
    return [path.name.split("-")[1] for path in sorted(folder.glob(f"{name.replace('-', '_')}-*.whl"))]


def row(name: str, version: str, kind: str) -> dict[str, Any]:
    number, _, build = version.partition("=")
    return {"name": name, "version": number, "build": build or None, "size_bytes": SIZE, "kind": kind}


def solved(text: str) -> list[dict[str, Any]]:
    """Return the packages that the project's file asks for."""
    rows = []
    for name, version in re.findall(r'(?m)^([\w-]+) = \{ version = "==([^"]+)"', text):
        if version not in wheels(name):
            sys.exit(ERROR.format(failed=FAILED, name=name))
        rows.append(row(name, version, "pypi"))
    return rows + [
        row(name, version, "conda") for name, version in re.findall(r'(?m)^([\w-]+) = "([^"=]+=[^"]+)"', text)
    ]


def change(words: list[str]) -> str:
    """Return the project's file after the command."""
    text = MANIFEST.read_text()
    verb, words = words[0], words[1:]
    is_wheel = "--pypi" in words
    index = f', index = "{words[words.index("--index") + 1]}"' if "--index" in words else ""
    specs = [word for word in words if not word.startswith(("-", "https://"))]
    for spec in specs:
        name, version = (*re.split(r"==?", spec, maxsplit=1), "1.0")[:2]
        found = re.search(rf"(?m)^{re.escape(name)} = .*\n", text)
        line = f'{name} = {{ version = "=={version}"{index} }}\n' if is_wheel else f'{name} = "{version}=0"\n'
        if verb == "remove" and found is None:
            sys.exit(f"{FAILED}{name} is not a dependency")
        if found is not None:
            text = text.replace(found[0], line if verb == "add" else "")
        else:
            heading = "[pypi-dependencies]\n" if is_wheel else "[dependencies]\n"
            text = text.replace(heading, heading + line)
    return text


def install(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip"]
    for item in before:
        if item not in after and item["kind"] == "pypi":
            subprocess.run([*pip, "uninstall", "--yes", "--quiet", item["name"]], check=True)
        elif item not in after:
            old = installed(ENVIRONMENT, item["name"])
            assert old is not None
            for path in json.loads(old.read_text())["files"]:
                (ENVIRONMENT / path).unlink()
            old.unlink()
    if os.environ.get("STAND_IN_PIXI") == "fails":
        sys.exit(f"{FAILED}failed to link a package")
    for item in after:
        if item not in before and item["kind"] == "pypi":
            subprocess.run([*pip, "install", "--quiet", "--no-deps", f"{item['name']}=={item['version']}"], check=True)
        elif item not in before:
            package(ENVIRONMENT, item["name"], item["version"], item["build"])
    hashed = {"manifest_path": str(MANIFEST.absolute()), "environment_lock_file_hash": str(hash(LOCK.read_text()))}
    (ENVIRONMENT / "conda-meta").mkdir(exist_ok=True)
    (ENVIRONMENT / "conda-meta" / "pixi").write_text(json.dumps(hashed))  # in place, as pixi does


def main() -> int:
    words = sys.argv[1:]
    if not MANIFEST.is_file():
        print(f"{FAILED}could not find pixi.toml or pyproject.toml with tool.pixi", file=sys.stderr)
        return 1
    before = json.loads(LOCK.read_text()) if LOCK.is_file() else []
    if words[0] == "list":
        assert {"--json", "--frozen", "--no-install"} <= {*words}
        print(json.dumps(before))
        return 0
    text = MANIFEST.read_text() if words[0] == "install" else change(words)
    after = solved(text)
    MANIFEST.write_text(text)
    LOCK.write_text(json.dumps(after))
    if "--no-install" not in words:
        install(before, after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
