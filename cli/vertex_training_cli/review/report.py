"""Builds a report from a plan."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.errors import Problem
from vertex_training.plan.access import Access
from vertex_training.snapshots.estimate import RESOLVED
from vertex_training_cli.engine.plan import (
    NOTHING_OBSERVED,
    OFFLINE,
    WITH_REQUEST,
    Diagnostic,
    Observations,
    Plan,
    PolicyViolation,
    ResourceState,
    Step,
    explained,
)
from vertex_training_cli.engine.values import diff_fields
from vertex_training_cli.review import (
    destroyed,
    expenses,
    grants,
    guards,
    jobs,
    reachability,
    serving,
)
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.jobs import JobChange, image_name
from vertex_training_cli.review.parts import Change
from vertex_training_cli.review.risks import RISKS, RiskKind

#: Paths in a request of a job, or of a tuning job.
_IMAGE_PATH: Final = re.compile(
    r"(?:jobSpec|trialJobSpec)\.workerPoolSpecs\[\d+\]\.containerSpec\.imageUri\Z"
)
#: Images whose labels can be read from a registry.
_PINNED: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/[^@]+@sha256:[0-9a-f]{64}\Z")
#: Origin of an image that was not read from its registry.
NOT_CHECKED: Final = "not checked"


def _image_uses(uses: Iterable[tuple[str, str, str]]) -> tuple[Change, ...]:
    """Return images by name. ``uses`` are old image, new image, and a job or model version.

    ``old`` is the digest or full name of the replaced image; empty if no image is replaced.
    """
    users = dict[tuple[str, str], dict[str, None]]()
    for old, new, name in uses:
        users.setdefault((old, new), {})[name] = None
    images = list[Change]()
    for (replaced, uri), names in users.items():
        (place, _, before), (other, _, after) = replaced.partition("@"), uri.partition("@")
        # Show full names if a digest is missing or the repositories differ.
        is_moved = replaced and place != other
        old, new = (replaced, uri) if is_moved else (before or replaced, after or uri)
        images.append(Change(name=image_name(uri), old=old, new=new, uri=uri, jobs=tuple(names)))
    return tuple(sorted(images, key=lambda use: (use.name, use.old or use.uri)))


def image_versions(image: Change) -> tuple[str, str]:
    """Return an image before and after the plan, with short digests."""
    parts = (version.partition("sha256:") for version in (image.old, image.new))
    old, new = (f"{head}{mark}{digits[:12] if mark else ''}" for head, mark, digits in parts)
    return old, new


class ReviewOutcome(IntEnum):
    """Result of a review, and exit code of ``vt review``: the most severe result."""

    CLEAN = 0
    FAILED = 1
    FORBIDDEN = 3
    """A mandatory policy is violated, or a protected resource would be recreated without data."""
    OVER_LIMIT = 4
    DIFFERENT = 5


#: Metadata key of the function that computes a field from a plan.
FINDER: Final = "finder"


def _part(find: Callable[[Plan], Iterable[Any]]) -> Any:
    return field(metadata={FINDER: find})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewReport:
    """The content of a review, in the order of the report."""

    stack: str
    project: str
    region: str
    source: str
    """Description of the state at the beginning of the preview."""
    outcome: ReviewOutcome
    digest: str
    expected: str
    """Required digest of the plan, or its first characters; empty if none is required."""
    problems: tuple[Problem, ...]
    """Mistakes in files and exceeded limits that made the preview fail."""
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...]
    """Messages of the program, such as prices of reservations."""
    jobs: tuple[JobChange, ...]
    models: tuple[Change, ...] = _part(serving.version_changes)
    endpoints: tuple[Change, ...] = _part(serving.endpoint_changes)
    snapshots: tuple[Change, ...] = _part(expenses.snapshot_changes)
    schedules: tuple[Change, ...] = _part(expenses.schedule_changes)
    watching: tuple[Change, ...] = _part(guards.watch_changes)
    reservations: tuple[Change, ...] = _part(expenses.reservation_changes)
    gained: tuple[IamBinding, ...] = _part(grants.gained)
    lost: tuple[IamBinding, ...] = _part(grants.lost)
    kept: tuple[IamBinding, ...] = _part(grants.kept)
    """Grants that leave the stack and stay in the cloud."""
    access_gained: tuple[Access, ...]
    """New access of members to data, direct or through a service account."""
    access_lost: tuple[Access, ...]
    unjudged: tuple[str, ...] = _part(reachability.unjudged_types)
    """Types of changed resources with unknown effects on access."""
    reachability: tuple[Change, ...] = _part(reachability.reachability_changes)
    risks: Mapping[RiskKind, tuple[Any, ...]]
    levels: Mapping[str, str]
    """Configured levels of policies by name; other policies are mandatory."""
    protected: tuple[str, ...] = _part(destroyed.protected)
    folders: tuple[Change, ...] = _part(destroyed.folder_changes)
    """Folders with several changed objects, which ``changes`` omits."""
    destroyed: tuple[Change, ...] = _part(destroyed.destroyed)
    violations: tuple[PolicyViolation, ...] = _part(lambda plan: dict.fromkeys(plan.violations))
    packs: tuple[str, ...] = _part(lambda plan: sorted(plan.packs))
    policies: int
    changes: tuple[Change, ...]
    """Changes that only the section "Other changes" shows."""
    unchanged: int
    is_first: bool
    """True if no resource of the stack is deployed; always False for an offline preview."""
    created: tuple[str, ...] = _part(
        lambda plan: sorted(e.type for e in plan.changed if e.op == "create")
    )
    not_observed: str
    """Reason why existing jobs were not observed; empty if all jobs were observed."""
    held: tuple[IamBinding, ...] = _part(grants.held)
    """All grants after the change, for the graph."""
    unseen_images: tuple[str, ...] = ()
    """Images of submitted jobs that were not read from their registry, with reasons."""
    origins: Mapping[str, str] = field(default_factory=dict)
    preflight: str = ""

    @property
    def is_offline(self) -> bool:
        """Return True if the preview ignored the state, so that all resources look new."""
        return self.source.startswith(OFFLINE)

    @property
    def images(self) -> tuple[Change, ...]:
        """Return the images of jobs, schedules and models whose digest changes."""
        pairs = [
            (difference.old, difference.new, job.name)
            for job in (*self.jobs, *self.schedules)
            for difference in job.differences
            if _IMAGE_PATH.match(difference.path)
        ]
        pairs += [(v.image_before, v.image, serving.version_title(v)) for v in self.models]
        return _image_uses((old, new, name) for old, new, name in pairs if old and new)

    @property
    def other_images(self) -> tuple[Change, ...]:
        """Return the other images from Artifact Registry in use."""
        changed = {change.uri for change in self.images}
        jobs = (*self.jobs, *self.schedules)
        used = [(uri, job.name, job.action) for job in jobs for uri in job.images]
        used += [(v.image, serving.version_title(v), v.action) for v in self.models]
        gone = ("cancel", "forget", "end", "delete", "leave")
        return _image_uses(
            ("", uri, name)
            for uri, name, action in used
            if action not in gone and uri not in changed and _PINNED.match(uri)
        )

    @property
    def new_images(self) -> list[tuple[str, str]]:
        """Return each image that the plan starts to use, with its job or model version."""
        later = [schedule for schedule in self.schedules if schedule.action in ("begin", "change")]
        used = [(uri, job.name) for job in (*self.submitted, *later) for uri in job.images]
        uploads = [model for model in self.models if model.action in ("upload", "replace")]
        return used + [(model.image, serving.version_title(model)) for model in uploads]

    def origin(self, image: Change) -> str:
        """Return the commit and the folder of an image's sources."""
        return self.origins.get(image.uri, NOT_CHECKED)

    @property
    def submitted(self) -> tuple[JobChange, ...]:
        """Return the jobs that the plan submits to a service."""
        return tuple(job for job in self.jobs if job.submits)

    @property
    def worst_case(self) -> float:
        """Return the maximum cost of all submitted jobs with a price, in USD."""
        return math.fsum(job.cost.worst_case or 0 for job in self.submitted)

    @property
    def unpriced(self) -> tuple[JobChange, ...]:
        """Return the submitted jobs without a price."""
        return tuple(job for job in self.submitted if job.cost.worst_case is None)

    @property
    def forbidding(self) -> tuple[PolicyViolation, ...]:
        """Return the policy violations that forbid a deployment."""
        return tuple(violation for violation in self.violations if violation.is_mandatory)

    @property
    def risky(self) -> bool:
        """Return True if the plan adds access, destroys resources or has another risk."""
        opened = any(change.verb != "closes" for change in self.reachability)
        named = any(findings for kind, findings in self.risks.items() if kind.headline)
        return bool(self.gained or self.destroyed or named or opened)

    @property
    def nothing(self) -> bool:
        """Return True if the plan changes nothing."""
        parts = (*self.risks.values(), self.gained, self.lost, self.kept, self.reachability)
        more = (self.destroyed, self.changes, self.folders, self.watching)
        kinds = (*self.jobs, *self.models, *self.endpoints, *self.snapshots, *self.schedules)
        return not any(parts + more) and all(kind.action == "keep" for kind in kinds)


