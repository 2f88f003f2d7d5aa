"""Jobs of a stack that live, and that its state does not know.

A provider that is killed after it has sent leaves no note in the state. The next `up` finds the
job by its request, unless it was removed from the stack or renamed meanwhile: then nobody asks for
that request again, and the job runs on, unseen, to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from infra.customjob.ports import CANCELLING, OperatorError
from vt import stacks
from vt.errors import CommandError
from vt.stacks import Place

if TYPE_CHECKING:
    from infra.customjob.vertex_api import CustomJob


def tell(where: Place, deployment: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Name each of them, and the ways out. `deployment` is what `pulumi stack export` calls so.

    Nothing is cancelled: who removed it may have wanted the job to go on. Where jobs cannot be
    listed, that is told in its place; it is no reason to call an `up` failed that went well.
    """
    from vt.jobs import view

    try:
        found = _unknown(where, deployment)
    except (CommandError, OperatorError) as error:
        say(f"it is not known whether jobs run that stack {where.stack} does not know: {error}")
        return
    for job in found:
        say(
            f"job {view.title(job)} (run {job.labels['run']}) is {view.state(job)}, and stack "
            f"{where.stack} does not know it: {job.name}. A killed run submitted it, perhaps, "
            "before it was removed or renamed. To end it: `vt jobs cancel "
            f"{view.job_id(job)} --stack {where.stack}`; to keep it: declare it as it was, and "
            "`up` takes it over."
        )


def _unknown(where: Place, deployment: Mapping[str, Any]) -> list[CustomJob]:
    stacks.reach(where)
    from vt.jobs import view
    from vt.jobs.service import Jobs  # loads Google's client

    jobs = Jobs(where)
    known = {resource.get("id") for resource in deployment.get("resources") or []}
    listed = [job for job in jobs.list(unended=True) if job.name not in known]
    # A list that lags shows jobs that this very `up` has cancelled: each is asked for by name.
    found = [now for job in listed if (now := jobs.known(job.name)) is not None]
    return [job for job in found if not view.ended(job) and job.state.name != CANCELLING]
