"""Ladders and ``idleStop`` of jobs as deployed: by the state, not by unreviewed files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    LADDER,
    REQUEST_ID_LABEL,
    SLOT_LABEL,
    STACK_LABEL,
)
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.plan import JOBS, WITH_REQUEST
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import labels_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training.customjob.protocol.idle import IdleStop
    from vertex_training.customjob.protocol.ladder import Ladder


def deployed_inputs(ref: StackRef) -> list[Mapping[str, Any]]:
    """Inputs of the jobs and schedules in the stack's state.

    Raises:
        OperatorError: the state cannot be read.
    """
    try:
        # Not ``ref.environment``: the clients of this process are connected already.
        env = ref.preview_target(offline=False).env if ref.is_local else os.environ
        deployment = PulumiCli(ref.root, env).export_deployment(ref.stack)
    except CommandError as error:
        raise OperatorError(f"the state of stack {ref.stack} cannot be read: {error}") from None
    return list(inputs_in(deployment, WITH_REQUEST))


def inputs_in(
    deployment: Mapping[str, Any], types: Collection[str] = JOBS
) -> Iterator[Mapping[str, Any]]:
    """Inputs of the jobs in a state, or of what has another type."""
    for each in deployment.get("resources") or []:
        if each.get("type") in types and not each.get("delete"):
            yield each.get("inputs") or {}


def inputs_of(job: AnyJob, found: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The inputs that a job was submitted by; None if none of ``found`` are, or it is another's."""
    labels = labels_of(job)
    wanted = labels.get(STACK_LABEL), labels.get(JOB_LABEL), SLOT_LABEL in labels
    for inputs in found if labels else ():
        given = inputs.get("submission") or {}
        if (given.get("stack"), given.get("job"), "schedule" in inputs) == wanted:
            return inputs
    return None


def ladder_of(job: AnyJob, ref: StackRef) -> Ladder | None:
    """The ladder that was deployed with a job; None if it has none, or is no job of the stack.

    Raises:
        OperatorError: the state cannot be read, or a service does not answer.
    """
    from vertex_training.customjob.provider import ladder_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return ladder_of(inputs) if inputs and (inputs.get("options") or {}).get(LADDER) else None


def idle_stop_of(job: AnyJob, ref: StackRef) -> IdleStop | None:
    """The ``idleStop`` that was deployed with a job; None if it has none. Raises OperatorError."""
    from vertex_training.customjob.provider import idle_stop_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return idle_stop_of(inputs) if inputs else None


def stop_reason(job: AnyJob, ref: StackRef) -> str:
    """Why ``idleStop`` cancelled a job; empty if it did not. Raises OperatorError."""
    from vertex_training.customjob.provider import stop_reason  # loads Pulumi

    inputs = _deployed(job, ref)
    return stop_reason(inputs, job.name, labels_of(job)[REQUEST_ID_LABEL]) if inputs else ""


def _deployed(job: AnyJob, ref: StackRef) -> Mapping[str, Any] | None:
    return inputs_of(job, deployed_inputs(ref)) if labels_of(job) else None
