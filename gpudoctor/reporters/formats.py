"""The formats of `gpudoctor check`: each name with its module, which is loaded when it is asked for."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from gpudoctor.engine.checkup import Rules
from gpudoctor.model.record import record
from gpudoctor.reporters.terminal import Screen

if TYPE_CHECKING:
    from gpudoctor.model.report import Report
    from gpudoctor.registry import Check

FORMATS = {
    "table": ("table", ("screen",)),
    "json": ("json_report", ()),
    "junit": ("junit", ("checks", "fail_on")),
    "sarif": ("sarif", ("checks", "exit_status", "root")),
    "github": ("github", ("root",)),
    "markdown": ("markdown", ()),
    "html": ("html_report", ()),
}
"""The name on the command line; the module in this package, and what its `render` takes of a `Run`."""


@record
class Run:
    """What a format may show in addition to the report.

    fail_on: "error", "warning" or "never". exit_status: that the run ends with.
    root: the project's folder, written as the snapshot writes paths; "" if it is not known.
    screen: that the table is written for.
    rules: those of the run, with its checks.
    """

    fail_on: str
    exit_status: int
    root: str = ""
    screen: Screen = Screen()
    rules: Rules = Rules()

    @property
    def checks(self) -> "tuple[Check, ...]":
        """All checks."""
        return self.rules.checks()


def load(name: str) -> ModuleType:
    """Return the module of the format of that name."""
    return import_module(f"gpudoctor.reporters.{FORMATS[name][0]}")


def render(name: str, report: "Report", run: Run) -> str:
    """Return the report in the format of that name. UUIDs are numbered but in the table: the others get published."""
    from gpudoctor.privacy import mask_uuids

    options = {option: getattr(run, option) for option in FORMATS[name][1]}
    text: str = load(name).render(report, **options)
    return text if name == "table" else str(mask_uuids(text))
