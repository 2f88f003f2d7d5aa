"""Other stacks of the checkout in the same project: what is theirs is no drift of this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vertex_training import stack
from vertex_training.errors import TrainingError
from vertex_training.settings import project_files, stack_files
from vertex_training.settings.model import Settings
from vertex_training_cli.drift.findings import Drift
from vertex_training_cli.drift.policies import Membership
from vertex_training_cli.engine.stacks import StackRef

#: Each stack -> its members of the project's policy; None if its file has mistakes.
Neighbours = Mapping[str, frozenset[Membership] | None]


def find(ref: StackRef) -> Neighbours:
    """The other stacks of the checkout that are in the project of ``ref``, or may be."""
    found: dict[str, frozenset[Membership] | None] = {}
    for name in project_files.names(ref.root):
        if name == ref.stack:
            continue
        settings = read_settings(ref, name)
        if settings is None:
            found[name] = None
        elif settings.project == ref.project:
            found[name] = frozenset(_on_project(ref, settings))
    return found


def read_settings(ref: StackRef, name: str) -> Settings | None:
    """The settings of a stack of the checkout; None if its file has mistakes."""
    try:
        return stack.read_settings(stack_files.read_raw(stack.SCHEMA, ref.root, name), ref.root)
    except TrainingError:
        return None


def with_project_policy(found: Drift, settings: Settings, beside: Neighbours) -> Drift:
    """``found`` with every member of the project's policy to be judged, if the settings say so."""
    if found.declared is None:
        return found
    number = settings.project_number
    if settings.drift.project_policy == "own":
        return replace(found, declared=replace(found.declared, project_number=number))
    members = [each for theirs in beside.values() for each in theirs or ()]
    judged = found.declared.with_project(settings.project, number, members)
    unread = [
        f"what stack {name} declares on its project: its file has mistakes"
        for name, theirs in beside.items()
        if theirs is None
    ]
    return replace(found, declared=judged).without_looking_at(unread)


def _on_project(ref: StackRef, settings: Settings) -> Iterator[Membership]:
    declared = stack.Stack(settings, ref.root, {}, stack.SCHEMA)
    for grant in declared.grants({}):
        if not grant.resource and grant.ours:
            condition = grant.condition.expression if grant.condition else ""
            yield Membership(f"projects/{grant.project}", grant.role, grant.member, condition)
