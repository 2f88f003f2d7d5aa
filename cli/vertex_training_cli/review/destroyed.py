"""Destroyed resources of a plan, removed protection, changed folders, and renamed entries.

A folder in the stack file is a resource for each file. A report has one line for a folder.

A renamed entry keeps its resource by ``formerly``; without the correct ``formerly`` the resource is
recreated. An entry that changes from ``existing`` to a resource of the stack starts empty.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import OBJECT
from vertex_training.errors import Problem
from vertex_training.plan.packages import prefix_of
from vertex_training_cli.engine.plan import WITH_REQUEST, Diagnostic, Plan, Step
from vertex_training_cli.engine.values import as_mapping, diff_fields
from vertex_training_cli.review import grants, jobs, serving
from vertex_training_cli.review.parts import Finding

#: Steps that delete the resource.
DELETIONS: Final = ("delete", "delete-replaced")
#: Prefix of resource names of the component for buckets.
PREFIX: Final = "storage-"
#: Minimum number of objects in a folder whose changes are grouped into one line.
FEW: Final = 2
#: Templates of the names of a job's resource in the program: of the job, or of its schedule.
_OF_JOBS: Final = ("training-{}", "training-{}-schedule")
#: Section of the stack file -> templates of the name of an entry's resource in the program.
RESOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "buckets": ("storage-{}",),
    "secrets": ("secrets-{}",),
    "serviceAccounts": ("{}-account",),
    "reservations": ("capacity-{}",),
    "jobs": _OF_JOBS,
    "tuning": _OF_JOBS,
}
#: Maximum number of compared pairs of resources: a pull request can contain any number of steps.
COMPARED: Final = 10_000
#: Sections with data. The stack output of the same name contains the deployed name of each key.
OUTPUTS: Final = ("buckets", "secrets")
#: Resource of section ``registry``, which has no keys. The section's output is a text.
REGISTRY: Final = "registry-docker"
#: Rule id of the problem for a resource whose data is lost without an entry in ``acceptedLosses``.
ACCEPTED_LOSS: Final = "accepted-loss"


@dataclass(frozen=True, slots=True)
class DestructiveChange:
    """A resource that the plan destroys or recreates."""

    name: str
    type: str
    replaced: bool
    takes: str
    """Data lost with the resource; empty without user data."""
    refused: bool = False
    """True if the resource is protected: the engine refuses, and the preview fails."""

    @property
    def fate(self) -> str:
        """Fate of the resource, in words."""
        verb = "destroyed and recreated" if self.replaced else "destroyed"
        if self.refused:
            return f"would be {verb}, but is protected, so the deployment is refused"
        return verb

    @property
    def end(self) -> str:
        """Fate of a resource whose data is deleted with it."""
        return "recreated without data" if self.replaced else "destroyed"

    @property
    def is_loss(self) -> bool:
        """True if the plan deletes the only copy of data. Objects have a copy in the checkout."""
        return bool(self.takes) and not (self.refused or resource_types.find(self.type).copy)


@dataclass(slots=True)
class FolderChange:
    """Changes to the objects below one prefix of a bucket."""

    name: str
    """``BUCKET/PREFIX`` with the bucket's key in the stack file."""
    added: list[str] = field(default_factory=list)
    """Resource names of the added objects."""
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def counts(self) -> str:
        """Counts without zeros, like ``3 added, 1 changed, 2 removed``."""
        lists = {"added": self.added, "changed": self.changed, "removed": self.removed}
        return ", ".join(f"{len(names)} {word}" for word, names in lists.items() if names)

    @property
    def names(self) -> set[str]:
        """Names of all changed resources."""
        return {*self.added, *self.changed, *self.removed}


def destroyed(plan: Plan) -> tuple[DestructiveChange, ...]:
    """Return destroyed resources, except grants, jobs and folders: other parts report those."""
    grouped = {name for folder in folder_changes(plan) for name in folder.names}
    changes = [
        DestructiveChange(
            name=step.name,
            type=step.type,
            replaced=step.op == "replace",
            takes=resource_types.find(step.type).holds,
            refused=step.is_protected,
        )
        for step in plan.changed
        if _is_destructive(step) and step.name not in grouped
    ]
    return tuple(sorted(changes, key=lambda change: (not change.takes, change.name)))


def _is_destructive(step: Step) -> bool:
    own = step.type in (*WITH_REQUEST, *serving.TYPES, resource_types.SNAPSHOT)
    if own or grants.grants_alone(step):
        return False
    if step.op == "replace":
        # An object is replaced at once: new content of a file, or a new package of code.
        return step.type != OBJECT
    return step.op in DELETIONS and not stays(step)


