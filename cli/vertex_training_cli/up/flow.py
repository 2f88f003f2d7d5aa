"""The steps of ``vt up``: clear what is dead, run ``pulumi up``, clear what it settled."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vertex_training.customjob.protocol.withdrawal import CANCELLED_JOBS
from vertex_training.errors import CommandError, OperatorError, Problem
from vertex_training.settings import project_files
from vertex_training_cli.engine import attributes_file, locks, pending_creates
from vertex_training_cli.engine.preview import make_plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import ids_in
from vertex_training_cli.jobs import orphaned, view
from vertex_training_cli.jobs.moved import deployed_jobs, find_moved_jobs
from vertex_training_cli.up.cancelled_jobs import report_cancelled_jobs

Log = Callable[[str], None]
#: Exit code: a refresh would make anew, empty, what is protected, or a running job changes stacks.
REFUSED: Final = 3
#: Options by which ``pulumi up`` refreshes first (pulumi v3.259.0).
_REFRESH: Final = re.compile(r"(?:--refresh|-[a-z]*r)(?:=(?P<value>.*))?")


def bring_up(
    stack: StackRef,
    pulumi: PulumiCli,
    arguments: Sequence[str],
    log: Log,
    *,
    on_dead_lock: Callable[[], object],
) -> int:
    """Return the exit code of ``pulumi up ARGUMENTS``, or of the refresh that cleared after it.

    Calls ``on_dead_lock`` after a dead lock was removed, before ``pulumi`` runs.

    ``REFUSED`` if a refresh would make anew what is protected, empty, or a job goes to another
    stack, or comes from one, while it runs.

    Raises:
        CommandError: the stack is in use, its state was lost, or a command of ``pulumi`` before or
            after failed.
    """
    backend = pulumi.backend_url()
    if locks.clear_dead(backend, stack.pulumi_project, stack.stack, log):
        on_dead_lock()
    attributes_file.remove_truncated(backend, stack.pulumi_project, stack.stack, log)
    before = _deployment_before(stack, pulumi)
    refused = refused_repairs(stack.root, pulumi, stack.stack, arguments)
    if refused := [*refused, *find_moved_jobs(stack, deployed_jobs(before), pulumi)]:
        log(f"{stack.stack} is not deployed; nothing was changed.")
        for problem in refused:
            log(str(problem))
        return REFUSED
    if code := _run_up(stack, pulumi, arguments, log):
        log(f"pulumi up ended with exit code {code}")
        return code
    deployment = pulumi.export_deployment(stack.stack)
    code = clear_settled(stack.stack, pulumi, arguments, deployment, log)
    report_orphaned_jobs(stack, deployment, log)
    return code


def _deployment_before(stack: StackRef, pulumi: PulumiCli) -> Mapping[str, Any]:
    """What the state has; refuses one that was lost."""
    try:
        deployment = pulumi.export_deployment(stack.stack)
    except CommandError:
        return {}  # there is no such stack yet, or `pulumi up` has more to say
    if not any(each.get("custom") for each in deployment.get("resources") or []):
        from vertex_training_cli.up.lost_state import refuse_if_lost  # loads Google's client

        refuse_if_lost(stack)
    return deployment


def refused_repairs(
    root: Path, pulumi: PulumiCli, stack: str, arguments: Sequence[str]
) -> list[Problem]:
    """What an ``up`` with a refresh would make anew, empty, and is protected; asks a preview.

    Nothing of an ``up`` that is held to a plan: the review that made it has looked.
    """
    if not _refreshes(root, arguments) or any(each.startswith("--plan") for each in arguments):
        return []
    from vertex_training_cli.review.destroyed import loss_problem, refused_losses

    found = make_plan(pulumi, stack, policy_options=_config_file(arguments), refresh=True)
    return [loss_problem(each) for each in refused_losses(found)]


def _refreshes(root: Path, arguments: Sequence[str]) -> bool:
    """Whether ``pulumi up`` begins with what the cloud has: asked to, or by ``Pulumi.yaml``."""
    options = [match for each in arguments if (match := _REFRESH.fullmatch(each))]
    if options:
        return options[-1]["value"] not in ("false", "False", "f", "F", "0")
    return project_files.refreshes(root)


def _run_up(stack: StackRef, pulumi: PulumiCli, arguments: Sequence[str], log: Log) -> int:
    """The exit code of ``pulumi up``. Logs the jobs that it has cancelled in vain."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "cancelled-jobs"
        noting = dataclasses.replace(pulumi, env={**pulumi.env, CANCELLED_JOBS: str(notes)})
        code = noting.run_in_foreground("up", "--stack", stack.stack, *arguments)
        report_cancelled_jobs(stack, notes, log)
        return code


def clear_settled(
    stack: str,
    pulumi: PulumiCli,
    arguments: Sequence[str],
    deployment: Mapping[str, Any],
    log: Log,
) -> int:
    """Clear the pending creations that an ``up`` settled, and log what to do about the others.

    Returns the exit code of ``pulumi refresh``, which clears them; 0 if there was nothing to clear.
    """
    found = pending_creates.find(deployment)
    if found.open:
        log(pending_creates.explanation(found, stack))
    if not found.clearable:
        return 0
    names = ", ".join(urn.rpartition("::")[2] for urn in found.settled)
    log(f"a killed run had begun to create {names}, which is settled now: clearing its note")
    options = ["--stack", stack, "--yes", "--skip-preview", "--non-interactive"]
    options += ["--clear-pending-creates", *_config_file(arguments)]
    for urn in found.targets:
        options += ["--target", urn]  # the others need not be read again
    return pulumi.run_in_foreground("refresh", *options)


def _config_file(arguments: Sequence[str]) -> list[str]:
    """``--config-file`` of the ``up``, which a refresh needs as well."""
    for index, argument in enumerate(arguments):
        if argument == "--config-file":
            return list(arguments[index : index + 2])
        if argument.startswith("--config-file="):
            return [argument]
    return []


def report_orphaned_jobs(
    stack: StackRef, deployment: Mapping[str, Any], log: Callable[[str], None]
) -> None:
    """Log each orphaned job with what can be done about it. ``deployment`` is the stack's own.

    Nothing is cancelled: the job may be wanted. If jobs cannot be listed, that is logged instead;
    the ``up`` before it has succeeded all the same.
    """
    name = stack.stack
    try:
        found = orphaned.find_orphaned_jobs(stack, ids_in(deployment))
    except (CommandError, OperatorError) as error:
        log(f"it is not known whether jobs run that stack {name} does not know: {error}")
        return
    for job in found:
        log(
            f"job {orphaned.title(job)} is {view.state(job)}, and stack {name} does not know "
            f"it: {job.name}. {orphaned.advice(job, name)}"
        )
