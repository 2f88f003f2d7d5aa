"""Command lines of ``vt models``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training.customjob.protocol.ports import JOB_LABEL, RUN_LABEL
from vertex_training.errors import CommandError
from vertex_training_cli.console import console, json_document, show_facts, table
from vertex_training_cli.jobs import command, compare
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import Jobs, declared_elsewhere
from vertex_training_cli.options import Format, FormatOption, SelectedStack
from vertex_training_cli.review.jobs import shown_image
from vertex_training_cli.serving.service import ModelReader, Version, connected
from vertex_training_cli.status import print_status

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

COLUMNS: Final = ("model", "version", "run", "job", "created", "image")
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="The model's name in the stack file.")
]


def list_(stack: SelectedStack = None, format_: FormatOption = Format.TEXT) -> None:
    """List the stack's models with their versions, newest first."""
    ref = connected(stack)
    versions = ModelReader(ref).versions()
    if format_ is Format.JSON:
        print(json_document([asdict(version) for version in versions]))
    elif not versions:
        hint = declared_elsewhere(ref, "models", "vt models list")
        print_status(f"no models in stack {ref.stack}{hint}")
    else:
        cells = [
            (
                version.model,
                version.number,
                version.run,
                version.job,
                version.created,
                shown_image(version.image),
            )
            for version in versions
        ]
        console().print(table(*map(str.upper, COLUMNS), rows=cells))


def show_(
    model: ModelArgument, stack: SelectedStack = None, format_: FormatOption = Format.TEXT
) -> None:
    """Show the versions of a model: run, image, artifacts and aliases."""
    versions = ModelReader(connected(stack)).of_model(model)
    if format_ is Format.JSON:
        print(json_document([asdict(version) for version in versions]))
        return
    for number, version in enumerate(versions):
        if number:
            console().print()
        facts = [
            ("run", f"{version.job} {version.run}".strip()),
            ("created", version.created),
            ("image", version.image),
            ("artifacts", version.artifacts),
            ("aliases", ", ".join(version.aliases)),
            ("name", version.name),
        ]
        head = ("MODEL", f"{version.model} version {version.number}")
        show_facts(console(), head, [fact for fact in facts if fact[1]])


def compare_(
    model: ModelArgument,
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...", help="Runs to compare. Default: the runs of all versions."
        ),
    ] = None,
    stack: SelectedStack = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Compare the runs that created a model's versions: parameters, metrics, duration, cost.

    Example: `vt models compare titanic 3 4`.
    """
    ref = connected(stack)
    versions = ModelReader(ref).of_model(model)
    runs = sorted({version.run for version in versions}, key=lambda text: (len(text), text))
    if unknown := [name for name in run or () if name not in runs]:
        hint = f"runs with a version: {', '.join(runs)}."
        raise CommandError(f"model {model} has no version of run {unknown[0]!r}.", hint)
    jobs, reader = Jobs(ref), MetricsReader(ref.project, print_status)
    chosen = {version.run: version for version in versions if version.run in (run or runs)}
    jobs_ = [_job(jobs, chosen[name]) for name in run or runs]
    existing = [job for job in jobs_ if job is not None]
    if not existing:
        raise CommandError(f"the jobs of these runs of model {model} no longer exist in Vertex AI.")
    sides = [compare.compared(job, ref.region, reader) for job in existing]
    command.print_compared(sides, as_json=format_ is Format.JSON)


def _job(jobs: Jobs, version: Version) -> AnyJob | None:
    """Return the newest successful job of a version's run; without one, report it, return None."""
    labels = {JOB_LABEL: version.job, RUN_LABEL: version.run}
    jobs_ = jobs.list(states=("SUCCEEDED",), labels=labels)
    if not jobs_:
        print_status(f"run {version.run} of job {version.job} no longer exists in Vertex AI")
    return jobs_[0] if jobs_ else None
