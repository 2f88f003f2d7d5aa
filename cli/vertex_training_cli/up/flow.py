"""The steps of ``vt up``: clear what is dead, run ``pulumi up``, clear what it settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vertex_training_cli.engine import attributes_file, locks, pending_creates
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up.orphaned_jobs import report_orphaned_jobs

Log = Callable[[str], None]


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

    Raises:
        CommandError: the stack is in use, or a command of ``pulumi`` before or after failed.
    """
    backend = pulumi.backend_url()
    if locks.clear_dead(backend, stack.pulumi_project, stack.stack, log):
        on_dead_lock()
    attributes_file.remove_truncated(backend, stack.pulumi_project, stack.stack, log)
    if code := pulumi.run_in_foreground("up", "--stack", stack.stack, *arguments):
        log(f"pulumi up ended with exit code {code}")
        return code
    deployment = pulumi.export_deployment(stack.stack)
    code = clear_settled(stack.stack, pulumi, arguments, deployment, log)
    report_orphaned_jobs(stack, deployment, log)
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
    log(f"a killed run had begun to create {names}, which is there now: clearing its note")
    options = ["--stack", stack, "--yes", "--skip-preview", "--non-interactive"]
    options += ["--clear-pending-creates", *_config_file(arguments)]
    for urn in found.settled:
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
