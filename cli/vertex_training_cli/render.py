"""``vt render``: prints the request of a job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from vertex_training.customjob.protocol.ports import request_labels
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, JobRequest
from vertex_training.customjob.rules.command_lines import started_processes
from vertex_training.customjob.rules.job import Job
from vertex_training.errors import CheckUnavailableError, counted, did_you_mean
from vertex_training.stack import Stack
from vertex_training_cli.check import checking, report
from vertex_training_cli.console import print_line
from vertex_training_cli.engine.paths import from_here
from vertex_training_cli.options import StackOfFile, project_root
from vertex_training_cli.process import print_utf8


def render(
    job: Annotated[str, typer.Argument(help="Job or tuning job of the stack, or a job file.")],
    stack: StackOfFile,
    as_sent: Annotated[
        bool,
        typer.Option("--as-sent", help="Include the labels that the stack adds to the request."),
    ] = False,
    rung: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of a rung of the job's ladder. Rung 1 is the job file itself.",
        ),
    ] = 1,
) -> None:
    """Print the request that a stack sends for a job file. Equal files give equal bytes.

    The printed JSON is canonical: names of the REST API, sorted keys, no spaces. The digest of the
    request is computed from this text without the line end.

    Exit code: 0 printed, 1 the file has mistakes, 2 the file cannot be read.

    Example: `vt render titanic --stack dev`.
    """
    print_utf8()
    sys.stdout.write(_rendered(job, stack, as_sent, rung))


def _rendered(job: str, stack_name: str, as_sent: bool, rung: int) -> str:
    root = project_root()
    loaded = checking.stack_or_reports(root, stack_name)
    if not isinstance(loaded, Stack):
        wrong = loaded
    else:
        file, data, verdict = _check_job(loaded, job)
        if verdict.request is not None:
            rungs = verdict.request.rungs
            if rung > len(rungs):
                raise CheckUnavailableError(
                    f"the job has no rung {rung}: its ladder has {counted(len(rungs), 'rung')}"
                )
            rung_ = rungs[rung - 1]
            if verdict.request.ladder:
                print_line(f"rung {rung} of {len(rungs)}: {rung_.words or 'the job file'}")
            added = loaded.settings.labels_of(loaded.settings.team_at(rung_.account))
            message = _sent_message(rung_, added) if as_sent else rung_.sent({})
            for line in started_processes(Job(rung_.trial).pools):
                print_line(f"starts {line}")
            if rung_.filled_in:
                print_line(f"set by jobDefaults: {', '.join(rung_.filled_in)}")
            return as_json(message)
        wrong = [checking.report(file, data, verdict)]
    for line in report.text_lines(wrong, color=sys.stderr.isatty()):
        print_line(line)
    raise typer.Exit(1)


def _check_job(stack: Stack, job: str) -> tuple[str, bytes, JobFileResult]:
    jobs = stack.settings.submitted
    keys = [job] if job in jobs else []
    if not keys and Path(job).is_file():
        keys = stack.jobs_of(Path(job))
        if not keys:
            data = checking.read(job)
            return job, data, stack.check_other(data, job, checking.job(job))
    if len(keys) > 1:
        raise CheckUnavailableError(
            f"several jobs use the file {job}: use one of the names {', '.join(keys)}"
        )
    if not keys:
        hint = did_you_mean(job, jobs)
        raise CheckUnavailableError(f"{job} is neither a job of this stack nor a file; {hint}")
    file = from_here(stack.root / jobs[keys[0]].file)
    results = stack.check_jobs(checking.shown_from(stack.root))
    return file, checking.read(file), results[keys[0]]


def _sent_message(request: JobRequest, labels: Mapping[str, str]) -> dict[str, Any]:
    job = request.submission
    own = request_labels(job.stack, job.job, job.run, request.request_id, request.digest)
    return request.sent({**labels, **request.kind.sent_labels(own)})


def as_json(message: Mapping[str, Any]) -> str:
    """Return canonical JSON. Its digest is the request's digest, unless labels were added."""
    return job_file.canonical(message) + "\n"
