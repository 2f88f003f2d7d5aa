"""Allowed differences: from exceptions in the stack file, and from resources of other stacks.

Neighbors are other stacks of the checkout in the same project.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vertex_training import stack
from vertex_training.errors import TrainingError
from vertex_training.settings import project_files
from vertex_training.settings.model import DriftSettings, Settings
from vertex_training_cli.drift.findings import Drift, ResourceDifference
from vertex_training_cli.drift.policies import Declared, Membership
from vertex_training_cli.engine.stacks import StackRef


def of_settings(settings: DriftSettings) -> list[str]:
    """Return a line for each exception in the stack file."""
    members = (
        f"allowed: {exception.member} with {exception.role} on {exception.policy} "
        f"({exception.reason})"
        for exception in settings.allowed.values()
    )
    resources = (
        f"allowed: {resource.resource} ({resource.reason})"
        for resource in settings.allowed_resources.values()
    )
    return [*members, *resources]


def of_existing(settings: Settings) -> list[str]:
    """Return a line for each existing resource that the stack uses and does not create."""
    sections = {
        "bucket": settings.buckets.values(),
        "account": settings.service_accounts.values(),
        "secret": settings.secrets.values(),
        "repository": [settings.registry],
        "network": [settings.network],
    }
    return [
        f"{word} {entry.existing}: managed outside the stack, except for the stack's grants"
        for word, entries in sections.items()
        for entry in entries
        if entry.existing
    ]


def of_projects(declared: Declared, memberships: Sequence[Membership]) -> list[str]:
    """Return a line for each project role with members that the check does not judge."""
    by_role: dict[tuple[str, str], list[str]] = {}
    for other in declared.others(memberships):
        by_role.setdefault((other.policy, other.role), []).append(other.member)
    return [
        f"{policy}: {role} of {', '.join(members)} (drift.projectPolicy: own)"
        for (policy, role), members in by_role.items()
    ]


def apply(
    report: Drift, settings: DriftSettings, differences: Sequence[ResourceDifference]
) -> Drift:
    """Add ``differences`` to ``report``; list those with an exception as allowed instead."""
    remaining, allowed = list[ResourceDifference](), list[str]()
    for difference in differences:
        reasons = (
            entry.reason
            for entry in settings.allowed_resources.values()
            if fnmatch.fnmatchcase(difference.resource, entry.resource)
        )
        reason = next(reasons, None)
        if reason is None:
            remaining.append(difference)
        else:
            allowed.append(f"allowed: {difference.resource}, {difference.id} ({reason})")
    return report.with_differences(remaining).without_looking_at(allowed)


#: Stack of the same project -> members that it declares in the project's policy; None if the
#: stack's file has mistakes.
Neighbours = Mapping[str, frozenset[Membership] | None]


def find_neighbours(ref: StackRef) -> Neighbours:
    """Return the checkout's other stacks whose project is the same or unknown."""
    by_stack: dict[str, frozenset[Membership] | None] = {}
    for name in project_files.names(ref.root):
        if name == ref.stack:
            continue
        settings = read_settings(ref, name)
        if settings is None:
            by_stack[name] = None
        elif settings.project == ref.project:
            by_stack[name] = frozenset(_on_project(ref, settings))
    return by_stack


def read_settings(ref: StackRef, name: str) -> Settings | None:
    """Return the settings of a stack of the checkout; None if its file has mistakes."""
    try:
        return stack.settings_of(ref.root, name)
    except TrainingError:
        return None


def with_project_policy(report: Drift, settings: Settings, beside: Neighbours) -> Drift:
    """Return ``report``, judging all members of the project's policy if the settings require it."""
    if report.declared is None:
        return report
    number = settings.project_number
    if settings.drift.project_policy == "own":
        return replace(report, declared=replace(report.declared, project_number=number))
    members = [their for theirs in beside.values() for their in theirs or ()]
    judged = report.declared.with_project(settings.project, number, members)
    unread = [
        f"members that stack {name} declares on the project: its stack file is not valid"
        for name, theirs in beside.items()
        if theirs is None
    ]
    return replace(report, declared=judged).without_looking_at(unread)


def _on_project(ref: StackRef, settings: Settings) -> Iterator[Membership]:
    declared = stack.Stack(settings, ref.root, {}, stack.SCHEMA)
    for grant in declared.grants({}):
        if not grant.resource and grant.ours:
            condition = grant.condition.expression if grant.condition else ""
            yield Membership(f"projects/{grant.project}", grant.role, grant.member, condition)
