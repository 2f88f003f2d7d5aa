"""Submit a job of a stack, or a job file, once. The job is not in the state of Pulumi.

A record in the stack's control bucket prevents a second submission (decision 64).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from google.api_core.exceptions import GoogleAPICallError, PreconditionFailed, RetryError

from vertex_training.customjob.google.intent_store import storage_client
from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.ports import MODEL
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, JobRequest, Submission
from vertex_training.errors import (
    CheckUnavailableError,
    CommandError,
    ConfigError,
    OperatorError,
    did_you_mean,
)
from vertex_training.errors import Path as FieldPath
from vertex_training.naming import CONTROL
from vertex_training.settings import cron
from vertex_training.stack import Stack
from vertex_training_cli.engine.paths import from_here
from vertex_training_cli.importing.imported import POOLS, SPECS, TASKS, key_of
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_PREFIX
from vertex_training_cli.jobs.objects import Objects
from vertex_training_cli.jobs.service import Jobs


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to be submitted."""

    request: JobRequest
    warnings: tuple[str, ...]
    uploads: Mapping[str, bytes]
    """Content of the packages to upload, by their gs:// URIs."""


def prepare(
    stack: Stack, jobs: Jobs, wanted: str, words: Sequence[str], name: str = ""
) -> PreparedRun:
    """Return the next run of a job of ``stack`` or of a job file, with the arguments ``words``."""
    key, file = _find(stack, wanted)
    name = RUN_PREFIX + (name or key)
    data, shown = _read(file, words)
    context, table = stack.context, stack.references
    if key in stack.settings.schedules:
        table = {**table, job_file.SLOT: cron.name_of(datetime.now(UTC))}
    place = stack.submission(name, next_run(jobs.list(), name, jobs.ref.stack))
    declared = stack.settings.submitted.get(key)
    kind = BATCH_JOB if declared and declared.backend == BATCH_JOB.backend else None
    checked = job_file.check_job_file(data, shown, place, table, context, kind)
    if checked.request is None:
        raise ConfigError(checked.errors)
    if over := stack.exceeded_limits({name: checked}):
        raise ConfigError(over)
    used = [reference for reference in checked.request.used if reference.startswith("packages.")]
    packages = {reference: stack.packages[reference.partition(".")[2]] for reference in used}
    uploads = {str(table[reference]): package.content for reference, package in packages.items()}
    notifications = stack.settings.notifications(key)
    request = dataclasses.replace(checked.request, notifications=notifications)
    passed = {"ladder": declared.ladder, **declared.passed} if declared else {}
    ignored = [name for name, value in passed.items() if value and name not in ("onDelete", MODEL)]
    notes = (f"`vt run` ignores {name} of job '{key}'" for name in ignored)
    return PreparedRun(request, (*_warnings(checked), *notes), uploads)


def of_document(
    content: Mapping[str, object], place: Submission, stack: Stack, uploads: Mapping[str, bytes]
) -> PreparedRun:
    """Return a run of the job in ``content``."""
    data = yaml.safe_dump(dict(content)).encode()
    checked = job_file.check_job_file(data, "job", place, stack.references, stack.context)
    if checked.request is None:
        raise ConfigError(checked.errors)
    return PreparedRun(checked.request, _warnings(checked), uploads)


def submit(run: PreparedRun, stack: Stack) -> str:
    """Upload the packages, submit the job and return its resource name."""
    from vertex_training.customjob.provider import CustomJobProvider, input_options, submission_of

    for uri, content in run.uploads.items():
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        blob = storage_client(stack.settings.project).bucket(bucket).blob(name)
        try:
            with suppress(PreconditionFailed):  # The object exists. Its name contains its digest.
                blob.upload_from_string(content, "application/gzip", if_generation_match=0)
        except (GoogleAPICallError, RetryError) as error:
            text = f"cannot write {uri}: {getattr(error, 'message', error)}"
            hint = "`vt run` requires roles/storage.objectUser on the bucket"
            raise CommandError(text, hint) from None
    request, settings = run.request, stack.settings
    labels = settings.labels_of(settings.team_at(request.account))
    bucket = settings.names.bucket(CONTROL)
    created = CustomJobProvider().create(
        {
            "submission": submission_of(request),
            "requestId": request.request_id,
            "request": request.body,
            "options": input_options(request, {"onDelete": "keep"}, labels, bucket),
        }
    )
    return str(created.id)


