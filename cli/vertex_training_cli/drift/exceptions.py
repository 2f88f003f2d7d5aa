"""What the stack file lets differ: exceptions of the comparison, each with its reason. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from vertex_training.settings.model import DriftSettings, Settings
from vertex_training_cli.drift.findings import Drift, ResourceDifference
from vertex_training_cli.drift.policies import Declared, Membership


def of_settings(settings: DriftSettings) -> list[str]:
    """The exceptions that the stack file lists, a line each."""
    members = (
        f"allowed: {each.member} with {each.role} on {each.policy} ({each.reason})"
        for each in settings.allowed.values()
    )
    resources = (
        f"allowed: {each.resource} ({each.reason})" for each in settings.allowed_resources.values()
    )
    return [*members, *resources]


def of_existing(settings: Settings) -> list[str]:
    """What the stack uses and does not make, a line each."""
    sections = {
        "bucket": settings.buckets.values(),
        "account": settings.service_accounts.values(),
        "secret": settings.secrets.values(),
        "repository": [settings.registry],
        "network": [settings.network],
    }
    return [
        f"{word} {entry.existing}: it exists, and the stack makes nothing but what it names there"
        for word, entries in sections.items()
        for entry in entries
        if entry.existing
    ]


def of_projects(declared: Declared, found: Sequence[Membership]) -> list[str]:
    """Members of projects that are not judged, a line each role of a project."""
    by_role: dict[tuple[str, str], list[str]] = {}
    for each in declared.others(found):
        by_role.setdefault((each.policy, each.role), []).append(each.member)
    return [
        f"{policy}: {role} of {', '.join(members)} (drift.projectPolicy: own)"
        for (policy, role), members in by_role.items()
    ]


def apply(
    found: Drift, settings: DriftSettings, differences: Sequence[ResourceDifference]
) -> Drift:
    """``found`` with those of ``differences`` that are no exception; the others as not judged."""
    left, allowed = list[ResourceDifference](), list[str]()
    for each in differences:
        reasons = (
            entry.reason
            for entry in settings.allowed_resources.values()
            if fnmatch.fnmatchcase(each.resource, entry.resource)
        )
        reason = next(reasons, None)
        if reason is None:
            left.append(each)
        else:
            allowed.append(f"found and allowed: {each.resource}, {each.id} ({reason})")
    return found.with_differences(left).without_looking_at(allowed)
