"""Data that a plan loses, or no longer keeps from being lost, without destroying its resource.

The report lists what is destroyed. Here is what it would not show: a shorter time to restore, a
lifecycle rule that deletes, a clean-up that takes images; other keys, reads that are paid for; and
changes that Google refuses half-way, or that change nothing, which only old and new together show.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog.resource_types import (
    ATTACHMENT,
    BUCKET,
    MODEL_VERSION,
    REPOSITORY,
    RESERVATION,
    SUBNET,
)
from vertex_training.images import cleanup
from vertex_training.plan.access import VERBS
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review import grants
from vertex_training_cli.review.jobs import request
from vertex_training_cli.review.parts import (
    COSTS,
    LOST,
    Finding,
    Quote,
    RiskKind,
    first,
    simple_risk,
)

Inputs = Mapping[str, Any]
DAY: Final = 24 * 3600
#: Stands for what no rule limits.
UNLIMITED: Final = float("inf")
#: Conditions of a lifecycle rule that hold for noncurrent versions only:
#: https://docs.cloud.google.com/storage/docs/lifecycle#conditions
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")
#: Types of what names images: jobs, schedules of jobs, versions of models.
_WITH_IMAGES: Final = WITH_REQUEST | {MODEL_VERSION}
#: Inputs with the key that encrypts a resource.
KEYS: Final = ("kmsKeyName", "defaultKmsKeyName")
#: USD a GB read of each class; none for STANDARD, which has no retrieval fee:
#: https://cloud.google.com/storage/pricing#retrieval-pricing
RETRIEVAL: Final = {"NEARLINE": 0.01, "COLDLINE": 0.02, "ARCHIVE": 0.05}


@dataclass(frozen=True, slots=True, order=True)
class DataLoss(Finding):
    """What kept data, and keeps it less from now on."""

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
        before, after = (cleanup.parse(_policies(each.inputs)) for each in (step.old, step.new))
        for package, digest in cleanup.endangered(before, after, sorted(named)):
            name = f"{package}@{digest[: len('sha256:') + 12]}"
            yield DataLoss(step.name, f"clean-up of {name}, which is in use", "kept", "not kept")


def _policies(inputs: Inputs) -> object:
    return [] if inputs.get("cleanupPolicyDryRun") is True else inputs.get("cleanupPolicies")


def retention_locks(plan: Plan) -> tuple[Finding, ...]:
    """Locks that are new, and locked retentions that grow: nothing ever shortens one."""
    found = list[Finding]()
    for step in plan.changed:
        if step.type != BUCKET or step.new is None or not has_locked_retention(step.new.inputs):
            continue
        before = step.old.inputs if step.old and has_locked_retention(step.old.inputs) else {}
        if (days := retention_days(step.new.inputs)) > retention_days(before):
            found.append(Finding(step.name, new=days))
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


def key_changes(plan: Plan) -> tuple[Finding, ...]:
    """Keys of Cloud KMS that no longer encrypt new data of resources that stay.

    ``new`` encrypts it instead, a key of Google's if it is empty.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for step in plan.changed:
        if step.old and step.new:
            old, new = (set(_keys(step.type, state.inputs)) for state in (step.old, step.new))
            for key in old - new:
                found.setdefault((key, min(new - old, default="")), []).append(step.name)
    return tuple(Finding("", tuple(sorted(found[key])), *key) for key in sorted(found))