def has_bucket(project: str, name: str, number: str) -> bool:
    """Return True if a bucket exists. If that is unknown, return True: a later write then fails."""
    try:
        return Objects(project).has_bucket(name, number)
    except OperatorError:
        return True


def next_run(jobs: Sequence[AnyJob], name: str, stack: str) -> int:
    """Return the number of the next run of a job; refuse if a run is still live."""
    submitted = [job for job in jobs if view.title(job) == name]
    for job in submitted:
        if not view.has_ended(job):
            id_ = view.job_id(job)
            raise CommandError(
                f"job {name} is already running: {id_} is {view.state(job)}.",
                f"cancel the job with `vt jobs cancel {id_} --stack {stack}`, or start a second "
                "run with --name NAME",
            )
    runs = [view.run(job) for job in submitted]
    return max((int(run) for run in runs if run.isdecimal()), default=0) + 1


def _find(stack: Stack, wanted: str) -> tuple[str, Path]:
    known = stack.settings.submitted
    if wanted in known:
        return wanted, stack.root / known[wanted].file
    file = Path(wanted)
    if file.is_file():
        return next(iter(stack.jobs_of(file)), key_of(file.stem)), file
    hint = did_you_mean(wanted, known)
    raise CheckUnavailableError(f"{wanted} is not a job of this stack and not a file; {hint}")


def _read(file: Path, words: Sequence[str]) -> tuple[bytes, str]:
    from vertex_training_cli.check.checking import read

    shown = from_here(file)
    data = read(shown)
    if not words:
        return data, shown
    try:
        content = yaml.safe_load(data)
    except yaml.YAMLError:
        return data, shown  # The later check reports the error.
    add_arguments(content, words, shown)
    return yaml.safe_dump(content, sort_keys=False).encode(), shown


def _warnings(checked: JobFileResult) -> tuple[str, ...]:
    return tuple(map(str, (*checked.warnings, *checked.ignored)))


def add_arguments(content: Any, words: Sequence[str], file: str) -> None:
    """Add arguments to all tasks of the job file ``content``; refuse a file without tasks."""
    tasks = [task for _, task in tasks_of(content)]
    if not tasks:
        raise CommandError(
            f"{file} has no task that accepts arguments.", "remove the arguments after --"
        )
    for task in tasks:
        task["args"] = with_words([str(word) for word in task.get("args") or []], words)


def with_words(args: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return ``args`` with ``words``, which replace earlier values of the same flags.

    >>> with_words(["--epochs=2", "--lr", "0.1", "train"], ["--epochs=3", "--lr=1", "--fast"])
    ['train', '--epochs=3', '--lr=1', '--fast']
    """
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    kept: list[str] = []
    index = 0
    while index < len(args):
        word = args[index]
        index += 1
        if not word.startswith("-") or word.partition("=")[0] not in flags:
            kept.append(word)
        elif "=" not in word and index < len(args) and not args[index].startswith("-"):
            index += 1  # The next word is the flag's value.
    return [*kept, *words]


def tasks_of(content: Any) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yield path and content of each task of a CustomJob, a ``jobSpec`` or a tuning job."""
    path: FieldPath = ()
    for names in (SPECS, SPECS, POOLS):
        key = next((n for n in names if isinstance(content, Mapping) and n in content), None)
        if key:
            content, path = content[key], (*path, key)
    for index, pool in enumerate(content if isinstance(content, list) else []):
        for key in TASKS:
            if isinstance(pool, Mapping) and isinstance(pool.get(key), dict):
                yield (*path, index, key), pool[key]
