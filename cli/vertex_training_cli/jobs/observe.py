"""Read the current state of a plan's jobs for a review, within a time limit."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.customjob.google import intent_store, logs
from vertex_training.customjob.google.logs import JobLogs
from vertex_training.customjob.kinds import CUSTOM_JOB, kind_of_name, kind_of_submission
from vertex_training.customjob.protocol.ports import RECORD_DELETED, RUNG_LABEL
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
from vertex_training_cli.jobs.service import Jobs, labels_of
from vertex_training_cli.process import run_within

#: Time limit for all requests together, in seconds.
BOUND: Final = 20.0
LATE: Final = "no response within the time limit"
#: Maximum number of parallel connections.
THREADS: Final = 8
#: Maximum length of a shown log line.
LINE_LENGTH: Final = 160
#: Operations in the order in which their jobs are read: jobs that the change ends come first.
ORDER: Final = ("delete", "delete-replaced", "replace", "update", "same")
#: Yields facts about the jobs of a plan, by request id or job. Facts before an error are kept.
Finder = Callable[[StackRef, Plan], Iterator[tuple[str, Any]]]


def observe_jobs(ref: StackRef, plan: Plan, *, offline: bool, bound: float = BOUND) -> Observations:
    """Return the current status of the jobs in the plan's state. Errors become reasons."""
    steps = [step for step in plan.steps if step.type in JOBS and step.old and step.old.id]
    steps.sort(key=lambda step: ORDER.index(step.op) if step.op in ORDER else len(ORDER))
    names = list(dict.fromkeys(step.old.id for step in steps if step.old))
    if offline:
        return Observations(not_observed="the preview was made offline" if names else "")
    facts: dict[Finder, dict[str, Any]] = {_adopted: {}, _repeated: {}, _dropped: {}}
    observed = [Observations(not_observed=LATE)]
    run_within(
        bound + 1,
        (
            *(partial(_collect, find, ref, plan, found) for find, found in facts.items()),
            lambda: observed.append(observe_by_name(ref, names, bound=bound)),
        ),
    )
    return dataclasses.replace(
        observed[-1],
        adopted=frozenset(facts[_adopted]),
        repeated=dict(facts[_repeated]),
        dropped=dict(facts[_dropped]),
    )


def _collect(find: Finder, ref: StackRef, plan: Plan, facts: dict[str, Any]) -> None:
    with suppress(CommandError, OperatorError):  # `up` reads again before each submission.
        for key, fact in find(ref, plan):
            facts[key] = fact


def _repeated(ref: StackRef, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield each new request that would write to an earlier job's folder, with that job."""
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
            ref.connect_clients()
            folder = f"{options.get('records', '')}{kind.records}"
            bucket, account = str(options["controlBucket"]), str(options.get("impersonate", ""))
            stored = intent_store.connect(ref.project, bucket, folder, account).read(request_id)
            if stored and stored.record.job_name:
                yield request_id, stored.record.job_name


def _dropped(ref: StackRef, plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the jobs whose changed schedule drops due start times, with these times."""
    for step in plan.steps:
        if step.type != SCHEDULE or step.op != "update" or not (step.old and step.new):
            continue
        # `up` reports the errors.
        with suppress(CommandError, OperatorError, KeyError, TypeError, ValueError):
            ref.connect_clients()
            old = DeployedSchedule.of(step.old.outputs)
            new = DeployedSchedule.of(step.new.inputs)
            if slots := dropped(old, new, partial(connect, old), datetime.now(UTC).timestamp()):
                yield old.job, tuple(slots)


def _adopted(ref: StackRef, plan: Plan) -> Iterator[tuple[str, bool]]:
    """Yield new requests whose job exists already, as after an import of an old state."""
    created = (step for step in plan.steps if step.type in JOBS and step.op == "create")
    new = [step.new.inputs for step in created if step.new]
    if not new:
        return
    ref.connect_clients()
    jobs = Jobs(ref)
    for inputs in new:
        request_id = str(inputs.get("requestId"))
        if jobs.is_adopted(request_id, kind_of_submission(as_mapping(inputs.get("submission")))):
            yield request_id, True


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
    if job is not None and view.has_ended(job) and RUNG_LABEL in labels_of(job):
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
