"""Read the current state of a plan's jobs for a review, within a time limit."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.customjob.google import intent_store, logs
from vertex_training.customjob.kinds import CUSTOM_JOB, kind_of_name, kind_of_submission
from vertex_training.customjob.protocol.ports import RECORD_DELETED
from vertex_training.errors import CommandError, OperatorError
from vertex_training.schedules.deployed import DeployedSchedule
from vertex_training.schedules.provider import connect
from vertex_training.schedules.slots import dropped
from vertex_training_cli.engine.plan import (
    JOBS,
    CheckpointObservation,
    JobObservation,
    Observations,
    Plan,
    rungs,
)
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import as_mapping, redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.objects import CheckpointLook
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.process import run_within

if TYPE_CHECKING:
    from vertex_training.customjob.google.logs import JobLogs

#: Time limit for all requests together, in seconds.
BOUND: Final = 20.0
LATE: Final = "no response within the time limit"
#: Maximum number of parallel connections.
THREADS: Final = 8
#: Maximum length of a shown log line.
LINE_LENGTH: Final = 160
#: Operations in the order in which their jobs are read: jobs that the change ends come first.
ORDER: Final = ("delete", "delete-replaced", "replace", "update", "same")


def observe_jobs(ref: StackRef, plan: Plan, *, offline: bool, bound: float = BOUND) -> Observations:
    """Return the current status of the jobs in the plan's state. Errors become reasons."""
    steps = [step for step in plan.steps if step.type in JOBS and step.old and step.old.id]
    steps.sort(key=lambda step: ORDER.index(step.op) if step.op in ORDER else len(ORDER))
    names = list(dict.fromkeys(step.old.id for step in steps if step.old))
    if offline:
        return Observations(not_observed="the preview was made offline" if names else "")
    adopted, repeated = set[str](), dict[str, str]()
    lost, observed = dict[str, tuple[str, ...]](), list[Observations]()
    run_within(
        bound + 1,
        (
            partial(_find_adopted, ref, plan, adopted),
            partial(_find_repeated, ref, plan, repeated),
            partial(_find_dropped, ref, plan, lost),
            lambda: observed.append(observe_by_name(ref, names, bound=bound)),
        ),
    )
    late = Observations(not_observed=LATE)
    return dataclasses.replace(
        observed[0] if observed else late,
        adopted=frozenset(adopted),
        repeated=dict(repeated),
        dropped=dict(lost),
    )


def _find_repeated(ref: StackRef, plan: Plan, repeated: dict[str, str]) -> None:
    """Find new jobs that would write to an earlier job's folder: request -> earlier job."""
    for step in plan.steps:
        if step.type not in JOBS or step.new is None or step.op not in ("create", "replace"):
            continue
        before = step.old.outputs.get("requestId") if step.old else None
        options = as_mapping(step.new.inputs.get("options"))
        kind = kind_of_submission(as_mapping(step.new.inputs.get("submission")))
        for rung in rungs(step.new.inputs):
            request_id = str(rung.get("requestId"))
            if request_id == before or not options.get("controlBucket"):
                continue
            try:
                ref.connect_clients()
                folder = f"{options.get('records', '')}{kind.records}"
                records = intent_store.connect(
                    ref.project, str(options["controlBucket"]), folder,
                    str(options.get("impersonate", "")),
                )  # fmt: skip
                stored = records.read(request_id)
            except (CommandError, OperatorError):
                return
            if stored and stored.record.job_name:
                repeated[request_id] = stored.record.job_name


def _find_dropped(ref: StackRef, plan: Plan, slots_by_job: dict[str, tuple[str, ...]]) -> None:
    """Find due start times that a changed schedule drops, by the name of the job."""
    for step in plan.steps:
        if step.type != SCHEDULE or step.op != "update" or not (step.old and step.new):
            continue
        try:
            ref.connect_clients()
            old = DeployedSchedule.of(step.old.outputs)
            new = DeployedSchedule.of(step.new.inputs)
            now = datetime.now(UTC).timestamp()
            if slots := dropped(old, new, lambda: connect(old), now):  # noqa: B023 - called at once
                slots_by_job[old.job] = tuple(slots)
        except (CommandError, OperatorError, KeyError, TypeError, ValueError):
            continue  # `up` reports the error.


def _find_adopted(ref: StackRef, plan: Plan, adopted: set[str]) -> None:
    """Find requests of new jobs whose job exists already, as after an import of an old state."""
    new = [
        step.new.inputs
        for step in plan.steps
        if step.type in JOBS and step.op == "create" and step.new
    ]
    if not new:
        return
    try:
        ref.connect_clients()
        jobs = Jobs(ref)
        for inputs in new:
            request_id = str(inputs.get("requestId"))
            kind = kind_of_submission(as_mapping(inputs.get("submission")))
            if jobs.is_adopted(request_id, kind):
                adopted.add(request_id)
    except (CommandError, OperatorError):
        return  # `up` searches again before the submission.


def observe_by_name(ref: StackRef, names: Sequence[str], *, bound: float = BOUND) -> Observations:
    """Return the status of the jobs with these resource names. Errors become reasons."""
    jobs, reasons, waiting = dict[str, JobObservation](), list[str](), deque(names)
    look = CheckpointLook(ref.project, bound / 2)

    def observe() -> None:
        try:
            ref.connect_clients()
            service, lines = Jobs(ref), logs.connect(ref.project)
        except (CommandError, OperatorError) as error:
            reasons.append(str(error))
            return
        with suppress(IndexError):  # The queue is empty.
            while name := waiting.popleft():
                try:
                    jobs[name] = _observation(service, lines, look, name)
                except (CommandError, OperatorError) as error:
                    reasons.append(str(error))

    in_time = run_within(bound, [observe] * min(THREADS, len(names)))
    if not in_time and not reasons:
        reasons.append(LATE)
    return Observations(dict(jobs), reasons[-1] if reasons else "")


def _observation(jobs: Jobs, lines: JobLogs, look: CheckpointLook, name: str) -> JobObservation:
    job = jobs.get_if_exists(name)
    if job is not None and view.has_ended(job) and view.rung(job):
        job = jobs.find(view.title(job))  # A later rung may be missing from the state.
    if job is None:
        return JobObservation(RECORD_DELETED)
    began: Any = job.start_time
    ended: Any = job.end_time or datetime.now(UTC)
    seconds = (ended - began).total_seconds() if began else 0.0
    backend = (kind_of_name(name) or CUSTOM_JOB).backend
    hourly = costs.of_job(view.message(job), jobs.ref.region, backend).hourly
    checkpoint = None
    if began and not view.has_ended(job) and (listing := look.newest(job)):
        newest = listing.newest
        age = max(0.0, (datetime.now(UTC) - newest).total_seconds()) if newest else None
        checkpoint = CheckpointObservation(age, at_most=listing.more)
    return JobObservation(
        state=view.state(job),
        seconds=seconds,
        cost=None if hourly is None else hourly * seconds / 3600,
        last_line="" if view.has_ended(job) else _progress(jobs, lines, job),
        checkpoint=checkpoint,
    )


def _progress(jobs: Jobs, lines: JobLogs, job: Any) -> str:
    if view.is_tuning(job):
        return f"trials: {view.trial_summary(view.message(job))}"
    try:
        last = lines.tail(jobs.log_id(job), 1)
    except OperatorError:
        return ""
    return str(redact(last[-1].text))[:LINE_LENGTH] if last else ""