def stays(step: Step) -> bool:
    """Return whether the plan deletes the resource only from the state, not from the cloud."""
    if step.op not in DELETIONS:
        return False
    if step.old is not None and step.old.retained:
        return True
    needed = resource_types.find(step.type).stays
    return needed is not None and all(step.inputs.get(key) == needed[key] for key in needed)


def remade(plan: Plan) -> list[Finding]:
    """Return resources with data that were deleted in the cloud, and how to restore each one.

    A refresh of this preview, or an earlier one, detected the deletion. After an earlier refresh,
    only the outputs of the stack still name the resource.
    """
    findings = list[Finding]()
    deployed = set(deployed_names(plan).values())
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
        finding for finding in remade(plan) if finding.also and finding.name not in accepted
    )


def accepted_losses(plan: Plan) -> Mapping[str, str]:
    """Return the reasons in ``acceptedLosses`` by resource name."""
    return as_mapping(plan.section("drift").get("acceptedLosses"))


def needless_acceptances(plan: Plan) -> tuple[Diagnostic, ...]:
    """Warn about entries of ``acceptedLosses`` for existing resources: they accept a later loss."""
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
    """Return the problem for a resource whose data is lost, with two ways to proceed."""
    restore = loss.what or "restore the resource"
    hint = f"{restore}. If data is lost, add the resource to drift.acceptedLosses in the stack file"
    what = "a protected resource was deleted in the cloud and would be recreated without data"
    return Problem(what, loss.name, hint, rule=ACCEPTED_LOSS)


def unprotected(plan: Plan) -> list[Finding]:
    """Return resources whose protection the plan removes, without destroying them."""
    both = (step for step in plan.steps if step.custom and step.old and step.new)
    return sorted(
        Finding(s.name) for s in both if s.old and s.old.protect and s.new and not s.new.protect
    )


def protected(plan: Plan) -> tuple[str, ...]:
    """Return the names of resources that Pulumi refuses to destroy once the plan is deployed."""
    return tuple(sorted(s.name for s in plan.steps if s.custom and s.new and s.new.protect))


def folder_changes(plan: Plan) -> tuple[FolderChange, ...]:
    """Return folders with several changed objects, by name."""
    prefixes, folders = _prefixes(plan), dict[str, FolderChange]()
    for step in plan.changed:
        if step.type == OBJECT and step.name.startswith(PREFIX):
            name = _folder(step.name.removeprefix(PREFIX), prefixes)
            folder = folders.setdefault(name, FolderChange(name))
            lists = {"create": folder.added, "delete": folder.removed}
            lists.get(step.op, folder.changed).append(step.name)
    return tuple(folders[name] for name in sorted(folders) if len(folders[name].names) >= FEW)


def _folder(name: str, prefixes: list[str]) -> str:
    known = next((prefix for prefix in prefixes if name.startswith(f"{prefix}/")), "")
    bucket, _, path = name.partition("/")
    return known or (f"{bucket}/{path.partition('/')[0]}" if "/" in path else bucket)


def _prefixes(plan: Plan) -> list[str]:
    prefixes = [
        f"{key}/{prefix_of(str(name))}".rstrip("/")
        for key, bucket in plan.section("buckets").items()
        for name in as_mapping(bucket).get("objects") or ()
    ]
    return sorted(prefixes, reverse=True)


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
    """Return whether the resources are equal except for the key ``old``, which becomes ``new``."""
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


def deployed_names(plan: Plan) -> dict[str, str]:
    """Return the deployed cloud names of resources with data, by their names in the program."""
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
    """Yield new, empty resources, each with the deployed resource that the entry named before."""
    before = deployed_names(plan)
    for step in plan.changed:
        if step.op != "create" or step.name not in before:
            continue
        old, new = before[step.name], resource_types.find(step.type).output_of(step.inputs)
        if old != new:
            # The last part of a name is enough, except for a repository in another project.
            short = old if step.name == REGISTRY else old.rpartition("/")[2]
            yield Finding(step.name, old=short, new=new)


def unknown_first_names(plan: Plan) -> tuple[Diagnostic, ...]:
    """Warn about each ``formerly`` that matches no deployed resource; not at a first deployment."""
    created = {step.name for step in plan.steps if step.op == "create"}
    if not any(step.old is not None for step in plan.steps if step.custom):
        return ()
    return tuple(
        Diagnostic(
            "warning",
            f"{section}.{key}: formerly: {former} matches no deployed resource, so a new resource "
            "is created. Correct or remove formerly, and check the destroyed resources below.",
        )
        for section, templates in RESOURCES.items()
        for key, entry in plan.section(section).items()
        if isinstance(former := as_mapping(entry).get("formerly"), str)
        and any(template.format(former) in created for template in templates)
    )
