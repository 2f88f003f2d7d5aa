"""Deployed jobs, from a stack's state; does not read files, which may be unreviewed.

Ladders and ``idleStop`` of jobs that are waited for; jobs that no state has; and jobs that go from
one stack file of a project to another while they run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from vertex_training.customjob.google.job_service import enum_name
from vertex_training.customjob.kinds import KINDS
from vertex_training.customjob.protocol.ports import (
    CANCELLING,
    JOB_LABEL,
    LADDER,
    REQUEST_ID_LABEL,
    RUNG_LABEL,
    SLOT_LABEL,
    STACK_LABEL,
)
from vertex_training.errors import (
    CommandError,
    ConfigError,
    OperatorError,
    Problem,
    UnknownStackError,
)
from vertex_training.schedules.deployed import schedule_id
from vertex_training.settings import project_files, renames
from vertex_training.stack import settings_of
from vertex_training_cli.engine.plan import JOBS, WITH_REQUEST, Plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef, find_unchecked
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs, kind_of, labels_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training.customjob.protocol.idle import IdleStop
    from vertex_training.customjob.protocol.ladder import Ladder


def deployed_inputs(ref: StackRef) -> list[Mapping[str, Any]]:
    """Return the inputs of the jobs and schedules in the stack's state.

    Raises:
        OperatorError: the state cannot be read.
    """
    try:
        # Not ``ref.environment``: the clients of this process are connected already.
        env = ref.preview_target(offline=False).env if ref.is_local else os.environ
        deployment = PulumiCli(ref.root, env).export_deployment(ref.stack)
    except CommandError as error:
        raise OperatorError(f"cannot read the state of stack {ref.stack}: {error}") from None
    return list(inputs_in(deployment, WITH_REQUEST))


def inputs_in(
    deployment: Mapping[str, Any], types: Collection[str] = JOBS
) -> Iterator[Mapping[str, Any]]:
    """Return the inputs of the jobs in a state, or of resources of the given types."""
    for resource in deployment.get("resources") or []:
        if resource.get("type") in types and not resource.get("delete"):
            yield resource.get("inputs") or {}


def inputs_of(job: AnyJob, deployed: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the inputs of a submitted job; None if ``deployed`` does not have the job."""
    labels = labels_of(job)
    owner = labels.get(STACK_LABEL), labels.get(JOB_LABEL), SLOT_LABEL in labels
    for inputs in deployed if labels else ():
        submission = inputs.get("submission") or {}
        if (submission.get("stack"), submission.get("job"), "schedule" in inputs) == owner:
            return inputs
    return None


def ladder_of(job: AnyJob, ref: StackRef) -> Ladder | None:
    """Return the deployed ladder of a job; None if the job has no ladder or belongs to no stack.

    Raises:
        OperatorError: the state cannot be read, or a service does not answer.
    """
    from vertex_training.customjob.provider import ladder_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return ladder_of(inputs) if inputs and (inputs.get("options") or {}).get(LADDER) else None


def idle_stop_of(job: AnyJob, ref: StackRef) -> IdleStop | None:
    """Return the deployed ``idleStop`` of a job; None without one. Raises OperatorError."""
    from vertex_training.customjob.provider import idle_stop_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return idle_stop_of(inputs) if inputs else None


def stop_reason(job: AnyJob, ref: StackRef) -> str:
    """Return why ``idleStop`` cancelled a job; empty if it did not. Raises OperatorError."""
    from vertex_training.customjob.provider import stop_reason  # loads Pulumi

    inputs = _deployed(job, ref)
    return stop_reason(inputs, job.name, labels_of(job)[REQUEST_ID_LABEL]) if inputs else ""


def _deployed(job: AnyJob, ref: StackRef) -> Mapping[str, Any] | None:
    return inputs_of(job, deployed_inputs(ref)) if labels_of(job) else None


#: Prefix of job names that ``vt run`` submits. Keys of stack files have no underscore.
RUN_PREFIX: Final = "run_"
#: Variable of a script's run: the archive with its code.
RUN_CODE: Final = "VT_CODE"


def find_orphaned_jobs(
    stack: StackRef, known: Collection[str], *, with_runs: bool = False
) -> list[AnyJob]:
    """Return orphaned jobs, newest first. ``known``: the ids in the state, from ``known_ids``.

    A provider that is killed after it has sent a request leaves no note in the state. The next
    ``up`` finds the job by its request. If the job was removed from the stack or renamed in
    between, nothing asks for that request again, and the job runs to its end.

    ``with_runs``: also jobs of ``vt run``, which belong to no state.

    Raises:
        CommandError: the local cloud does not run.
        OperatorError: jobs cannot be listed.
    """
    stack.connect_clients()
    jobs = Jobs(stack)
    listed = [
        job
        for job in jobs.list(live_only=True)
        if {resource_of(job, stack), _rung_of(job)}.isdisjoint(known)
    ]
    if not with_runs:
        listed = [job for job in listed if not view.title(job).startswith(RUN_PREFIX)]
    # The list may lag and have jobs that were cancelled a moment ago: get each by its name.
    orphaned = [now for job in listed if (now := jobs.get_if_exists(job.name)) is not None]
    return [
        job for job in orphaned if not view.has_ended(job) and enum_name(job.state) != CANCELLING
    ]


