"""Deployed jobs in a stack's state, orphaned jobs, and running jobs that move to another stack.

The module reads no files of the checkout for deployed jobs, because such files may be unreviewed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from vertex_training.customjob.google.job_service import AnyJob, enum_name
from vertex_training.customjob.kinds import KINDS
from vertex_training.customjob.protocol.idle import IdleStop
from vertex_training.customjob.protocol.ladder import Ladder
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
from vertex_training.settings import project_files, reader
from vertex_training.stack import settings_of
from vertex_training_cli.engine.plan import JOBS, WITH_REQUEST, Plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef, find_unchecked
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs, kind_of, labels_of


def inputs_in(
    deployment: Mapping[str, Any], types: Collection[str] = JOBS
) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of the jobs in a state, or of resources of the given types."""
    for resource in deployment.get("resources") or []:
        if resource.get("type") in types and not resource.get("delete"):
            yield resource.get("inputs") or {}


def inputs_of(job: AnyJob, deployed: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the inputs of a submitted job; None if the job is not in ``deployed``."""
    labels = labels_of(job)
    owner = labels.get(STACK_LABEL), labels.get(JOB_LABEL), SLOT_LABEL in labels
    for inputs in deployed if labels else ():
        submission = inputs.get("submission") or {}
        if (submission.get("stack"), submission.get("job"), "schedule" in inputs) == owner:
            return inputs
    return None


def ladder_of(job: AnyJob, ref: StackRef) -> Ladder | None:
    """Return the deployed ladder of a job; None if the job has no ladder or belongs to no stack."""
    from vertex_training.customjob.provider import ladder_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return ladder_of(inputs) if inputs and (inputs.get("options") or {}).get(LADDER) else None


def idle_stop_of(job: AnyJob, ref: StackRef) -> IdleStop | None:
    """Return the deployed ``idleStop`` of a job, or None."""
    from vertex_training.customjob.provider import idle_stop_of  # loads Pulumi

    inputs = _deployed(job, ref)
    return idle_stop_of(inputs) if inputs else None


def stop_reason(job: AnyJob, ref: StackRef) -> str:
    """Return the reason if ``idleStop`` cancelled the job; otherwise an empty text."""
    from vertex_training.customjob.provider import stop_reason  # loads Pulumi

    inputs = _deployed(job, ref)
    return stop_reason(inputs, job.name, labels_of(job)[REQUEST_ID_LABEL]) if inputs else ""


def _deployed(job: AnyJob, ref: StackRef) -> Mapping[str, Any] | None:
    if not labels_of(job):
        return None
    try:
        # ``ref.environment`` would start the local cloud.
        env = ref.preview_target(offline=False).env if ref.is_local else os.environ
        deployment = PulumiCli(ref.root, env).export_deployment(ref.stack)
    except CommandError as error:
        raise OperatorError(f"cannot read the state of stack {ref.stack}: {error}") from None
    return inputs_of(job, inputs_in(deployment, WITH_REQUEST))


#: Prefix of job names that ``vt run`` submits. Keys of stack files have no underscore.
RUN_PREFIX: Final = "run_"
#: Environment variable with the archive of a script's code.
RUN_CODE: Final = "VT_CODE"


def find_orphaned_jobs(
    stack: StackRef, known: Collection[str], *, with_runs: bool = False
) -> list[AnyJob]:
    """Return the live jobs of a stack that are missing from its state, newest first.

    ``known`` has the job ids in the state (see ``known_ids``). With ``with_runs``, the result
    includes jobs of ``vt run``. A job becomes an orphan if the engine is killed after the
    submission, and the job is renamed or removed before the next ``up``, which would adopt the job.
    """
    stack.connect_clients()
    jobs = Jobs(stack)
    orphaned: list[AnyJob] = []
    for job in jobs.list(live_only=True):
        labels = labels_of(job)
        rung = labels[REQUEST_ID_LABEL] if RUNG_LABEL in labels else ""
        resource = job.name
        if SLOT_LABEL in labels:
            resource = schedule_id(stack.parent, kind_of(job), labels.get(JOB_LABEL, ""))
        is_run = view.title(job).startswith(RUN_PREFIX)
        if (is_run and not with_runs) or not {resource, rung}.isdisjoint(known):
            continue
        # Lists may be outdated and contain cancelled jobs.
        current = jobs.get_if_exists(job.name)
        is_live = current and not view.has_ended(current)
        if current and is_live and enum_name(current.state) != CANCELLING:
            orphaned.append(current)
    return orphaned


def orphan_title(job: AnyJob) -> str:
    """Return the job's name in the stack, with its run."""
    return f"{view.title(job)} (run {view.run(job)})"


def orphan_advice(job: AnyJob, stack: str) -> str:
    """Return a sentence about the origin of an orphaned job, and commands to cancel or keep it."""
    return (
        "Possibly a killed run submitted this job, and the job was removed from the stack file "
        f"or renamed afterwards. To cancel the job: `vt jobs cancel {view.job_id(job)} --stack "
        f"{stack}`. To keep the job: declare the job again without changes, then run `vt up "
        f"--stack {stack} --refresh`, which adopts the job."
    )


#: Resource names of jobs by their names in the stack.
Deployed = Mapping[str, str]
#: Rule id of the problem.
RULE: Final = "job-changes-stacks"
#: Prefix of the names of job resources in the program.
_RESOURCE: Final = "training-"


def deployed_jobs(deployment: Mapping[str, Any]) -> Deployed:
    """Return the jobs in a state."""
    return {
        _job(resource["urn"]): resource.get("id", "")
        for resource in deployment.get("resources") or []
        if resource.get("type") in JOBS
    }


def planned_from(plan: Plan) -> Deployed:
    """Return the jobs in the state that a plan is based on."""
    return {_job(s.urn): s.old.id for s in plan.steps if s.type in JOBS and s.old is not None}


def find_moved_jobs(stack: StackRef, deployed: Deployed, pulumi: PulumiCli) -> list[Problem]:
    """Return a problem for each running job that moves between this stack and another one."""
    return [
        Problem(
            f"job {job} would move from stack {old.stack} to stack {new} while the job is "
            "running: the job would be cancelled and submitted again, or would run twice",
            id_,
            f"wait until the job has ended (`vt jobs wait {job} --stack {old.stack}`) or "
            f"cancel the job (`vt jobs cancel {job} --stack {old.stack}`), then deploy both "
            "stacks",
            rule=RULE,
        )
        for old, new, job, id_ in _moves(stack, deployed, pulumi)
        if _is_live(old, id_)
    ]


def _moves(
    stack: StackRef, deployed: Deployed, pulumi: PulumiCli
) -> Iterator[tuple[StackRef, str, str, str]]:
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
        state: Deployed = {}
        with suppress(CommandError):
            if leaves or comes:
                state = deployed_jobs(pulumi.export_deployment(other.stack))
        yield from (
            (stack, other.stack, job, deployed[job]) for job in sorted(leaves - state.keys())
        )
        yield from ((other, stack.stack, job, state[job]) for job in sorted(comes & state.keys()))


def _declared(stack: StackRef) -> set[str] | None:
    try:
        settings = settings_of(stack.root, stack.stack)
    except (ConfigError, UnknownStackError, OSError):
        return None
    sections = [reader.first_keys(settings, (kind.section,)) for kind in KINDS]
    return {first for keys in sections for first in keys.values()}


def _is_live(stack: StackRef, id_: str) -> bool:
    try:
        stack.connect_clients()
        job = Jobs(stack).get_if_exists(id_) if id_ else None
    except (CommandError, OperatorError):
        return False
    return job is not None and not view.has_ended(job)


def _job(urn: str) -> str:
    return urn.rpartition("::")[2].removeprefix(_RESOURCE)
