"""Plan -> report: what a reviewer asks, answered in the order of asking."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from infra.errors import Problem
from vt.engine.fields import Field, differ, flat
from vt.engine.plan import JOB, Diagnostic, Plan, PolicyViolation, Step
from vt.review import capacity, digest, jobs, reach, rights
from vt.review.capacity import Reserved
from vt.review.jobs import Job
from vt.review.reach import Door
from vt.review.rights import Right

#: Deleting one of these deletes what people put into it.
HOLDS_DATA = {
    "gcp:storage/bucket:Bucket": "its objects",
    "gcp:storage/bucketObject:BucketObject": "the object",
    "gcp:artifactregistry/repository:Repository": "its images",
    "gcp:secretmanager/secret:Secret": "all versions of the secret",
    "gcp:kms/cryptoKey:CryptoKey": "access to everything encrypted with it",
    "gcp:vertex/aiTensorboard:AiTensorboard": "its experiments",
}

#: Steps after which the resource is gone.
DELETIONS = ("delete", "delete-replaced")


class Outcome(IntEnum):
    """What came of a review; the exit code of ``vt review``. The worst one counts."""

    CLEAN = 0
    FAILED = 1
    """The preview failed, for another reason than those below."""
    FORBIDDEN = 3
    """A mandatory policy forbids it."""
    OVER_LIMIT = 4
    """The environment's limits forbid it."""
    DIFFERENT = 5
    """The plan is not the one that was expected."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A resource that is destroyed, for good or to be made anew."""

    name: str
    type: str
    replaced: bool
    takes: str
    """What is lost with it; empty if nothing that people put there."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that no other part of the report tells."""

    op: str
    name: str
    type: str
    fields: tuple[Field, ...]
    paths: tuple[str, ...] = ()
    """What the provider says differs, where the inputs do not."""


@dataclass(frozen=True, slots=True)
class Report:
    """A review, in the order in which it is read."""

    stack: str
    project: str
    """The cloud's project; empty if unknown."""
    region: str
    source: str
    """Which state the plan starts from, in words."""
    outcome: Outcome
    digest: str
    expected: str
    """The digest that was expected; empty if none was."""
    problems: tuple[Problem, ...]
    """Mistakes and broken limits, where files are the reason that the preview failed."""
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
    """What the program tells beside its resources: prices of reservations, duties of others."""
    jobs: tuple[Job, ...]
    reserved: tuple[Reserved, ...]
    """Reservations that are made or changed."""
    gained: tuple[Right, ...]
    lost: tuple[Right, ...]
    doors: tuple[Door, ...]
    losses: tuple[Loss, ...]
    unprotected: tuple[str, ...]
    """Resources that lose their protection."""
    protected: tuple[str, ...]
    """Resources that Pulumi refuses to destroy."""
    violations: tuple[PolicyViolation, ...]
    packs: tuple[str, ...]
    policies: int
    """How many policies looked at the plan."""
    changes: tuple[Change, ...]
    unchanged: int
    held: tuple[Right, ...] = field(repr=False)
    """All rights after the change, for the picture."""

    def count(self, *actions: str) -> int:
        """How many jobs have one of these actions."""
        return sum(job.action in actions for job in self.jobs)

    @property
    def submitted(self) -> tuple[Job, ...]:
        """Jobs that are sent to the service."""
        return tuple(job for job in self.jobs if job.submits)

    @property
    def worst_case(self) -> float:
        """USD that the submitted jobs can cost together, without those that have no price."""
        return math.fsum(job.cost.worst_case or 0 for job in self.submitted)

    @property
    def unpriced(self) -> tuple[Job, ...]:
        """Submitted jobs without a price."""
        return tuple(job for job in self.submitted if job.cost.worst_case is None)

    @property
    def forbidding(self) -> tuple[PolicyViolation, ...]:
        """Policy results because of which nothing is deployed."""
        return tuple(each for each in self.violations if each.is_mandatory)

    @property
    def nothing(self) -> bool:
        """Whether the plan changes nothing at all."""
        parts = (self.gained, self.lost, self.doors, self.losses, self.changes, self.unprotected)
        return not any(parts) and all(job.action == "keep" for job in self.jobs)


