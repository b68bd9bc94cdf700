"""What conda and the tools of projects have in common: their own commands make the change, and fetch as they go."""

import os
from collections.abc import Sequence
from pathlib import Path

from gpudoctor.fixing.environment import broken_requirements, read_inventory
from gpudoctor.fixing.installers import Installer
from gpudoctor.fixing.programs import Failed, Refused, run
from gpudoctor.fixing.resolution import Resolution

CONDA_PACKAGE = "conda:"
"""Begins the name of a conda package in lists of Python distributions."""


class Tool(Installer):
    """A tool that changes an environment by the commands that the check prints. folder: that they run in."""

    folder: str | None = None

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a printed command as it is run. Raises Refused: the tool is not there."""
        return [*command]

    def fetch(self, resolution: Resolution, folder: Path) -> None:
        """Do nothing: the tool fetches when it changes the environment."""

    def apply(self, resolution: Resolution, folder: Path) -> None:  # noqa: ARG002 - nothing was fetched
        """Run the commands. Raises Failed."""
        try:
            for command in resolution.commands:
                run(self.command(command), self.environ, self.lock, self.folder)
        except Refused as error:
            raise Failed(str(error)) from None

    def broken(self) -> set[str]:
        """Return what does not fit in the environment, a sentence each."""
        now = read_inventory(self.inventory.executable)
        return broken_requirements(now, {item.name: item.version for item in now.distributions})

    def package_folders(self, root: str) -> tuple[str, ...]:
        """Return the environment's folders of packages, relative to `root`."""
        return tuple(os.path.relpath(os.path.realpath(folder), root) for folder in self.inventory.folders)
