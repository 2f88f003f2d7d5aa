"""Jobs that go from one stack file of a project to another while they run.

No state has a job of another stack: the old one would cancel it, with what it has trained, and the
new one submit it anew; deployed in the other order, it would run twice. So both wait for its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training import stack as stacks
from vertex_training.customjob.kinds import KINDS
from vertex_training.errors import (
    CommandError,
    ConfigError,
    OperatorError,
    Problem,
    UnknownStackError,
)
from vertex_training.settings import project_files, renames, stack_files
from vertex_training_cli.engine.plan import JOBS, Plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef, find_unchecked
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs

#: Names of jobs in a stack -> their resource names.
Deployed = Mapping[str, str]
#: Of the problem; a headline knows it.
RULE: Final = "job-changes-stacks"
#: How a component calls the resource of a job.
RESOURCE: Final = "training-"


def deployed_jobs(deployment: Mapping[str, Any]) -> Deployed:
    """Jobs in a state."""
    resources = deployment.get("resources") or []
    found = [(each["urn"], each.get("id", "")) for each in resources if each.get("type") in JOBS]
    return {_job(urn): id_ for urn, id_ in found}


def planned_from(plan: Plan) -> Deployed:
    """Jobs in the state that a plan begins with."""
    return {_job(s.urn): s.old.id for s in plan.steps if s.type in JOBS and s.old is not None}


def find_moved_jobs(stack: StackRef, deployed: Deployed, pulumi: PulumiCli) -> list[Problem]:
    """A problem for each job that goes from this stack to another, or to it, and has not ended.

    ``deployed`` are the jobs in the stack's state. Stacks of other projects, states that cannot be
    read and jobs that cannot be asked for are passed over.
    """
    return [
        Problem(
            f"job {job} goes from stack {old.stack} to {new} and has not ended: it would be "
            "cancelled there, and begin anew or run twice",
            id_,
            f"let it end (`vt jobs wait {job} --stack {old.stack}`), or end it (`vt jobs cancel "
            f"{job} --stack {old.stack}`), then deploy both",
            rule=RULE,
        )
        for old, new, job, id_ in _moves(stack, deployed, pulumi)
        if _is_live(old, id_)
    ]


def _moves(
    stack: StackRef, deployed: Deployed, pulumi: PulumiCli
) -> Iterator[tuple[StackRef, str, str, str]]:
    """(old stack, name of the new one, job, its resource name)."""
    beside = [find_unchecked(stack.root, name) for name in project_files.names(stack.root)]
    beside = [o for o in beside if o.project == stack.project and o.stack != stack.stack]
    here = _declared(stack) if beside else None
    if here is None:
        return
    for other in beside:
        there = _declared(other)
        if there is None:
            continue
        leaves = (deployed.keys() - here) & there
        comes = here - deployed.keys() - there
        state = _state(pulumi, other.stack) if leaves or comes else {}
        yield from (
            (stack, other.stack, job, deployed[job]) for job in sorted(leaves - state.keys())
        )
        yield from ((other, stack.stack, job, state[job]) for job in sorted(comes & state.keys()))


def _declared(stack: StackRef) -> set[str] | None:
    """Names that the jobs of a stack file have in the state; None if it cannot be read."""
    try:
        raw = stack_files.read_raw(stacks.SCHEMA, stack.root, stack.stack)
        settings = stacks.read_settings(raw, stack.root)
    except (ConfigError, UnknownStackError, OSError):
        return None
    sections = [renames.first_keys(settings, (kind.section,)) for kind in KINDS]
    return {first for keys in sections for first in keys.values()}


def _state(pulumi: PulumiCli, stack: str) -> Deployed:
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
    return urn.rpartition("::")[2].removeprefix(RESOURCE)
