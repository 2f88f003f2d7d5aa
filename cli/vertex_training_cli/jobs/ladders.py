"""Ladders of jobs as they were deployed: from the stack's state, not from files nobody reviewed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vertex_training.customjob.protocol.ports import JOB_LABEL, LADDER, STACK_LABEL
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.plan import JOBS
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import labels_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training.customjob.protocol.ladder import Ladder


def deployed_inputs(ref: StackRef) -> list[Mapping[str, Any]]:
    """Inputs of the jobs in the stack's state.

    Raises:
        OperatorError: the state cannot be read.
    """
    try:
        # Not ``ref.environment``: the clients of this process are connected already.
        env = ref.preview_target(offline=False).env if ref.is_local else os.environ
        deployment = PulumiCli(ref.root, env).export_deployment(ref.stack)
    except CommandError as error:
        raise OperatorError(f"the state of stack {ref.stack} cannot be read: {error}") from None
    return list(inputs_in(deployment))


def inputs_in(deployment: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Inputs of the jobs in a state."""
    for each in deployment.get("resources") or []:
        if each.get("type") in JOBS and not each.get("delete"):
            yield each.get("inputs") or {}


def ladder_of(job: AnyJob, ref: StackRef) -> Ladder | None:
    """The ladder that was deployed with a job; None if it has none, or is no job of the stack.

    Raises:
        OperatorError: the state cannot be read, or a service does not answer.
    """
    from vertex_training.customjob.provider import ladder_of  # loads Pulumi

    labels = labels_of(job)
    if not labels:
        return None
    wanted = labels.get(STACK_LABEL), labels.get(JOB_LABEL)
    for inputs in deployed_inputs(ref):
        submission = inputs.get("submission") or {}
        if (submission.get("stack"), submission.get("job")) == wanted:
            return ladder_of(inputs) if (inputs.get("options") or {}).get(LADDER) else None
    return None