def build(
    plan: Plan,
    *,
    source: str,
    expected: str = "",
    problems: Iterable[Problem] = (),
    observed: Observations = NOTHING_OBSERVED,
) -> ReviewReport:
    """Return the report of a plan. ``expected`` is the approved digest or its first characters.

    ``problems`` are mistakes in the files, if the preview failed. ``observed`` does not affect the
    digest of the plan.
    """
    is_offline = source.startswith(OFFLINE)
    digest, refused = plan_digest(plan), destroyed.refused_losses(plan)
    problems = (*problems, *map(destroyed.loss_problem, refused))
    access_gained, access_lost = grants.access_changes(plan)
    parts: dict[str, Any] = {
        attribute.name: tuple(attribute.metadata[FINDER](plan))
        for attribute in dataclasses.fields(ReviewReport)
        if FINDER in attribute.metadata
    }
    for schedule in parts["schedules"]:
        schedule.dropped = observed.dropped.get(schedule.name, ())
    grouped = {name for folder in parts["folders"] for name in folder.names}
    # Explain errors of a refresh that could not read a resource.
    errors = tuple(
        dataclasses.replace(error, message="\n".join(explained((error.message,))))
        for error in plan.errors
    )
    return ReviewReport(
        **parts,
        stack=plan.stack,
        project=plan.config.get("gcp:project", ""),
        region=plan.config.get("gcp:region", ""),
        source=source,
        outcome=_outcome(plan, problems, bool(expected) and not digest.startswith(expected)),
        digest=digest,
        expected=expected,
        problems=problems,
        errors=() if problems else errors,
        warnings=(
            *plan.warnings,
            *destroyed.unknown_first_names(plan),
            *destroyed.needless_acceptances(plan),
        ),
        notes=tuple(d for d in plan.diagnostics if d.severity == "info"),
        jobs=tuple(jobs.job_changes(plan, observed)),
        not_observed=observed.not_observed,
        access_gained=access_gained,
        access_lost=access_lost,
        policies=len(plan.policies | {violation.policy for violation in plan.violations}),
        risks={kind: kind(plan) for kind in RISKS},
        levels=guards.policy_levels(plan),
        changes=_other_changes(plan, grouped),
        is_first=plan.succeeded and not is_offline and not any(step.old for step in plan.steps),
        unchanged=sum(step.custom and not step.changes for step in plan.steps),
    )


