"""After an `up` that ended well: the jobs of the stack that run unseen by its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from infra.errors import CommandError, OperatorError
from vt.engine.stacks import Place
from vt.jobs import orphaned as strays
from vt.jobs import view


def tell(where: Place, deployment: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Name each of them, and the ways out. `deployment` is what `pulumi stack export` calls so.

    Nothing is cancelled: who removed it may have wanted the job to go on. Where jobs cannot be
    listed, that is told in its place; it is no reason to call an `up` failed that went well.
    """
    known = {resource.get("id", "") for resource in deployment.get("resources") or []}
    try:
        found = strays.find(where, known)
    except (CommandError, OperatorError) as error:
        say(f"it is not known whether jobs run that stack {where.stack} does not know: {error}")
        return
    for job in found:
        say(
            f"job {strays.told(job)} is {view.state(job)}, and stack {where.stack} does not know "
            f"it: {job.name}. {strays.way_out(job, where.stack)}"
        )
