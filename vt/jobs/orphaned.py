"""Jobs of a stack that live, and that its state does not know.

A provider that is killed after it has sent leaves no note in the state. The next `up` finds the
job by its request, unless it was removed from the stack or renamed meanwhile: then nobody asks for
that request again, and the job runs on, unseen, to its end. `vt up` and `vt drift` look for it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from infra.customjob.protocol.ports import CANCELLING
from vt.engine import stacks
from vt.engine.stacks import Place
from vt.jobs import view

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob


def find(where: Place, known: Collection[str]) -> list[CustomJob]:
    """Those jobs, newest first. ``known`` are the ids of the resources in the state.

    Raises:
        CommandError: the local cloud does not run.
        OperatorError: jobs cannot be listed.
    """
    stacks.reach(where)
    from vt.jobs.service import Jobs  # loads Google's client

    jobs = Jobs(where)
    listed = [job for job in jobs.list(unended=True) if job.name not in known]
    # A list that lags shows jobs that were cancelled a moment ago: each is asked for by name.
    found = [now for job in listed if (now := jobs.known(job.name)) is not None]
    return [job for job in found if not view.ended(job) and job.state.name != CANCELLING]


def told(job: CustomJob) -> str:
    """Its name in the stack, with its run."""
    return f"{view.title(job)} (run {job.labels.get('run', '')})"


def way_out(job: CustomJob, stack: str) -> str:
    """Where it comes from, and what can be done about it."""
    return (
        "A killed run submitted it, perhaps, before it was removed or renamed. To end it: "
        f"`vt jobs cancel {view.job_id(job)} --stack {stack}`; to keep it: declare it as it was, "
        "and `up` takes it over."
    )
