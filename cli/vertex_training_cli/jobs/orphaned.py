"""Orphaned jobs: jobs of a stack that have not ended, and that its state does not have.

A provider that is killed after it has sent a request leaves no note in the state. The next ``up``
finds the job by its request. If the job was removed from the stack or renamed in between, nothing
asks for that request again, and the job runs to its end. ``vt up`` and ``vt drift`` report it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.google.job_service import enum_name
from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUNG_LABEL,
    SLOT_LABEL,
)
from vertex_training.schedules.deployed import schedule_id
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs, kind_of, labels_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob


#: How the names of jobs begin that ``vt run`` submits. No key of a stack file has an underscore.
RUN_PREFIX: Final = "run_"


def find_orphaned_jobs(
    stack: StackRef, known: Collection[str], *, with_runs: bool = False
) -> list[AnyJob]:
    """The orphaned jobs, newest first. ``known`` are what ``known_ids`` returns.

    ``with_runs``: also jobs of ``vt run``, which belong to no state.

    Raises:
        CommandError: the local cloud does not run.
        OperatorError: jobs cannot be listed.
    """
    stack.connect_clients()
    jobs = Jobs(stack)
    listed = [
        job
        for job in jobs.list(live_only=True)
        if {resource_of(job, stack), _rung_of(job)}.isdisjoint(known)
    ]
    if not with_runs:
        listed = [job for job in listed if not view.title(job).startswith(RUN_PREFIX)]
    # The list may lag and have jobs that were cancelled a moment ago: get each by its name.
    found = [now for job in listed if (now := jobs.get_if_exists(job.name)) is not None]
    return [job for job in found if not view.has_ended(job) and enum_name(job.state) != CANCELLING]


def _rung_of(job: AnyJob) -> str:
    """The request id of a job that is a rung of a ladder; empty of others."""
    labels = labels_of(job)
    return labels[REQUEST_ID_LABEL] if RUNG_LABEL in labels else ""


def resource_of(job: AnyJob, stack: StackRef) -> str:
    """Id of the resource that a state has for a job: the schedule of a slot, else its own name."""
    labels = labels_of(job)
    if SLOT_LABEL not in labels:
        return job.name
    return schedule_id(stack.parent, kind_of(job), labels.get(JOB_LABEL, ""))


def title(job: AnyJob) -> str:
    """Its name in the stack, with its run."""
    return f"{view.title(job)} (run {view.run(job)})"


def advice(job: AnyJob, stack: str) -> str:
    """Where it comes from, and what can be done about it."""
    return (
        "A killed run submitted it, perhaps, before it was removed or renamed. To end it: "
        f"`vt jobs cancel {view.job_id(job)} --stack {stack}`; to keep it: declare it as it was, "
        f"and `vt up --stack {stack} --refresh` takes it over."
    )