def _keys(type_: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Keys that are named at any depth of a resource's inputs."""
    yield from _named(request(inputs) if type_ in WITH_REQUEST else inputs)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (str(value[key]) for key in KEYS if value.get(key))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _named(each)


def cold_buckets(plan: Plan) -> tuple[Finding, ...]:
    """Buckets of which reads cost more than before, and that accounts or people read."""
    reads = {each.target for each in grants.held(plan) if each.role in VERBS}
    found = [
        Finding(
            step.name,
            old=_class(step.old.inputs) if step.old else "",
            new=_class(step.new.inputs),
        )
        for step in plan.changed
        if step.type == BUCKET and step.new and str(step.new.inputs.get("name")) in reads
    ]
    return tuple(sorted(e for e in found if _fee(e.new) > _fee(e.old)))


def _class(inputs: Mapping[str, Any]) -> str:
    return str(inputs.get("storageClass") or "STANDARD").upper()


def _fee(storage_class: str) -> float:
    return RETRIEVAL.get(storage_class, 0.0)


def refusals(plan: Plan, now: datetime) -> tuple[Finding, ...]:
    """Changes that Google refuses half-way, or that have no effect, with what to do instead."""
    found = [each for step in plan.steps if step.type == RESERVATION for each in _end(step, now)]
    found += [each for step in plan.changed if step.type == BUCKET for each in _locked(step)]
    stays = (s for s in plan.steps if s.type == ATTACHMENT and s.old and s.op != "replace")
    if any(step.new for step in stays):
        subnets = (step for step in plan.changed if step.type == SUBNET)
        found += [each for step in subnets for each in _moved(step)]
    return tuple(sorted(found))


def _end(step: Step, now: datetime) -> Iterator[Finding]:
    """An end that the stack file says no longer: Google keeps it, and the plugin sends nothing."""
    if step.old is None or step.new is None or step.op == "replace":
        return
    if step.new.inputs.get("deleteAtTime") or step.new.inputs.get("deleteAfterDuration"):
        return
    ends = _time(step.old.outputs.get("deleteAtTime") or step.old.inputs.get("deleteAtTime"))
    if ends and ends > now:
        yield Finding(
            str(step.new.inputs.get("name") or step.name),
            f"is still deleted by Google at {ends.isoformat()}: to take the end out of the stack "
            "file changes nothing. A later deleteAtTime makes it anew; without an end, `pulumi up "
            "--replace` with its URN does. Both give its machines back first",
        )


def _locked(step: Step) -> Iterator[Finding]:
    """A locked retention that would be shorter, or gone; or its bucket, which has objects."""
    if step.old is None or not has_locked_retention(step.old.inputs):
        return
    before = retention_days(step.old.inputs)
    after = retention_days(step.new.inputs) if step.new else 0
    locked = step.new is not None and has_locked_retention(step.new.inputs)
    if not locked or after < before:
        yield Finding(
            str(step.old.inputs.get("name") or step.name),
            f"has a locked retention of {before:g} days, and Google shortens and removes none: no "
            f"object can be deleted before it is {before:g} days old, and the bucket only without "
            "objects. Put the retention back into the stack file",
        )
    elif step.op == "replace":
        yield Finding(
            str(step.old.inputs.get("name") or step.name),
            f"is made anew, and its retention of {before:g} days is locked: Google deletes the "
            "bucket only without objects. Put back what makes it anew, or give the new bucket "
            "another key in the stack file",
        )


def _moved(step: Step) -> Iterator[Finding]:
    """Other addresses for the subnet of an attachment that stays: it cannot be deleted in use."""
    if step.old is None or step.new is None:
        return
    old, new = _block(step.old.inputs), _block(step.new.inputs)
    if old is None or new is None or old.subnet_of(new):
        return
    yield Finding(
        str(step.new.inputs.get("name") or step.name),
        f"{old} → {new} makes the subnet anew, and Google refuses to delete it while its network "
        "attachment uses it: the deployment would stop there. Deploy twice: without the section "
        "network, and without it in the job files; then with the new range. A range that contains "
        "the old one is changed in place",
    )


def _block(inputs: Inputs) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(str(inputs.get("ipCidrRange")))
    except ValueError:
        return None


def _time(text: object) -> datetime | None:
    """A time as the API spells it; None if it is none."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _change(each: Finding, quote: Quote) -> str:
    short = [key.rpartition("/")[2] for key in (each.old, each.new)]
    old, new = (each.old, each.new) if short[0] == short[1] else short
    changed = f"{quote(old)} → {quote(new)}" if each.new else quote(old)
    return f"{changed} ({first([quote(name) for name in each.what])})"


def _cold(each: Finding, quote: Quote) -> str:
    before = f"{quote(each.old)} → " if each.old else ""
    return f"{quote(each.name)} ({before}{quote(each.new)}, ${_fee(each.new):.2f} a GB)"


LOSSES: Final = RiskKind(
    lambda plan: [each for each in data_losses(plan) if not each.put_back],
    "{name} ({what!s}: {old!s} → {new!s})",
    key="dataLosses",
    headline="data is lost",
    question=LOST,
    in_list="data of {name}, {what!s}: {old!s} → {new!s}",
)
PUT_BACK: Final = RiskKind(
    lambda plan: [each for each in data_losses(plan) if each.put_back],
    "{name} ({what!s}: {old!s} → {new!s})",
    key="putBack",
    headline="back as deployed",
    question=LOST,
    answer="back as deployed: {}",
    danger="opens",
)
LOCKS: Final = simple_risk(
    retention_locks,
    "{name} (nothing in it can be deleted for {new:g} days; never undone)",
    "locks",
    "locked for good",
    LOST,
    "destroys",
    "name days=new",
)
REFUSALS: Final = RiskKind(
    lambda plan: refusals(plan, datetime.now(tz=UTC)),
    "{name}",
    key="refusals",
    headline="not possible like this",
    in_list="not possible like this: {name} {what!s}",
    fields="name what",
)
UNENCRYPTED: Final = simple_risk(
    lambda plan: [each for each in key_changes(plan) if not each.new],
    _change,
    "keysGone",
    "no longer encrypted with your key",
    LOST,
    "destroys",
    "old new names=what",
)
OTHER_KEY: Final = simple_risk(
    lambda plan: [each for each in key_changes(plan) if each.new],
    _change,
    "keysChanged",
    "encrypted with another key",
    fields="old new names=what",
)
COLD: Final = simple_risk(
    cold_buckets, _cold, "coldBuckets", "reads are paid for", COSTS, fields="name old new"
)
