"""Data that a plan loses, or no longer keeps from being lost, without destroying its resource.

The report lists what is destroyed. Here is what it would not show: a shorter time to restore, a
lifecycle rule that deletes, a clean-up that takes images.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET, MODEL_VERSION, REPOSITORY
from vertex_training.images import cleanup
from vertex_training.images.cleanup import ImageVersion
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.risk import LOST, RiskKind, told_alike

Inputs = Mapping[str, Any]
DAY: Final = 24 * 3600
#: Stands for what no rule limits.
UNLIMITED: Final = float("inf")
#: Conditions of a lifecycle rule that hold for noncurrent versions only:
#: https://docs.cloud.google.com/storage/docs/lifecycle#conditions
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")
#: Types of what names images: jobs, schedules of jobs, versions of models.
_WITH_IMAGES: Final = WITH_REQUEST | {MODEL_VERSION}


@dataclass(frozen=True, slots=True, order=True)
class DataLoss:
    """One way in which data is lost, or may be from now on."""

    name: str
    """The resource's name in the program."""
    what: str
    """What kept the data, and keeps it less now."""
    old: str
    new: str
    put_back: bool = False
    """Whether it is as it was deployed, and somebody changed it by hand since."""


@dataclass(frozen=True, slots=True)
class _Safeguard:
    """Something that keeps data: less of it is a loss."""

    what: str
    amount: Callable[[Inputs], float]
    unit: str = ""
    """What is counted; empty for what is on or off."""

    def shown(self, amount: float) -> str:
        if not self.unit:
            return "on" if amount else "off"
        if amount == UNLIMITED:
            return "never deleted"
        return f"{amount:g} {self.unit}"


def data_losses(plan: Plan) -> tuple[DataLoss, ...]:
    """All of a plan, by resource. What is destroyed or loses its protection is reported apart."""
    found = [loss for step in plan.changed for loss in _losses(step)]
    return tuple(sorted([*found, *_pinned_images(plan)]))


def _pinned_images(plan: Plan) -> Iterator[DataLoss]:
    """Images in use that a clean-up takes, or may take, and did not before."""
    users = [step.new.inputs for step in plan.steps if step.type in _WITH_IMAGES and step.new]
    text = json.dumps(users, default=str)
    for step in plan.changed:
        if step.type != REPOSITORY or step.old is None or step.new is None:
            continue
        new = step.new.inputs
        parts = (f"{new.get('location')}-docker.pkg.dev", new.get("project"))
        prefix = re.escape("/".join(map(str, (*parts, new.get("repositoryId")))))
        named = set(re.findall(rf"{prefix}/([a-z0-9._/-]{{1,200}})@(sha256:[0-9a-f]{{64}})", text))
        versions = [ImageVersion(package, digest) for package, digest in sorted(named)]
        before, after = (cleanup.parse(_policies(each.inputs)) for each in (step.old, step.new))
        for lost in cleanup.endangered(before, after, versions):
            name = f"{lost.package}@{lost.digest[: len('sha256:') + 12]}"
            yield DataLoss(step.name, f"clean-up of {name}, which is in use", "kept", "not kept")


def _policies(inputs: Inputs) -> object:
    return [] if inputs.get("cleanupPolicyDryRun") is True else inputs.get("cleanupPolicies")


@dataclass(frozen=True, slots=True, order=True)
class RetentionLock:
    """A retention that a plan locks: nothing ever shortens or removes it."""

    name: str
    """The bucket's name in the program."""
    days: float


def retention_locks(plan: Plan) -> tuple[RetentionLock, ...]:
    """Locks that are new, and locked retentions that grow."""
    found = list[RetentionLock]()
    for step in plan.changed:
        if step.type != BUCKET or step.new is None or not has_locked_retention(step.new.inputs):
            continue
        before = step.old.inputs if step.old and has_locked_retention(step.old.inputs) else {}
        if (days := retention_days(step.new.inputs)) > retention_days(before):
            found.append(RetentionLock(step.name, days))
    return tuple(sorted(found))


def _losses(step: Step) -> Iterator[DataLoss]:
    if step.old is None or step.new is None or step.op == "replace":
        return
    for kept in _SAFEGUARDS.get(step.type, ()):
        old, new = kept.amount(step.old.inputs), kept.amount(step.new.inputs)
        deployed = kept.amount(step.deployed.inputs) if step.deployed else math.nan
        # Where somebody changed it by hand, what was deployed is what was approved.
        before, put_back = deployed if deployed > new else old, deployed <= new
        if new < before:
            yield DataLoss(step.name, kept.what, kept.shown(before), kept.shown(new), put_back)


def _soft_delete(inputs: Inputs) -> float:
    # Without a policy of its own a bucket has Google's, seven days:
    # https://docs.cloud.google.com/storage/docs/soft-delete
    policy = as_mapping(inputs.get("softDeletePolicy"))
    return _number(policy.get("retentionDurationSeconds", 7 * DAY)) / DAY


def _versioning(inputs: Inputs) -> float:
    return float(as_mapping(inputs.get("versioning")).get("enabled") is True)


