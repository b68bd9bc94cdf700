"""`gpudoctor tune`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import debug_option, write
from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_NO_VERDICT
from gpudoctor.model.profile import FILE_NAME
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, GOALS, PRECISIONS, SIGNAL, THROUGHPUT
from gpudoctor.reporters import terminal

if TYPE_CHECKING:
    from gpudoctor.model.tuning import Tuning


@click.command(cls=ManualCommand, short_help="Find the fastest precision and batch size, and write the env profile.")
@click.option("--workload", default="mlp", show_default=True, metavar="NAME|MODULE:ATTRIBUTE|FILE.py:ATTRIBUTE",
              help="mlp, cnn, lstm, transformer, signal, or your own.")  # fmt: skip
@click.option("--mode", type=click.Choice(["training", "inference"]), default="training", show_default=True,
              help="What to measure; your own workload predicts with predict(batch) or its model.")  # fmt: skip
@click.option("--goal", type=click.Choice(GOALS), default=THROUGHPUT, show_default=True,
              help="Most samples per second, or the shortest step of the smallest batch.")  # fmt: skip
@click.option("--device", default="auto", show_default=True, metavar="auto|cpu|cuda:N|mps")
@click.option("--precision", "precisions", multiple=True, type=click.Choice([*PRECISIONS, *COMPLEX_PRECISIONS]),
              help="Try this precision only; repeatable.")  # fmt: skip
@click.option("--budget", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=60.0,
              show_default=True, help="Seconds after which no new measurement starts.")  # fmt: skip
@click.option("--memory-fraction", metavar="SHARE", type=click.FloatRange(0, 1, min_open=True), default=0.9,
              show_default=True, help="Share of the free memory that trials may use.")  # fmt: skip
@click.option(
    "--dataset-size", metavar="N", type=click.IntRange(min=1), help="Samples in your data set; no batch is larger."
)
@click.option("--min-batch", metavar="N", type=click.IntRange(min=1), help="Smallest batch size to measure.")
@click.option("--max-batch", metavar="N", type=click.IntRange(min=1), help="Largest batch size to measure.")
@click.option(
    "--effective-batch", metavar="N", type=click.IntRange(min=1), help="Samples per optimiser step, by accumulation."
)
@click.option("--vary", metavar="NAME=A,B,C",
              help="Tune for each value of a parameter of the workload, such as sequence=128,512.")  # fmt: skip
@click.option("--gpus", metavar="N", type=click.IntRange(1, 64), default=1, show_default=True,
              help="Number of GPUs that train together, started by torchrun.")  # fmt: skip
@click.option("--exhaustive", is_flag=True, help="Measure every precision at every power of two that fits.")
@click.option("--compare", type=click.Path(dir_okay=False), metavar="FILE",
              help="Show what changed since an earlier tuning, written with --format json.")  # fmt: skip
@click.option("--resume", type=click.Path(dir_okay=False), metavar="FILE",
              help="Keep each measurement in this file. If it exists, continue its search.")  # fmt: skip
@click.option("--profile", default=FILE_NAME, show_default=True, metavar="FILE", help="Write the env profile here.")
@click.option("--set", "assignments", multiple=True, metavar="NAME={FIELD}",
              help="Add this variable to the profile, such as GPU_BATCH_SIZE={batch_size}; repeatable.")  # fmt: skip
@click.option(
    "--format", "format_name", type=click.Choice(["table", "json", "html"]), default="table", show_default=True
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--python", metavar="PATH", help="Measure with this Python instead of gpudoctor's own.")
@debug_option
def tune(assignments: tuple[str, ...], format_name: str, output: str | None, **options: Any) -> NoReturn:
    """Measure precisions and batch sizes on a device, recommend the best, and write the env profile."""
    from gpudoctor import api
    from gpudoctor.profiles.from_tuning import check_assignments

    variables = check_assignments(assignments)
    if output is not None:
        from gpudoctor.files import check_writable

        check_writable(Path(output))
    with terminal.progress("Starting ...", sys.stderr) as show:
        tuning = api.tune(**options, variables=variables, say=show)
    write(_render(tuning, format_name, output), output)
    if tuning.interrupted == SIGNAL:
        sys.exit(EXIT_NO_VERDICT)
    sys.exit(EXIT_FINDINGS if tuning.recommendation is None else EXIT_HEALTHY)


def _render(tuning: "Tuning", format_name: str, output: str | None) -> str:
    from gpudoctor.reporters import tuning_html, tuning_json, tuning_table

    if format_name == "json":
        return tuning_json.render(tuning)
    if format_name == "html":
        return tuning_html.render(tuning)
    color = output is None and terminal.use_color(sys.stdout, os.environ)
    encoding = "utf-8" if output is not None else sys.stdout.encoding or "ascii"
    return tuning_table.render(tuning, color=color, width=terminal.width(os.environ, sys.stdout), encoding=encoding)
