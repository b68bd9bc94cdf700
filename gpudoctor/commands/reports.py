"""Where the reports of a run go: each format into its file or to standard output, and a summary for a CI job."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from gpudoctor.commands.options import write
from gpudoctor.errors import UsageError
from gpudoctor.reporters import formats, terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from gpudoctor.model import Report
    from gpudoctor.probes.host import ProbeContext

JOB_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable that names the file of a job's summary in GitHub Actions."""

Target = tuple[str, str | None]


def targets(names: Sequence[str], outputs: Sequence[str]) -> list[Target]:
    """Return each format with its file, None for standard output: the first format has the first file, and so on.

    Those with a file come first.

    Raises:
        UsageError: there are more files than formats, several formats are left for standard output, or a file is
            named twice or cannot be written.
    """
    names = names or ("table",)
    if len(outputs) > len(names):
        raise UsageError(f"--output: {len(outputs)} files for {len(names)} format{'' if len(names) == 1 else 's'}")
    left = names[len(outputs) :]
    if len(left) > 1:
        raise UsageError(
            f"--format: only one of {', '.join(left)} can go to standard output: give --output for the others"
        )
    if len(set(map(os.path.abspath, outputs))) < len(outputs):
        raise UsageError("--output: two formats have the same file")
    if outputs:
        from pathlib import Path

        from gpudoctor.files import check_writable

        for output in outputs:
            check_writable(Path(output))
    return [*zip(names, outputs, strict=False), *((name, None) for name in left)]


def project_root(setting: "ProbeContext", environ: Mapping[str, str]) -> str:
    """Return the folder to which a CI service relates the paths of files, masked as in a snapshot."""
    from gpudoctor.privacy import mask_text

    return mask_text(environ.get("GITHUB_WORKSPACE") or os.fspath(setting.directory), setting)


def write_reports(report: "Report", wanted: Sequence[Target], run: formats.Run, environ: Mapping[str, str]) -> None:
    """Write the job's summary and the report in each format, files first: standard output may be closed early.

    Raises:
        UsageError: a file cannot be written.
    """
    summary = environ.get(JOB_SUMMARY)
    if summary and any(name == "github" for name, _ in wanted):
        _append_summary(formats.render("markdown", report, run), summary)
    for name, output in wanted:
        write(formats.render(name, report, run), output)


def _append_summary(text: str, path: str) -> None:
    """Append to the summary of the job, which other steps write too. That it cannot be written ends no run."""
    from gpudoctor.files import created_without
    from gpudoctor.trust import refuse_links_of_others

    try:
        refuse_links_of_others(path)
        with created_without(0o002), open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, UsageError) as error:
        message = f"gpudoctor: cannot write the job's summary to {path}: {getattr(error, 'strerror', error)}"
        click.echo(clean(message), err=True)


def screen(wanted: Sequence[Target], environ: Mapping[str, str], *, verbosity: int) -> terminal.Screen:
    """Return what the table is written for. In a file it has no colour."""
    return terminal.Screen(
        color=("table", None) in wanted and terminal.use_color(sys.stdout, environ),
        width=terminal.width(environ, sys.stdout),
        height=terminal.height(sys.stdout),
        verbosity=verbosity,
    )