def retention_days(inputs: Inputs) -> float:
    """Days within which nothing in a bucket can be deleted."""
    return _number(as_mapping(inputs.get("retentionPolicy")).get("retentionPeriod")) / DAY


def has_locked_retention(inputs: Inputs) -> float:
    """1 where a bucket's retention can never be shortened."""
    return float(as_mapping(inputs.get("retentionPolicy")).get("isLocked") is True)


def _deletions(inputs: Inputs, states: tuple[str, ...]) -> Iterator[Inputs]:
    """Conditions of the lifecycle rules that delete objects in one of these states."""
    for rule in _objects(inputs.get("lifecycleRules")):
        condition = as_mapping(rule.get("condition"))
        deletes = as_mapping(rule.get("action")).get("type") == "Delete"
        if deletes and (condition.get("withState") or "ANY") in states:
            yield condition


def _live_objects(inputs: Inputs) -> float:
    """Days until the first lifecycle rule deletes an object that is in use."""
    rules = _deletions(inputs, ("LIVE", "ANY"))
    days = (_number(rule.get("age")) for rule in rules if not any(map(rule.get, NONCURRENT)))
    return min(days, default=UNLIMITED)


def _old_versions(inputs: Inputs) -> float:
    """Days until the first lifecycle rule deletes a version that was overwritten or deleted.

    Without versions there is nothing to compare: not a number, which is less than no other.
    """
    if not _versioning(inputs):
        return math.nan
    days = (
        _number(rule.get("daysSinceNoncurrentTime"))  # `age` counts from when it was written
        for rule in _deletions(inputs, ("ARCHIVED", "ANY"))
    )
    return min(days, default=UNLIMITED)


def _bucket_kept(inputs: Inputs) -> float:
    return float(inputs.get("forceDestroy") is not True)


def _clean_ups(inputs: Inputs) -> list[Inputs]:
    """The clean-up rules of a repository that delete images; none while they are rehearsed."""
    if inputs.get("cleanupPolicyDryRun") is True:
        return []
    policies = _objects(inputs.get("cleanupPolicies"))
    return [policy for policy in policies if policy.get("action") == "DELETE"]


def _kept_images(inputs: Inputs) -> float:
    """Newest versions of each image that no clean-up takes; all where nothing is deleted."""
    if not _clean_ups(inputs):
        return UNLIMITED
    kept = (
        _number(as_mapping(policy.get("mostRecentVersions")).get("keepCount"))
        for policy in _objects(inputs.get("cleanupPolicies"))
        if policy.get("action") == "KEEP"
    )
    return max(kept, default=0)


def _image_age(inputs: Inputs) -> float:
    days = ((each.older_than or 0) / DAY for each in cleanup.parse(_clean_ups(inputs)))
    return min(days, default=UNLIMITED)


def _tagged_images(inputs: Inputs) -> float:
    """0 where a clean-up takes images that have a tag."""
    states = (as_mapping(policy.get("condition")).get("tagState") for policy in _clean_ups(inputs))
    return float(all(state == "UNTAGGED" for state in states))


def _number(value: object) -> float:
    """An input that is a number; 0 while it is not known."""
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - whatever it is, or ValueError
    except (TypeError, ValueError):
        return 0.0


def _objects(value: object) -> list[Inputs]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


_SAFEGUARDS: Final[Mapping[str, tuple[_Safeguard, ...]]] = {
    BUCKET: (
        _Safeguard("deleted objects can be restored for", _soft_delete, "days"),
        _Safeguard("old versions of objects", _versioning),
        _Safeguard("old versions are deleted after", _old_versions, "days"),
        _Safeguard("objects are deleted after", _live_objects, "days"),
        _Safeguard("nothing can be deleted for", retention_days, "days"),
        _Safeguard("lock of the retention", has_locked_retention),
        _Safeguard("refusal to delete a bucket with objects", _bucket_kept),
    ),
    REPOSITORY: (
        _Safeguard("newest versions kept of an image", _kept_images, "versions"),
        _Safeguard("images are deleted after", _image_age, "days"),
        _Safeguard("images with a tag are kept", _tagged_images),
    ),
}
LOSSES: Final = RiskKind(
    lambda plan: [each for each in data_losses(plan) if not each.put_back],
    lambda loss, quote: f"{quote(loss.name)} ({loss.what}: {loss.old} → {loss.new})",
    key="dataLosses",
    headline="data is lost",
    question=LOST,
    line=lambda loss, quote: f"data of {quote(loss.name)}, {loss.what}: {loss.old} → {loss.new}",
)
PUT_BACK: Final = RiskKind(
    lambda plan: [each for each in data_losses(plan) if each.put_back],
    lambda loss, quote: f"{quote(loss.name)} ({loss.what}: {loss.old} → {loss.new})",
    key="putBack",
    headline="back as deployed",
    question=LOST,
    answer="back as deployed: {}",
    danger="opens",
)
LOCKS: Final = told_alike(
    retention_locks,
    lambda lock, quote: (
        f"{quote(lock.name)} (nothing in it can be deleted for {lock.days:g} days; never undone)"
    ),
    "locks",
    "locked for good",
    LOST,
    "destroys",
)
