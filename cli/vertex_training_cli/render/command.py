"""The command line of ``vt render``. Exit code: 0 done, 1 mistakes, 2 it could not run."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import CheckUnavailableError
from vertex_training.stack import Stack
from vertex_training_cli.check import checking, text_report
from vertex_training_cli.engine.paths import root_of
from vertex_training_cli.options import StackOfFile
from vertex_training_cli.render import rendering
from vertex_training_cli.status import print_line


class Format(StrEnum):
    """How the request is written."""

    JSON = "json"
    YAML = "yaml"


def render(
    job: Annotated[
        str, typer.Argument(help="Name of a job or tuning job in the stack, or a file.")
    ],
    stack: StackOfFile,
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="How the request is written.")
    ] = Format.JSON,
    as_sent: Annotated[
        bool, typer.Option("--as-sent", help="With the labels the stack adds when it sends it.")
    ] = False,
    rung: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of a ladder; 1 is the file itself.")
    ] = 1,
) -> None:
    """Print the exact request a job file becomes in a stack; equal input gives equal bytes.

    JSON is canonical (REST's names, sorted keys, no spaces): without the line end it is the text
    that the request's digest is of. Exit code: 0 done, 1 mistakes, 2 it could not run.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout.write(_rendered(job, stack, format_, as_sent, rung))


def _rung(request: JobRequest, number: int) -> JobRequest:
    """The request of a rung; a line names the others."""
    rungs = request.rungs
    if number > len(rungs):
        raise CheckUnavailableError(f"the job has no rung {number}: it has {len(rungs)}")
    if request.ladder:
        print_line(f"rung {number} of {len(rungs)}: {rungs[number - 1].words or 'the job file'}")
    return rungs[number - 1]


def _rendered(job: str, stack_name: str, format_: Format, as_sent: bool, rung: int) -> str:
    root = root_of(Path.cwd())
    if root is None:
        raise CheckUnavailableError("no Pulumi.yaml here or above: a stack needs a project")
    loaded = checking.stack_or_reports(root, stack_name)
    if not isinstance(loaded, Stack):
        wrong = loaded
    else:
        file, data, verdict = rendering.check_job(loaded, job)
        if verdict.request is not None:
            found = _rung(verdict.request, rung)
            added = loaded.settings.labels_of(loaded.settings.team_at(found.account))
            message = rendering.as_sent(found, added) if as_sent else found.sent({})
            if found.filled_in:
                print_line(f"filled in by jobDefaults: {', '.join(found.filled_in)}")
            written = {Format.JSON: rendering.as_json, Format.YAML: rendering.as_yaml}
            return written[format_](message)
        wrong = [checking.report(file, data, verdict)]
    for line in text_report.lines(wrong, color=sys.stderr.isatty()):
        print_line(line)
    raise typer.Exit(1)
