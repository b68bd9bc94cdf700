"""The parts of the package that setup.cfg cannot describe: the list of packages, and a README for an index page."""

import configparser
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def packages() -> "list[str]":
    """Return every folder of gpudoctor/ that has an `__init__.py`, and the checks, which a wheel has there too."""
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "gpudoctor").rglob("__init__.py")}
    return sorted({".".join(folder.parts) for folder in folders} | {"gpudoctor.checks"})


def address() -> str:
    """Return the project's address, `url` in setup.cfg; empty without one."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    return settings["metadata"].get("url", "").rstrip("/")


def description(readme: str, source: str) -> str:
    """Return the README with absolute links, below the address `source`.

    Without an address, only the words of a link remain, and no picture: an index page resolves no relative link.
    """

    def absolute(link: "re.Match[str]") -> str:
        if "://" in link["target"]:
            return link[0]
        if not source:
            return "" if link["picture"] else link["words"]
        view = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['words']}]({source}/{view}/HEAD/{link['target']})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(absolute, readme))


def project_urls(source: str) -> "dict[str, str]":
    """Return the links that an index page shows beside the description."""
    pages = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md"}
    return {name: f"{source}/blob/HEAD/{page}" for name, page in pages.items()} if source else {}


setup(
    packages=packages(),
    long_description=description((ROOT / "README.md").read_text(encoding="utf-8"), address()),
    project_urls=project_urls(address()),
)