def _rung_of(job: AnyJob) -> str:
    """Return the request id of a job that a ladder submitted as a rung; empty for other jobs."""
    labels = labels_of(job)
    return labels[REQUEST_ID_LABEL] if RUNG_LABEL in labels else ""


def resource_of(job: AnyJob, stack: StackRef) -> str:
    """Return the resource id of a job in a state: its schedule's, or for other jobs its own."""
    labels = labels_of(job)
    if SLOT_LABEL not in labels:
        return job.name
    return schedule_id(stack.parent, kind_of(job), labels.get(JOB_LABEL, ""))


def orphan_title(job: AnyJob) -> str:
    """Return the job's name in the stack, with its run."""
    return f"{view.title(job)} (run {view.run(job)})"


def orphan_advice(job: AnyJob, stack: str) -> str:
    """Return where an orphaned job probably comes from, and how to end it."""
    return (
        "Possibly a killed run submitted this job, and it was removed or renamed "
        f"afterwards. To cancel it: `vt jobs cancel {view.job_id(job)} --stack {stack}`. "
        "To keep it: declare the job again without changes, then run `vt up --stack "
        f"{stack} --refresh`, which adopts it."
    )


#: Names of jobs in a stack -> their resource names.
Deployed = Mapping[str, str]
#: Rule id of the problem, for the headline of a report.
RULE: Final = "job-changes-stacks"
#: Prefix of the name of a job's resource in the program.
_RESOURCE: Final = "training-"


def deployed_jobs(deployment: Mapping[str, Any]) -> Deployed:
    """Return the jobs in a state."""
    resources = deployment.get("resources") or []
    deployed = [
        (resource["urn"], resource.get("id", ""))
        for resource in resources
        if resource.get("type") in JOBS
    ]
    return {_job(urn): id_ for urn, id_ in deployed}


def planned_from(plan: Plan) -> Deployed:
    """Return the jobs in the state that a plan starts from."""
    return {_job(s.urn): s.old.id for s in plan.steps if s.type in JOBS and s.old is not None}


def find_moved_jobs(stack: StackRef, deployed: Deployed, pulumi: PulumiCli) -> list[Problem]:
    """Return a problem for each running job that moves from this stack to another, or to it.

    No state has a job of another stack: the old one would cancel it, with what it has trained, and
    the new one submit it anew; deployed in the other order, it would run twice.

    ``deployed`` are the jobs in the stack's state. Stacks of other projects, states that cannot be
    read and jobs that cannot be asked for are passed over.
    """
    return [
        Problem(
            f"job {job} would move from stack {old.stack} to {new} while it is running: "
            "it would be cancelled and start again, or run twice",
            id_,
            f"wait until it has ended (`vt jobs wait {job} --stack {old.stack}`) or "
            f"cancel it (`vt jobs cancel {job} --stack {old.stack}`), then deploy both "
            "stacks",
            rule=RULE,
        )
        for old, new, job, id_ in _moves(stack, deployed, pulumi)
        if _is_live(old, id_)
    ]


def _moves(
    stack: StackRef, deployed: Deployed, pulumi: PulumiCli
) -> Iterator[tuple[StackRef, str, str, str]]:
    """Yield (old stack, name of the new stack, job, resource name of the job)."""
    beside = [find_unchecked(stack.root, name) for name in project_files.names(stack.root)]
    beside = [o for o in beside if o.project == stack.project and o.stack != stack.stack]
    here = _declared(stack) if beside else None
    if here is None:
        return
    for other in beside:
        elsewhere = _declared(other)
        if elsewhere is None:
            continue
        leaves = (deployed.keys() - here) & elsewhere
        comes = here - deployed.keys() - elsewhere
        state = _state_of(pulumi, other.stack) if leaves or comes else {}
        yield from (
            (stack, other.stack, job, deployed[job]) for job in sorted(leaves - state.keys())
        )
        yield from ((other, stack.stack, job, state[job]) for job in sorted(comes & state.keys()))


def _declared(stack: StackRef) -> set[str] | None:
    """Return the state names of the jobs in a stack file; None if the file cannot be read."""
    try:
        settings = settings_of(stack.root, stack.stack)
    except (ConfigError, UnknownStackError, OSError):
        return None
    sections = [renames.first_keys(settings, (kind.section,)) for kind in KINDS]
    return {first for keys in sections for first in keys.values()}


def _state_of(pulumi: PulumiCli, stack: str) -> Deployed:
    try:
        return deployed_jobs(pulumi.export_deployment(stack))
    except CommandError:
        return {}


def _is_live(stack: StackRef, id_: str) -> bool:
    try:
        stack.connect_clients()
        job = Jobs(stack).get_if_exists(id_) if id_ else None
    except (CommandError, OperatorError):
        return False
    return job is not None and not view.has_ended(job)


def _job(urn: str) -> str:
    return urn.rpartition("::")[2].removeprefix(_RESOURCE)
