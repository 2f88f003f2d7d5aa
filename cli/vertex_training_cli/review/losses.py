"""Risks to data of kept resources: retention, clean-ups, encryption keys and retrieval fees.

The module also finds changes that Google refuses or ignores. Inputs that only need a comparison are
``watched`` in ``resource_types.yaml``.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import (
    ATTACHMENT,
    BUCKET,
    MODEL_VERSION,
    REPOSITORY,
    RESERVATION,
    SUBNET,
    as_number,
    value_at,
)
from vertex_training.images import cleanup
from vertex_training.plan.access import VERBS
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review import grants
from vertex_training_cli.review.jobs import request
from vertex_training_cli.review.parts import Finding, Quote

Inputs = Mapping[str, Any]
DAY: Final = 24 * 3600
#: Amount without a limit.
UNLIMITED: Final = float("inf")
#: Conditions of a lifecycle rule that only noncurrent versions can satisfy:
#: https://docs.cloud.google.com/storage/docs/lifecycle#conditions
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")
#: Input of a bucket that locks its retention.
_LOCK: Final = "retentionPolicy.isLocked"
#: Retrieval fee of each class in USD a GB. STANDARD has none:
#: https://cloud.google.com/storage/pricing#retrieval-pricing
RETRIEVAL: Final = {"NEARLINE": 0.01, "COLDLINE": 0.02, "ARCHIVE": 0.05}


def kept_less(plan: Plan) -> list[Finding]:
    """Return resources that keep data for less time, except destroyed and unprotected resources.

    ``also`` is True if the plan reduces a retention only to undo a manual change.
    """
    return sorted([*_shorter_retentions(plan), *_pinned_images(plan)])


def _shorter_retentions(plan: Plan) -> Iterator[Finding]:
    for step in plan.changed:
        if step.old is None or step.new is None or step.op == "replace":
            continue
        rows = resource_types.find(step.type).watched
        measures = [(e.words, e.amount, e.shown) for e in rows if e.of == "data"]
        for words, amount, shown in (*measures, *_COMPUTED.get(step.type, ())):
            old, new = amount(step.old.inputs), amount(step.new.inputs)
            deployed = amount(step.deployed.inputs) if step.deployed else math.nan
            # If a user changed the amount by hand, compare with the deployed amount.
            before = deployed if deployed > new else old
            if new < before:
                yield Finding(step.name, words, shown(before), shown(new), deployed <= new)


def _pinned_images(plan: Plan) -> Iterator[Finding]:
    users = [
        step.new.inputs
        for step in plan.steps
        if step.type in {*WITH_REQUEST, MODEL_VERSION} and step.new
    ]
    text = json.dumps(users, default=str)
    for step, old, new in plan.inputs_of(REPOSITORY):
        if step.old is None or step.new is None:
            continue
        parts = (f"{new.get('location')}-docker.pkg.dev", new.get("project"))
        prefix = re.escape("/".join(map(str, (*parts, new.get("repositoryId")))))
        named = set(re.findall(rf"{prefix}/([a-z0-9._/-]{{1,200}})@(sha256:[0-9a-f]{{64}})", text))
        before, after = (cleanup.parse(_policies(inputs)) for inputs in (old, new))
        for package, digest in cleanup.endangered(before, after, sorted(named)):
            name = f"{package}@{digest[: len('sha256:') + 12]}"
            what = f"image {name}, in use by the stack"
            yield Finding(step.name, what, "kept", "not kept", also=False)


def _policies(inputs: Inputs) -> object:
    return [] if inputs.get("cleanupPolicyDryRun") is True else inputs.get("cleanupPolicies")


def retention_locks(step: Step, old: Inputs, new: Inputs) -> Iterator[Finding]:
    """Yield retentions that the plan locks permanently, or prolongs while they are locked."""
    if (days := _locked_days(new)) > _locked_days(old):
        yield Finding(step.name, new=days)


def _locked_days(inputs: Inputs) -> float:
    days = as_number(value_at(inputs, "retentionPolicy.retentionPeriod")) / DAY
    return days if value_at(inputs, _LOCK) is True else 0


def _deletions(inputs: Inputs, states: tuple[str, ...]) -> Iterator[Inputs]:
    for rule in _objects(inputs.get("lifecycleRules")):
        condition = as_mapping(rule.get("condition"))
        deletes = as_mapping(rule.get("action")).get("type") == "Delete"
        if deletes and (condition.get("withState") or "ANY") in states:
            yield condition


def _live_objects(inputs: Inputs) -> float:
    rules = _deletions(inputs, ("LIVE", "ANY"))
    days = (as_number(rule.get("age")) for rule in rules if not any(map(rule.get, NONCURRENT)))
    return min(days, default=UNLIMITED)


def _old_versions(inputs: Inputs) -> float:
    """Return the days until a rule deletes a noncurrent version; NaN without versioning."""
    if value_at(inputs, "versioning.enabled") is not True:
        return math.nan
    days = (
        as_number(
            rule.get("daysSinceNoncurrentTime")
        )  # `age` counts from the upload of the version
        for rule in _deletions(inputs, ("ARCHIVED", "ANY"))
    )
    return min(days, default=UNLIMITED)


def _clean_ups(inputs: Inputs) -> list[Inputs]:
    return [rule for rule in _objects(_policies(inputs)) if rule.get("action") == "DELETE"]


def _kept_images(inputs: Inputs) -> float:
    if not _clean_ups(inputs):
        return UNLIMITED
    kept = (
        as_number(as_mapping(policy.get("mostRecentVersions")).get("keepCount"))
        for policy in _objects(inputs.get("cleanupPolicies"))
        if policy.get("action") == "KEEP"
    )
    return max(kept, default=0)


def _image_age(inputs: Inputs) -> float:
    days = ((rule.older_than or 0) / DAY for rule in cleanup.parse(_clean_ups(inputs)))
    return min(days, default=UNLIMITED)


def _tagged_images(inputs: Inputs) -> float:
    states = (value_at(policy, "condition.tagState") for policy in _clean_ups(inputs))
    return float(all(state == "UNTAGGED" for state in states))


def _objects(value: object) -> list[Inputs]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _counted(unit: str) -> Callable[[float], str]:
    return lambda amount: "never deleted" if amount == UNLIMITED else f"{amount:g} {unit}"


#: Type -> retentions that depend on several inputs: description, amount, and amount as text.
_COMPUTED: Final[Mapping[str, tuple[tuple[str, Callable[..., float], Callable[..., str]], ...]]] = {
    BUCKET: (
        ("lifetime of old versions", _old_versions, _counted("days")),
        ("lifetime of objects", _live_objects, _counted("days")),
    ),
    REPOSITORY: (
        ("versions kept per image", _kept_images, _counted("versions")),
        ("lifetime of images", _image_age, _counted("days")),
        ("tagged images kept", _tagged_images, lambda kept: "on" if kept else "off"),
    ),
}


def key_changes(plan: Plan) -> list[Finding]:
    """Return encryption keys that the plan replaces, with the names of the resources."""
    by_key: dict[tuple[str, str], list[str]] = {}
    for step in plan.changed:
        if step.old and step.new:
            old, new = (set(_keys(step.type, state.inputs)) for state in (step.old, step.new))
            for key in old - new:
                by_key.setdefault((key, min(new - old, default="")), []).append(step.name)
    findings = list[Finding]()
    for (old, new), names in sorted(by_key.items()):
        before, after = (key.rpartition("/")[2] for key in (old, new))
        before, after = (old, new) if before == after else (before, after)
        findings.append(Finding(before, tuple(sorted(names)), old, new, after))
    return findings


def _keys(type_: str, inputs: Inputs) -> Iterator[str]:
    pending: list[Any] = [request(inputs) if type_ in WITH_REQUEST else inputs]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            yield from (
                str(value[key]) for key in ("kmsKeyName", "defaultKmsKeyName") if value.get(key)
            )
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def cold(finding: Finding, quote: Quote) -> str:
    """Return a bucket with its storage classes and the new retrieval fee, as text."""
    before = f"{quote(finding.old)} → " if finding.old else ""
    return (
        f"{quote(finding.name)} ({before}{quote(finding.new)}, ${RETRIEVAL[finding.new]:.2f} a GB)"
    )


def cold_buckets(plan: Plan) -> list[Finding]:
    """Return buckets that the stack reads and whose retrieval fee rises."""
    reads = {holding.target for holding in grants.held(plan) if holding.role in VERBS}
    findings = [
        Finding(step.name, old=_class(old) if step.old else "", new=_class(new))
        for step, old, new in plan.inputs_of(BUCKET)
        if step.new and str(new.get("name")) in reads
    ]
    return sorted(
        finding
        for finding in findings
        if RETRIEVAL.get(finding.new, 0) > RETRIEVAL.get(finding.old, 0)
    )


def _class(inputs: Inputs) -> str:
    return str(inputs.get("storageClass") or "STANDARD").upper()


def refusals(plan: Plan) -> list[Finding]:
    """Return changes that Google refuses or ignores, with alternatives."""
    findings = list[Finding]()
    has_attachment = any(
        s.type == ATTACHMENT and s.old and s.new and s.op != "replace" for s in plan.steps
    )
    for step in plan.steps:
        if step.type == RESERVATION:
            findings += _end(step)
        elif step.type == BUCKET and step.changes:
            findings += _locked(step)
    for step, old, new in plan.inputs_of(SUBNET) if has_attachment else ():
        findings += _moved(step, old, new)
    return sorted(findings)


def _end(step: Step) -> Iterator[Finding]:
    """Yield reservations that Google will delete at a time that the stack file no longer has."""
    if step.old is None or step.new is None or step.op == "replace":
        return
    if step.new.inputs.get("deleteAtTime") or step.new.inputs.get("deleteAfterDuration"):
        return
    ends = _time(step.old.outputs.get("deleteAtTime") or step.old.inputs.get("deleteAtTime"))
    if ends and ends > datetime.now(tz=UTC):
        yield Finding(
            str(step.new.inputs.get("name") or step.name),
            f"will still be deleted at {ends.isoformat()}: removing the end from the stack file "
            "has no effect. To move the end, set a later deleteAtTime. To remove the end, run "
            "`pulumi up --replace URN`. Both recreate the reservation, and release machines first",
        )


def _locked(step: Step) -> Iterator[Finding]:
    """Yield locked retentions that the plan shortens or removes, or whose bucket it replaces."""
    if step.old is None or value_at(step.old.inputs, _LOCK) is not True:
        return
    name, before = str(step.old.inputs.get("name") or step.name), _locked_days(step.old.inputs)
    after = step.new.inputs if step.new else {}
    if value_at(after, _LOCK) is not True or _locked_days(after) < before:
        yield Finding(
            name,
            f"has a locked retention of {before:g} days, which cannot be shortened or removed: "
            f"objects can be deleted after {before:g} days, and the bucket only without objects. "
            "Restore the retention in the stack file",
        )
    elif step.op == "replace":
        yield Finding(
            name,
            f"would be recreated, but its retention of {before:g} days is locked: Google deletes "
            "the bucket only without objects. Revert the change that recreates the bucket, or give "
            "the new bucket another key in the stack file",
        )


def _moved(step: Step, before: Inputs, after: Inputs) -> Iterator[Finding]:
    old, new = _block(before), _block(after)
    if old is None or new is None or old.subnet_of(new):
        return
    yield Finding(
        str(after.get("name") or step.name),
        f"{old} → {new} recreates the subnet, but Google does not delete a subnet in use by a "
        "network attachment, so the deployment would stop. Deploy twice: first without section "
        "network in the stack file and without network in the job files, then with the new "
        "range. A range that contains the old range is changed in place",
    )


def _block(inputs: Inputs) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(str(inputs.get("ipCidrRange")))
    except ValueError:
        return None


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