def build(
    plan: Plan, *, source: str, expected: str = "", problems: Iterable[Problem] = ()
) -> Report:
    """The report of a plan.

    ``expected`` is the digest (or its first characters, eight at least) of the plan that was
    approved. ``problems`` are what is wrong in the stack's files, if the preview failed.
    """
    problems, found = tuple(problems), digest.of(plan)
    return Report(
        stack=plan.stack,
        project=plan.config.get("gcp:project", ""),
        region=plan.config.get("gcp:region", ""),
        source=source,
        outcome=_outcome(plan, problems, bool(expected) and not found.startswith(expected)),
        digest=found,
        expected=expected,
        problems=problems,
        errors=_errors(plan, problems),
        warnings=tuple(d for d in plan.diagnostics if d.severity == "warning"),
        notes=tuple(d for d in plan.diagnostics if d.severity == "info"),
        jobs=tuple(jobs.of(plan)),
        reserved=tuple(capacity.of(plan)),
        gained=tuple(rights.gained(plan)),
        lost=tuple(rights.lost(plan)),
        doors=tuple(reach.of(plan)),
        losses=tuple(_losses(plan)),
        unprotected=tuple(_protection(plan, lost=True)),
        protected=tuple(_protection(plan, lost=False)),
        violations=plan.violations,
        packs=tuple(sorted(plan.packs)),
        policies=len(plan.policies | {violation.policy for violation in plan.violations}),
        changes=tuple(_changes(plan)),
        unchanged=sum(step.custom and not step.changes for step in plan.steps),
        held=tuple(rights.held(plan)),
    )


def _outcome(plan: Plan, problems: Sequence[Problem], different: bool) -> Outcome:
    if any(violation.is_mandatory for violation in plan.violations):
        return Outcome.FORBIDDEN
    if problems and all(problem.rule.startswith("limit-") for problem in problems):
        return Outcome.OVER_LIMIT
    if not plan.succeeded:
        return Outcome.FAILED
    return Outcome.DIFFERENT if different else Outcome.CLEAN


def _errors(plan: Plan, problems: Sequence[Problem]) -> tuple[Diagnostic, ...]:
    """What the engine says of a failure, unless the report says it better elsewhere."""
    if problems:
        return ()
    told = any(violation.is_mandatory for violation in plan.violations)
    return tuple(e for e in plan.errors if not (told and e.message == "preview failed"))


def _losses(plan: Plan) -> list[Loss]:
    """What is destroyed, without rights and jobs, which have parts of their own."""
    found = [
        Loss(
            name=step.name,
            type=step.type,
            replaced=step.op == "replace",
            takes=HOLDS_DATA.get(step.type, ""),
        )
        for step in plan.changed
        if _is_loss(step)
    ]
    return sorted(found, key=lambda loss: (not loss.takes, loss.name))


def _is_loss(step: Step) -> bool:
    if step.type == JOB or rights.is_iam(step):
        return False
    if step.op == "replace":
        # An object comes again at once: new content of a file, or a new package of code.
        return step.type != "gcp:storage/bucketObject:BucketObject"
    return step.op in DELETIONS


def _protection(plan: Plan, *, lost: bool) -> list[str]:
    """Names of resources that are protected afterwards, or that were and are no longer."""
    found = []
    for step in plan.steps:
        before, after = (state is not None and state.protect for state in (step.old, step.new))
        if step.custom and (before and not after if lost else after):
            found.append(step.name)
    return sorted(found)


def _changes(plan: Plan) -> list[Change]:
    """Everything that is told nowhere else."""
    return sorted(
        (_change(step) for step in plan.changed if not _told(step)),
        key=lambda change: (change.op, change.name),
    )


def _told(step: Step) -> bool:
    elsewhere = step.type == JOB or rights.is_iam(step) or reach.is_network(step)
    return elsewhere or step.op in DELETIONS


def _change(step: Step) -> Change:
    new = step.new.inputs if step.new else {}
    found = differ(step.old.inputs, new) if step.old else flat(new)
    return Change(step.op, step.name, step.type, tuple(found), () if found else step.paths)