def _other_changes(plan: Plan, grouped: set[str]) -> tuple[Change, ...]:
    """Return the changes without another section.

    ``paths`` are properties that the provider reports as different, although the inputs are equal.
    """
    changes = list[Change]()
    for step, old, new in plan.inputs_of():
        if not _is_in_other_section(step) and step.name not in grouped:
            fields = diff_fields(old, new)
            op, paths = "forget" if destroyed.stays(step) else step.op, () if fields else step.paths
            change = Change(op=op, name=step.name, type=step.type, differences=fields, paths=paths)
            changes.append(change)
    return tuple(sorted(changes, key=lambda change: (change.op, change.name)))


def with_problems(report: ReviewReport, problems: Sequence[Problem]) -> ReviewReport:
    """Return the report with additional problems that forbid a deployment."""
    worse = problems and report.outcome in (ReviewOutcome.CLEAN, ReviewOutcome.DIFFERENT)
    return dataclasses.replace(
        report,
        outcome=ReviewOutcome.FAILED if worse else report.outcome,
        problems=(*report.problems, *problems),
    )


def _outcome(plan: Plan, problems: Sequence[Problem], different: bool) -> ReviewOutcome:
    if any(violation.is_mandatory for violation in plan.violations) or destroyed.refused_losses(
        plan
    ):
        return ReviewOutcome.FORBIDDEN
    if problems and all(problem.rule.startswith("limit-") for problem in problems):
        return ReviewOutcome.OVER_LIMIT
    if not plan.succeeded or problems:
        return ReviewOutcome.FAILED
    return ReviewOutcome.DIFFERENT if different else ReviewOutcome.CLEAN


