"""Why a stack is not verified: found before anything is made, all at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training import stack
from vertex_training.catalog import costs
from vertex_training.catalog.costs import JobCost
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.errors import CommandError, ConfigError, OperatorError, Problem
from vertex_training.settings.project_files import file_name
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.read_errors import is_api_off
from vertex_training_cli.verify.edits import EPOCHS

#: How often the job is submitted: once to its end, once to be replaced, once in its place.
SUBMISSIONS: Final = 3
#: Names that a throw-away stack does not have.
_PROD: Final = re.compile(r"(^|[-_.])(prod|prd|production|live)\d*([-_.]|$)")

_HINT: Final = "use a throw-away project and the stack file of docs/bootstrap.md"


@dataclass(frozen=True, slots=True)
class Subject:
    """The stack as far as a run depends on its file."""

    job: str
    """Key of its one job."""
    timeout: float
    number: str
    request_id: str
    cost: JobCost

    @property
    def most_usd(self) -> float | None:
        """What all submissions can cost together; None without a price."""
        return None if self.cost.worst_case is None else SUBMISSIONS * self.cost.worst_case

    @property
    def price(self) -> str:
        """For people."""
        return f"{costs.usd(self.most_usd)} at most: {SUBMISSIONS} times {self.job}, {self.cost}"


def read_subject(ref: StackRef) -> Subject:
    """What is to be verified.

    Raises:
        ConfigError: the stack's files have mistakes, or say something that no run is made of.
    """
    loaded = stack.load(ref.root, ref.stack)
    settings, file = loaded.settings, file_name(ref.stack)
    problems: list[Problem] = []
    if _PROD.search(ref.stack):
        problems.append(Problem(f"{file} is a stack of production by its name", hint=_HINT))
    if settings.protects:
        problems.append(Problem(f"{file} protects something", hint="a run destroys all of it"))
    if settings.reservations:
        problems.append(Problem(f"{file} reserves machines, which cost while idle", hint=_HINT))
    if len(settings.submitted) != 1 or len(settings.jobs) != 1:
        count = len(settings.submitted)
        problems.append(Problem(f"{file} has {count} jobs; a run takes one", hint=_HINT))
    for entry in settings.jobs.values():
        if not EPOCHS.search((ref.root / entry.file).read_text(encoding="utf-8")):
            hint = "a run raises it, so that the job still trains when it is replaced"
            problems.append(Problem(f"{entry.file} has no argument --epochs=N", hint=hint))
    if problems:
        raise ConfigError(problems)
    [(job, result)] = loaded.check_jobs().items()
    if result.request is None:
        raise ConfigError(result.errors)
    request = result.request
    cost = request.cost
    return Subject(job, cost.timeout, settings.project_number, request.request_id, cost)


def price_refusals(subject: Subject, max_usd: float) -> list[Problem]:
    """Nothing without a price is run, and nothing that can cost more than ``max_usd``."""
    most = subject.most_usd
    if most is None:
        return [Problem(f"job {subject.job} has no price", hint="vt catalogue has those with one")]
    if not most <= max_usd:  # a limit that is no number is none
        hint = "shorten scheduling.timeout of the job file, or raise --max-usd"
        return [Problem(f"{subject.price}; --max-usd is {costs.usd(max_usd)}", hint=hint)]
    return []


def state_refusals(ref: StackRef, deployment: Mapping[str, Any]) -> list[Problem]:
    """A stack that has something is none to throw away."""
    found = [each for each in deployment.get("resources") or [] if each.get("custom")]
    found = [each for each in found if not str(each["type"]).startswith("pulumi:")]
    if not found:
        return []
    hint = f"if it is left from a run before: `{clean_command(ref)}`"
    return [Problem(f"stack {ref.stack} has {len(found)} resources already", hint=hint)]


def job_refusals(ref: StackRef, subject: Subject, jobs: Sequence[Any]) -> list[Problem]:
    """``jobs`` are those of the stack in its project, ended ones as well."""
    live = [job for job in jobs if not view.has_ended(job)]
    problems = [
        Problem(
            f"job {job.name} of stack {ref.stack} is {view.state(job)}",
            hint=f"`vt jobs cancel {view.job_id(job)} --stack {ref.stack}`",
        )
        for job in live
    ]
    ended = [job for job in jobs if job.labels.get(REQUEST_ID_LABEL) == subject.request_id]
    if ended and not live:
        hint = f"raise jobs.{subject.job}.run in {file_name(ref.stack)}"
        problems.append(Problem(f"{ended[0].name} has run for the same request", hint=hint))
    return problems


def stack_jobs(ref: StackRef) -> Sequence[Any]:
    """The stack's jobs, newest first; none where the API is off, as in a new project.

    Raises:
        CommandError, OperatorError: they cannot be listed, so it is not known what runs.
    """
    ref.connect_clients()
    try:
        return Jobs(ref).list()
    except (CommandError, OperatorError) as error:
        if is_api_off(str(error)):
            return ()
        raise


def clean_command(ref: StackRef) -> str:
    """What removes all that a run may have left."""
    return f"vt destroy --stack {ref.stack} --yes --name {ref.stack}"
