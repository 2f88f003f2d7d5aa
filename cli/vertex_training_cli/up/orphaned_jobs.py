"""After an ``up`` that ended well: reports the stack's orphaned jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import orphaned, view


def report_orphaned_jobs(
    stack: StackRef, deployment: Mapping[str, Any], log: Callable[[str], None]
) -> None:
    """Log each orphaned job with what can be done about it. ``deployment`` is the stack's own.

    Nothing is cancelled: the job may be wanted. If jobs cannot be listed, that is logged instead;
    the ``up`` before it has succeeded all the same.
    """
    known = {resource.get("id", "") for resource in deployment.get("resources") or []}
    name = stack.stack
    try:
        found = orphaned.find_orphaned_jobs(stack, known)
    except (CommandError, OperatorError) as error:
        log(f"it is not known whether jobs run that stack {name} does not know: {error}")
        return
    for job in found:
        log(
            f"job {orphaned.title(job)} is {view.state(job)}, and stack {name} does not know "
            f"it: {job.name}. {orphaned.advice(job, name)}"
        )