def _is_in_other_section(step: Step) -> bool:
    return (
        step.type in (*WITH_REQUEST, *serving.TYPES, SNAPSHOT)
        or (step.type in guards.WATCHING and step.op == "create")
        or grants.grants_alone(step)
        or reachability.is_network(step)
        or (step.op in destroyed.DELETIONS and not destroyed.stays(step))
    )


def plan_digest(plan: Plan) -> str:
    """Return a SHA-256 of the effects of the plan, as 64 hex digits.

    Equal plans have equal digests on all machines and at all times. The digest covers the stack,
    inputs and protection of changed resources, limits, exceptions of drift, levels of rules,
    results and levels of policies, and the success of the preview. It does not cover prices,
    warnings, durations, local paths and the content of secrets.
    """
    raised = [(limit.name, limit.old, limit.new) for limit in guards.raised_limits(plan)]
    content = {
        "stack": plan.stack,
        "steps": [
            {
                "op": step.op,
                "urn": step.urn,
                "old": step.old and _state(step, step.old),
                "new": step.new and _state(step, step.new),
                "paths": sorted(step.paths),
            }
            for step in sorted(plan.changed, key=lambda step: step.urn)
        ],
        # Protection may change without another change of the resource.
        "protection": sorted(
            (step.urn, step.old.protect, step.new.protect)
            for step in plan.steps
            if step.custom and step.old and step.new and step.old.protect != step.new.protect
        ),
        "limits": [guards.limits_of(plan), raised],
        # The text of a message does not change the digest.
        "policies": {
            "packs": sorted(plan.packs),
            "checked": sorted(plan.policies),
            "levels": guards.policy_levels(plan),
            "found": sorted((e.policy, e.level, e.urn) for e in plan.violations),
        },
        "guards": {name: plan.section(name) for name in guards.SECTIONS},
        "succeeded": plan.succeeded,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _state(step: Step, state: ResourceState) -> dict[str, object]:
    known = (
        {RESOLVED} if step.type == SNAPSHOT else set[str]()
    )  # Source tables may grow after the approval.
    inputs = {key: value for key, value in state.inputs.items() if key not in known}
    return {"inputs": inputs, "protect": state.protect}
