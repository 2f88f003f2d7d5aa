"""Destroyed resources of a plan, removed protection, changed folders, and renamed entries.

A folder in the stack file is a resource for each file, and has one line in a report.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import OBJECT
from vertex_training.errors import Problem
from vertex_training.plan.packages import prefix_of
from vertex_training_cli.engine.plan import WITH_REQUEST, Diagnostic, Plan, Step
from vertex_training_cli.engine.values import as_mapping, diff_fields
from vertex_training_cli.review import grants, jobs, serving
from vertex_training_cli.review.parts import Change, Finding

#: Steps that delete the resource.
DELETIONS: Final = ("delete", "delete-replaced")
#: Prefix of the names of resources of buckets.
PREFIX: Final = "storage-"
#: Templates of the resource names of a job and of its schedule.
_OF_JOBS: Final = ("training-{}", "training-{}-schedule")
#: Section of the stack file -> templates of the resource name of an entry.
RESOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "buckets": ("storage-{}",),
    "secrets": ("secrets-{}",),
    "serviceAccounts": ("{}-account",),
    "reservations": ("capacity-{}",),
    "jobs": _OF_JOBS,
    "tuning": _OF_JOBS,
}
#: Maximum number of compared pairs of resources, because a plan may have any number of steps.
COMPARED: Final = 10_000
#: Sections with data, whose stack outputs have the deployed name of each key.
OUTPUTS: Final = ("buckets", "secrets")
#: Resource of the section ``registry``, whose output is a text.
REGISTRY: Final = "registry-docker"
#: Rule id of the problem for a lost resource without an entry in ``acceptedLosses``.
ACCEPTED_LOSS: Final = "accepted-loss"


def destroyed(plan: Plan) -> tuple[Change, ...]:
    """Return destroyed resources, except for grants, jobs and folders, which other parts report.

    ``takes`` is data of users that is lost with the resource; empty without data. ``refused`` is
    True if the resource is protected, so that the preview fails. ``is_loss`` is True if the plan
    deletes the only copy of data. ``fate`` is the effect of the plan, and ``end`` the effect on a
    resource that loses its data.
    """
    grouped = {name for folder in folder_changes(plan) for name in folder.names}
    changes = list[Change]()
    for step in plan.changed:
        if step.name in grouped or not _is_destructive(step):
            continue
        row, replaced = resource_types.find(step.type), step.op == "replace"
        refused = step.is_protected
        fate = "destroyed and recreated" if replaced else "destroyed"
        would_be = f"would be {fate}, but is protected, so the deployment is refused"
        change = Change(
            name=step.name,
            type=step.type,
            replaced=replaced,
            takes=row.holds,
            refused=refused,
            is_loss=bool(row.holds) and not (refused or row.copy),
            fate=would_be if refused else fate,
            end="recreated without data" if replaced else "destroyed",
        )
        changes.append(change)
    return tuple(sorted(changes, key=lambda change: (not change.takes, change.name)))


def _is_destructive(step: Step) -> bool:
    own = step.type in (*WITH_REQUEST, *serving.TYPES, resource_types.SNAPSHOT)
    if own or grants.grants_alone(step):
        return False
    if step.op == "replace":
        # Replacing an object only uploads new content.
        return step.type != OBJECT
    return step.op in DELETIONS and not stays(step)


def stays(step: Step) -> bool:
    """Return True if the plan deletes the resource only from the state, not from the cloud."""
    if step.op not in DELETIONS:
        return False
    if step.old is not None and step.old.retained:
        return True
    needed = resource_types.find(step.type).stays
    return needed is not None and all(step.inputs.get(key) == needed[key] for key in needed)


def recreated_empty(plan: Plan) -> list[Finding]:
    """Return resources with data that were deleted in the cloud, and commands that restore them.

    If an earlier refresh detected the deletion, only the outputs of the stack name the resource.
    """
    findings = list[Finding]()
    deployed = set(_deployed_names(plan).values())
    for step in plan.steps:
        row = resource_types.find(step.type)
        if step.op != "create" or not row.holds or row.copy or step.new is None:
            continue
        if step.deployed or row.output_of(step.inputs) in deployed:
            protected = step.new.protect or bool(step.deployed and step.deployed.protect)
            findings.append(Finding(step.name, row.restoration(step.inputs), also=protected))
    return sorted(findings)


def refused_losses(plan: Plan) -> tuple[Finding, ...]:
    """Return protected resources that would be recreated empty without an accepted loss."""
    accepted = accepted_losses(plan)
    return tuple(
        finding
        for finding in recreated_empty(plan)
        if finding.also and finding.name not in accepted
    )


def accepted_losses(plan: Plan) -> Mapping[str, str]:
    """Return the reasons in ``acceptedLosses`` by resource name."""
    return as_mapping(plan.section("drift").get("acceptedLosses"))


def needless_acceptances(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return warnings about ``acceptedLosses`` of existing resources, which accept a later loss."""
    existing = {step.name for step in plan.steps if step.custom and step.old is not None}
    return tuple(
        Diagnostic(
            "warning",
            f"drift.acceptedLosses: {name} exists. Remove the entry: it would accept a later loss.",
        )
        for name in sorted(accepted_losses(plan))
        if name in existing
    )


def loss_problem(loss: Finding) -> Problem:
    """Return the problem of a lost resource, with two ways to proceed."""
    restore = loss.what or "restore the resource"
    hint = f"{restore}. If data is lost, add the resource to drift.acceptedLosses in the stack file"
    what = "a protected resource was deleted in the cloud and would be recreated without data"
    return Problem(what, loss.name, hint, rule=ACCEPTED_LOSS)


