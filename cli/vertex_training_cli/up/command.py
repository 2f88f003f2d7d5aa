"""The command line of ``vt up``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from localgcp.home import Home
from localgcp.lifecycle import end_orphaned_plugins
from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC, SCHEDULE
from vertex_training.errors import (
    CommandError,
    OperatorError,
    Problem,
)
from vertex_training.settings import project_files
from vertex_training_cli.engine import locks, stacks
from vertex_training_cli.engine.events import make_plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import ids_in
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.deployed import deployed_jobs, find_moved_jobs
from vertex_training_cli.policy_levels import up_options
from vertex_training_cli.review.destroyed import loss_problem, refused_losses
from vertex_training_cli.status import print_status
from vertex_training_cli.up.lost_state import refuse_if_lost

PolicyLevels = Annotated[
    Path | None, typer.Option(help="Policy levels (JSON). They override the stack file's.")
]


def up(
    context: typer.Context,
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="Stack. Default: the selected one, else `local`."),
    ] = None,
    policy_levels: PolicyLevels = None,
) -> None:
    """Run `pulumi up`, and clean up after runs that were killed.

    Before `pulumi up`, it removes locks whose process has ended. Locks of running processes and of
    other machines stay. After a successful `pulumi up`, it clears pending creations that have been
    completed, and reports running jobs of the stack that are missing from the state.

    Other options are passed to `pulumi up`: `vt up -s dev --yes`. For a stack of the local cloud,
    it starts the local cloud.

    With --refresh, it refuses if a protected resource was deleted in the cloud.

    Exit code: that of pulumi; 1 if the stack is in use, 3 if a protected resource would be created
    again, empty, or a running job would move to another stack.
    """
    ref = stacks.find(stack)
    policies = up_options(ref.root, ref.stack, context.args, policy_levels)
    pulumi = PulumiCli(ref.root, ref.environment(print_status))
    code = bring_up(
        ref,
        pulumi,
        [*context.args, *policies],
        print_status,
        on_dead_lock=lambda: _end_plugins(ref),
    )
    raise typer.Exit(code)


def _end_plugins(stack: StackRef) -> None:
    """End plugins of a killed run in the local cloud: they could interfere with the next run."""
    if stack.is_local:
        end_orphaned_plugins(Home.find(cwd=stack.root))


Log = Callable[[str], None]
#: Exit code: a refresh would recreate a protected resource empty, or a running job changes stacks.
REFUSED: Final = 3
#: Options with which ``pulumi up`` refreshes first (pulumi v3.259.0).
_REFRESH: Final = re.compile(r"(?:--refresh|-[a-z]*r)(?:=(?P<value>.*))?")


def bring_up(
    stack: StackRef,
    pulumi: PulumiCli,
    arguments: Sequence[str],
    log: Log,
    *,
    on_dead_lock: Callable[[], object],
) -> int:
    """Return the exit code of ``pulumi up ARGUMENTS``, or of the refresh after it for cleanup.

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
    locks.remove_truncated(backend, stack.pulumi_project, stack.stack, log)
    before = _deployment_before(stack, pulumi)
    refused = refused_repairs(stack.root, pulumi, stack.stack, arguments)
    if refused := [*refused, *find_moved_jobs(stack, deployed_jobs(before), pulumi)]:
        log(f"the deployment of stack {stack.stack} was refused. Nothing was changed.")
        for problem in refused:
            log(str(problem))
        return REFUSED
    if code := pulumi.run_in_foreground("up", "--stack", stack.stack, *arguments):
        log(f"`pulumi up` ended with exit code {code}")
        return code
    deployment = pulumi.export_deployment(stack.stack)
    code = clear_settled(stack.stack, pulumi, arguments, deployment, log)
    report_orphaned_jobs(stack, deployment, log)
    return code


def _deployment_before(stack: StackRef, pulumi: PulumiCli) -> Mapping[str, Any]:
    """Return the deployment in the state. Refuses a lost state."""
    try:
        deployment = pulumi.export_deployment(stack.stack)
    except CommandError:
        return {}  # there is no such stack yet, or `pulumi up` has more to say
    if not any(resource.get("custom") for resource in deployment.get("resources") or []):
        refuse_if_lost(stack)
    return deployment


def refused_repairs(
    root: Path, pulumi: PulumiCli, stack: str, arguments: Sequence[str]
) -> list[Problem]:
    """Return reasons to refuse an ``up`` that refreshes; runs a preview with the same refresh.

    Something protected would be made anew, empty; or it has no preview of its own, and would fail
    after it changed other resources. None of an ``up`` that is held to a plan: the review that
    made it has looked.
    """
    if not _refreshes(root, arguments) or any(
        argument.startswith("--plan") for argument in arguments
    ):
        return []
    preview = make_plan(pulumi, stack, policy_options=_config_file(arguments), refresh=True)
    unseen = preview.errors if preview.steps and "--skip-preview" in arguments else ()
    return [*map(loss_problem, refused_losses(preview)), *(Problem(e.message) for e in unseen)]


