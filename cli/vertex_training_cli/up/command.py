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
from vertex_training.errors import CommandError, OperatorError, Problem
from vertex_training.settings import project_files
from vertex_training_cli.console import print_status
from vertex_training_cli.engine import locks, stacks
from vertex_training_cli.engine.events import make_plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import ids_in
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.deployed import deployed_jobs, find_moved_jobs
from vertex_training_cli.policy_levels import up_options
from vertex_training_cli.review.destroyed import loss_problem, refused_losses
from vertex_training_cli.up.lost_state import refuse_if_lost

PolicyLevels = Annotated[
    Path | None, typer.Option(help="JSON file with policy levels, which override the stack file.")
]


def up(
    context: typer.Context,
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="Stack. Default: the selected stack, else `local`."),
    ] = None,
    policy_levels: PolicyLevels = None,
) -> None:
    """Run `pulumi up`, and clean up after runs that were killed.

    Before `pulumi up`, the command removes locks whose process has ended. Locks of running
    processes and of other machines stay. After a successful `pulumi up`, the command clears pending
    creations of existing resources, and reports running jobs of the stack that are missing from the
    state.

    Other options are passed to `pulumi up`: `vt up -s dev --yes`. For a stack of the local cloud,
    the command starts the local cloud.

    With --refresh, the command stops if a protected resource was deleted in Google Cloud.

    Exit code: that of pulumi; 1 if the stack is in use, 3 if a deleted protected resource would be
    created again without its data, or a running job would move to another stack.
    """
    ref = stacks.find(stack)
    policies = up_options(ref.root, ref.stack, context.args, policy_levels)
    pulumi = PulumiCli(ref.root, ref.environment(print_status))
    raise typer.Exit(bring_up(ref, pulumi, [*context.args, *policies], print_status))


Log = Callable[[str], None]
#: Exit code: a refresh would recreate a protected resource empty, or a running job changes stacks.
REFUSED: Final = 3
#: Options with which ``pulumi up`` refreshes first (pulumi v3.259.0).
_REFRESH: Final = re.compile(r"(?:--refresh|-[a-z]*r)(?:=(?P<value>.*))?")
FALSE: Final = ("false", "False", "f", "F", "0")


def bring_up(stack: StackRef, pulumi: PulumiCli, arguments: Sequence[str], log: Log) -> int:
    """Run ``pulumi up ARGUMENTS`` and a cleanup. Return the exit code of the last command.

    Return ``REFUSED`` if a refresh would create a protected resource again, empty, or if a running
    job would move to or from another stack.
    """
    backend = pulumi.backend_url()
    if locks.clear_dead(backend, stack.pulumi_project, stack.stack, log) and stack.is_local:
        # A plugin of a killed run could interfere with this run.
        end_orphaned_plugins(Home.find(cwd=stack.root))
    locks.remove_truncated(backend, stack.pulumi_project, stack.stack, log)
    try:
        before = pulumi.export_deployment(stack.stack)
    except CommandError:
        before = {}  # The stack does not exist, or `pulumi up` reports the error.
    else:
        if not any(resource.get("custom") for resource in before.get("resources") or []):
            refuse_if_lost(stack)
    refused = refused_repairs(stack.root, pulumi, stack.stack, arguments)
    if refused := [*refused, *find_moved_jobs(stack, deployed_jobs(before), pulumi)]:
        log(f"stack {stack.stack} was not deployed. Nothing was changed.")
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


def refused_repairs(
    root: Path, pulumi: PulumiCli, stack: str, arguments: Sequence[str]
) -> list[Problem]:
    """Return reasons to refuse an ``up`` with a refresh, from a preview with the same refresh.

    An ``up`` with ``--plan`` is accepted, because the review of the plan had the same checks.
    """
    options = [match for argument in arguments if (match := _REFRESH.fullmatch(argument))]
    refreshes = options[-1]["value"] not in FALSE if options else project_files.refreshes(root)
    if not refreshes or any(argument.startswith("--plan") for argument in arguments):
        return []
    preview = make_plan(pulumi, stack, policy_options=_config_file(arguments), refresh=True)
    unseen = preview.errors if preview.steps and "--skip-preview" in arguments else ()
    return [*map(loss_problem, refused_losses(preview)), *(Problem(e.message) for e in unseen)]


def clear_settled(
    stack: str, pulumi: PulumiCli, arguments: Sequence[str], deployment: Mapping[str, Any], log: Log
) -> int:
    """Clear completed pending creations by `pulumi refresh`; return its exit code or 0."""
    pending = find_pending(deployment)
    if pending.open:
        log(explanation(pending, stack))
    if not pending.clearable:
        return 0
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.settled)
    log(
        f"a killed run began to create {names}, and the creation is complete. Removing the "
        "pending operation from the state"
    )
    options = ["--stack", stack, "--yes", "--skip-preview", "--non-interactive"]
    options += ["--clear-pending-creates", *_config_file(arguments)]
    for urn in pending.targets:
        options += ["--target", urn]
    return pulumi.run_in_foreground("refresh", *options)


def _config_file(arguments: Sequence[str]) -> list[str]:
    for index, argument in enumerate(arguments):
        if argument == "--config-file":
            return list(arguments[index : index + 2])
        if argument.startswith("--config-file="):
            return [argument]
    return []


def report_orphaned_jobs(
    stack: StackRef, deployment: Mapping[str, Any], log: Callable[[str], None]
) -> None:
    """Log each orphaned job with a hint. Errors of the request are only logged."""
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
    """Pending creations in the state: URNs of resources that a killed run began to create.

    The next ``up`` calls ``create`` again, but keeps the pending operation in the state. A second
    ``create`` adopts an existing job or model version, and continues a change of traffic. Other
    resources have explicit names, so a second creation fails. A pending creation can be cleared if
    the resource is in the state, or if its creation leaves nothing in the cloud.
    """

    settled: tuple[str, ...]
    """Creations whose resource is in the state, or that left nothing in the cloud."""
    targets: tuple[str, ...]
    """Resources that ``pulumi refresh`` also refreshes when it clears the pending creations."""
    open: tuple[str, ...]
    """Creations whose resource may exist in the cloud."""

    @property
    def clearable(self) -> bool:
        """Return True if the creations can be cleared. The engine clears either all or none."""
        return bool(self.settled) and not self.open


def find_pending(deployment: Mapping[str, Any]) -> PendingCreates:
    """Return the pending creations of a deployment of ``pulumi stack export``."""
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
    """Return a message that explains how to fix the pending creations that were not cleared."""
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.open)
    return (
        f"a killed run may have created {names}, which the stack's state does not contain. "
        "The pending operation stays in the state. Search for the resource (`vt jobs list "
        f"--stack {stack}`, `vt models list`) and delete the resource. Then run `pulumi refresh "
        f"--stack {stack} --clear-pending-creates`"
    )
