"""Jobs as drift: orphaned ones, and those submitted by hand as the stack's accounts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.google.job_service import enum_name
from vertex_training.customjob.protocol.ports import CANCELLING, REQUEST_ID_LABEL, STACK_LABEL
from vertex_training_cli.drift.findings import (
    RUNS,
    SUBMITTED,
    PropertyDifference,
    ResourceDifference,
)
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.service import Jobs, kind_of, labels_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

_ACCOUNT: Final = "serviceAccount:"


def orphaned_jobs(stack: StackRef, known: Collection[str]) -> list[ResourceDifference]:
    """Jobs of the stack that run and that its state, with the ids ``known``, does not have.

    Raises:
        CommandError: the local cloud does not run.
        OperatorError: jobs cannot be listed.
    """
    found = deployed.find_orphaned_jobs(stack, known)
    return [
        _difference(
            RUNS, deployed.orphan_title(job), job, "state", deployed.orphan_advice(job, stack.stack)
        )
        for job in found
    ]


def submitted_by_hand(
    stack: StackRef,
    known: Collection[str],
    accounts: Collection[str],
    neighbours: Collection[str],
) -> tuple[list[ResourceDifference], list[str]]:
    """Jobs that run as ``accounts`` (IAM members) and that the stack did not submit; and those that
    say they are of ``neighbours``, other stacks of the checkout, which are not judged.

    Raises:
        CommandError: the local cloud does not run.
        OperatorError: jobs cannot be listed.
    """
    if not accounts:
        return [], []
    stack.connect_clients()
    jobs = Jobs(stack)
    live = [
        job
        for job in jobs.list(all_stacks=True, live_only=True)
        if not view.has_ended(job) and enum_name(job.state) != CANCELLING
    ]
    known = {*known, *_trials(jobs, live)}
    found, not_judged = list[ResourceDifference](), list[str]()
    for job in live:
        account = view.spec_of(job).service_account
        if job.name in known or f"{_ACCOUNT}{account}" not in accounts:
            continue
        labels = labels_of(job)
        submitter = labels.get(STACK_LABEL) if labels.get(REQUEST_ID_LABEL) else None
        if submitter == stack.stack:
            continue  # an orphaned one
        if submitter in neighbours:
            text = f"{job.name} runs as {account} and says that it is of stack {submitter}"
            not_judged.append(text)
            continue
        name = f"{kind_of(job).collection}/{job.display_name}"
        advice = (
            f"To end it: `vt jobs cancel {view.job_id(job)} --stack {stack.stack}`; to keep it: "
            f"list `{name}` with its reason under `drift.allowedResources`. Who submitted it is in "
            "the project's audit log."
        )
        told = _difference(SUBMITTED, job.display_name, job, "account", advice)
        found.append(dataclasses.replace(told, resource=name))
    return found, not_judged


def _trials(jobs: Jobs, live: Collection[AnyJob]) -> Iterator[str]:
    """Names of the CustomJobs that are trials of live tuning jobs; lists leave trials out."""
    for job in live:
        yield from (trial.custom_job for trial in getattr(jobs.whole(job), "trials", ()))


def _difference(op: str, name: str, job: AnyJob, field: str, advice: str) -> ResourceDifference:
    value = view.state(job) if field == "state" else str(view.spec_of(job).service_account)
    return ResourceDifference(
        op,
        name,
        kind_of(job).message,
        job.name,
        (PropertyDifference(field, value, ""),),
        advice,
    )