def _refreshes(root: Path, arguments: Sequence[str]) -> bool:
    """Return True if ``pulumi up`` refreshes first, by an option or by ``Pulumi.yaml``."""
    options = [match for argument in arguments if (match := _REFRESH.fullmatch(argument))]
    if options:
        return options[-1]["value"] not in ("false", "False", "f", "F", "0")
    return project_files.refreshes(root)


def clear_settled(
    stack: str,
    pulumi: PulumiCli,
    arguments: Sequence[str],
    deployment: Mapping[str, Any],
    log: Log,
) -> int:
    """Clear pending creations that were completed; log how to fix the others.

    Returns the exit code of ``pulumi refresh``, which clears them; 0 if there was nothing to clear.
    """
    pending = find_pending(deployment)
    if pending.open:
        log(explanation(pending, stack))
    if not pending.clearable:
        return 0
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.settled)
    log(
        f"a killed run had begun to create {names}; the creation is complete now. Clearing "
        "the pending operation"
    )
    options = ["--stack", stack, "--yes", "--skip-preview", "--non-interactive"]
    options += ["--clear-pending-creates", *_config_file(arguments)]
    for urn in pending.targets:
        options += ["--target", urn]  # the others need not be read again
    return pulumi.run_in_foreground("refresh", *options)


def _config_file(arguments: Sequence[str]) -> list[str]:
    """Return the ``--config-file`` option of the ``up``, for the refresh that follows."""
    for index, argument in enumerate(arguments):
        if argument == "--config-file":
            return list(arguments[index : index + 2])
        if argument.startswith("--config-file="):
            return [argument]
    return []


def report_orphaned_jobs(
    stack: StackRef, deployment: Mapping[str, Any], log: Callable[[str], None]
) -> None:
    """Log each orphaned job and how to fix it. ``deployment`` is the stack's own.

    Nothing is cancelled: the job may be wanted. If jobs cannot be listed, that is logged instead;
    the ``up`` before it has succeeded all the same.
    """
    name = stack.stack
    try:
        orphans = deployed.find_orphaned_jobs(stack, ids_in(deployment))
    except (CommandError, OperatorError) as error:
        log(f"cannot check for running jobs missing from the state of stack {name}: {error}")
        return
    for job in orphans:
        title, advice = deployed.orphan_title(job), deployed.orphan_advice(job, name)
        what = f"is {view.state(job)}, but missing from the state of stack {name}"
        log(f"job {title} {what}: {job.name}. {advice}")


#: Types whose killed creation leaves nothing in the cloud, or only what another resource deletes.
_LEAVE_NOTHING = (f"{ENDPOINT_TRAFFIC}::", f"{SCHEDULE}::")


@dataclass(frozen=True)
class PendingCreates:
    """Pending creations of the state: URNs of resources that a killed run began to create.

    The engine calls ``create`` again and keeps the note for ever. The second ``create`` of a
    ``CustomJob`` or a ``HyperparameterTuningJob`` adopts the job of the first, that of a
    ``ModelVersion`` its version, and that of an ``EndpointTraffic`` goes on where the first one
    died. All other resources have explicit names, and a second one of the same name is refused. So
    after the next ``up`` that ends well with the resource in the state, the note means nothing any
    more. That of an ``EndpointTraffic`` means nothing without it either: ``EndpointCleanup``
    empties the endpoint; nor does that of a ``JobSchedule``, which makes nothing.
    """

    settled: tuple[str, ...]
    """Creations that are complete (the resource is in the state) or that left nothing behind."""
    targets: tuple[str, ...]
    """Resources that ``pulumi refresh`` also refreshes when it clears the pending creations."""
    open: tuple[str, ...]
    """Creations with an unknown result: the resource may exist or not."""

    @property
    def clearable(self) -> bool:
        """True if the creations can be cleared: the engine clears all or none, even by target."""
        return bool(self.settled) and not self.open


def find_pending(deployment: Mapping[str, Any]) -> PendingCreates:
    """Return the pending creations of a deployment, as ``pulumi stack export`` prints it."""
    resources = deployment.get("resources") or []
    urns = {resource["urn"] for resource in resources if not resource.get("delete")}
    noted = [
        operation["resource"]["urn"]
        for operation in deployment.get("pending_operations") or []
        if operation.get("type") == "creating"
    ]
    unique = tuple(dict.fromkeys(noted))
    settled = tuple(
        urn for urn in unique if urn in urns or any(type_ in urn for type_ in _LEAVE_NOTHING)
    )
    targets = tuple(urn for urn in settled if urn in urns) or tuple(sorted(urns)[:1])
    return PendingCreates(settled, targets, tuple(urn for urn in unique if urn not in settled))


def explanation(pending: PendingCreates, stack: str) -> str:
    """Return a message on how to fix the pending creations that were not cleared."""
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.open)
    return (
        f"a killed run may have created {names}; the stack's state does not contain this "
        "resource. The pending operation stays in the state. Look for the resource (`vt "
        f"jobs list --stack {stack}`, `vt models list`), delete it, then run: pulumi "
        f"refresh --stack {stack} --clear-pending-creates"
    )