def unprotected(plan: Plan) -> list[Finding]:
    """Return resources that the plan keeps without their protection."""
    both = (step for step in plan.steps if step.custom and step.old and step.new)
    return sorted(
        Finding(s.name) for s in both if s.old and s.old.protect and s.new and not s.new.protect
    )


def protected(plan: Plan) -> tuple[str, ...]:
    """Return the names of resources that Pulumi refuses to destroy after the deployment."""
    return tuple(sorted(s.name for s in plan.steps if s.custom and s.new and s.new.protect))


def folder_changes(plan: Plan) -> tuple[Change, ...]:
    """Return folders with several changed objects, as ``BUCKET/PREFIX`` with the bucket's key.

    ``added``, ``changed`` and ``removed`` are resource names, and ``names`` are all of these.
    ``counts`` is a text like ``3 added, 1 changed, 2 removed``.
    """
    folders = dict[str, dict[str, list[str]]]()
    prefixes = [
        f"{key}/{prefix_of(str(name))}".rstrip("/")
        for key, bucket in plan.section("buckets").items()
        for name in as_mapping(bucket).get("objects") or ()
    ]
    prefixes.sort(reverse=True)  # Longer prefixes of the same folder come first.
    for step in plan.changed:
        if step.type == OBJECT and step.name.startswith(PREFIX):
            path = step.name.removeprefix(PREFIX)
            # Guess a folder that the stack file does not have any more.
            guess = "/".join(path.split("/")[: 2 if path.count("/") > 1 else 1])
            name = next((prefix for prefix in prefixes if path.startswith(f"{prefix}/")), guess)
            objects = folders.setdefault(name, {"added": [], "changed": [], "removed": []})
            kind = {"create": "added", "delete": "removed"}.get(step.op, "changed")
            objects[kind].append(step.name)
    changes = list[Change]()
    for name, objects in sorted(folders.items()):
        names = set[str]().union(*objects.values())
        if len(names) >= 2:
            counts = ", ".join(
                f"{len(listed)} {kind}" for kind, listed in objects.items() if listed
            )
            changes.append(Change(name=name, **objects, names=names, counts=counts))
    return tuple(changes)


def renames(plan: Plan) -> list[Finding]:
    """Return created entries that differ from deleted entries only by their names."""
    gone = {step.name: step for step in plan.changed if step.op == "delete"}
    created = {step.name: step for step in plan.changed if step.op == "create"}
    pairs = (
        (
            Finding(section, f"formerly: {old}", old, key, f"{section}.{key}"),
            gone[template.format(old)],
            new,
        )
        for section, templates in RESOURCES.items()
        for template in templates
        for olds in (_keys_of(template, gone),)
        for key in sorted(plan.section(section))
        if (new := created.get(template.format(key)))
        for old in olds
    )
    some = itertools.islice(pairs, COMPARED)
    return [
        renaming
        for renaming, old, new in some
        if _differ_by_name(old, new, renaming.old, renaming.new)
    ]


def _keys_of(template: str, steps: Mapping[str, Step]) -> list[str]:
    before, after = template.split("{}")
    names = (n for n in sorted(steps) if n.startswith(before) and n.endswith(after))
    return [name[len(before) : len(name) - len(after)] for name in names]


def _differ_by_name(old: Step, new: Step, before: str, after: str) -> bool:
    """Return True if the resources are equal, except for the key of the entry."""
    if old.type != new.type or old.old is None or new.new is None:
        return False
    if old.type in WITH_REQUEST:
        both = Step("replace", new.urn, new.type, old.old, new.new)
        calendars = (as_mapping(s.inputs.get("schedule")) for s in (old.old, new.new))
        differences = [*jobs.differences(both), *diff_fields(*calendars)]
    else:
        differences = diff_fields(old.old.inputs, new.new.inputs)
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(before)}(?![A-Za-z0-9])")
    return all(
        word.sub(after, difference.old or "") == difference.new for difference in differences
    )


def _deployed_names(plan: Plan) -> dict[str, str]:
    names = {
        template.format(key): str(deployed)
        for section in OUTPUTS
        for template in RESOURCES[section]
        for key, deployed in as_mapping(plan.deployed_outputs.get(section)).items()
    }
    if isinstance(registry := plan.deployed_outputs.get("registry"), str):
        names[REGISTRY] = registry
    return names


def substitutes(plan: Plan) -> Iterator[Finding]:
    """Yield new, empty resources in place of deployed resources of the same entry."""
    before = _deployed_names(plan)
    for step in plan.changed:
        if step.op != "create" or step.name not in before:
            continue
        old, new = before[step.name], resource_types.find(step.type).output_of(step.inputs)
        if old != new:
            # A repository may be in another project.
            short = old if step.name == REGISTRY else old.rpartition("/")[2]
            yield Finding(step.name, old=short, new=new)


def unknown_first_names(plan: Plan) -> tuple[Diagnostic, ...]:
    """Return warnings about each ``formerly`` that matches no deployed resource."""
    created = {step.name for step in plan.steps if step.op == "create"}
    if not any(step.old is not None for step in plan.steps if step.custom):
        return ()
    return tuple(
        Diagnostic(
            "warning",
            f"{section}.{key}: `formerly: {former}` matches no deployed resource: a new resource "
            "is created. Correct or remove `formerly`, and check the destroyed resources below.",
        )
        for section, templates in RESOURCES.items()
        for key, entry in plan.section(section).items()
        if isinstance(former := as_mapping(entry).get("formerly"), str)
        and any(template.format(former) in created for template in templates)
    )
