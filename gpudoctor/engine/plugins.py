"""Checks of others: modules that installed packages name, and the files of a folder.

Installed packages name a module in the entry-point group `gpudoctor.checks`. Importing importlib.metadata for it costs
more than the command line itself, so this module reads the lists of entry points.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator

from gpudoctor.errors import UsageError
from gpudoctor.model.record import record
from gpudoctor.trust import refuse_if_writable_by_others

GROUP = "gpudoctor.checks"
_METADATA = (".dist-info", ".egg-info")
_FILE_LIMIT_BYTES = 1 << 20


@record
class Plugin:
    """A module whose import registers checks.

    name: as its entry point or its file is called.
    module: to import by name.
    file: to run as that module, if it is in no package.
    """

    name: str
    module: str
    file: str | None = None

    @property
    def place(self) -> str:
        """Where its author finds it: the module, or the file without the folder."""
        return self.module if self.file is None else os.path.basename(self.file)

    def load(self) -> None:
        """Import the module, or run the file. Its exceptions are passed on."""
        if self.file is None:
            importlib.import_module(self.module)
            return
        run_file(self.module, self.file)


def run_file(module: str, file: str) -> None:
    """Run a file *.py as the module of that name. Its exceptions are passed on.

    Only the file itself is run: other users may have written what is in its __pycache__.
    """
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = SourceFileLoader(module, file)
    spec = spec_from_loader(module, loader)
    assert spec is not None, "it has a loader"
    sys.modules[module] = module_from_spec(spec)  # dataclasses look their module up there
    try:
        exec(loader.source_to_code(loader.get_data(file), file), vars(sys.modules[module]))  # noqa: S102 - a plugin
    except BaseException:
        del sys.modules[module]
        raise


def installed(path: Iterable[str] | None = None) -> tuple[Plugin, ...]:
    """Return the plugins that the packages in the folders of `path` name; sys.path by default."""
    found: dict[str, Plugin] = {}
    for folder in sys.path if path is None else path:
        for text in _entry_points(folder or os.curdir):
            for name, module in _of_group(text):
                found.setdefault(module, Plugin(name=name, module=module))
    return tuple(found.values())


def _entry_points(folder: str) -> Iterator[str]:
    """Yield the lists of entry points that name our group."""
    try:
        names = os.listdir(folder)
    except OSError:  # a zip file, or a folder that is not there
        return
    for name in names:
        if name.endswith(_METADATA):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    content = file.read(_FILE_LIMIT_BYTES)
            except OSError:  # most packages have none
                continue
            if GROUP.encode() in content:
                yield content.decode(errors="replace")


def _of_group(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the module of each entry point of our group."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, module = line.partition("=")
            yield name.strip(), module.strip()


def in_folder(folder: str) -> tuple[Plugin, ...]:
    """Return the plugins in `folder`: its files *.py, apart from those whose names begin with an underscore or a dot.

    Raises:
        UsageError: there is no such folder, it cannot be read, or other users can write to it or to a file in it.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UsageError(f"plugins: the folder {folder} cannot be read: {error.strerror}") from None
    files = sorted(name for name in names if name.endswith(".py") and name[0] not in "._")
    for path in (folder, *(os.path.join(folder, name) for name in files)):
        refuse_if_writable_by_others(path)
    return tuple(
        Plugin(
            name=name[:-3], module=f"gpudoctor_plugins.{name[:-3]}", file=os.path.join(os.path.abspath(folder), name)
        )
        for name in files
    )
