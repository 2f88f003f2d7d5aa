"""Organization policies in effect, and what they would stop of a stack.

A constraint is asked for only in projects where the stack has something that it judges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from vertex_training_cli.declared import DeclaredStack
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.constraints import CONSTRAINTS, SERVICE, Constraint, Subject
from vertex_training_cli.preflight.context import PreflightContext
from vertex_training_cli.preflight.effective_policy import EffectivePolicy

URL: Final = "https://orgpolicy.googleapis.com/v2/projects/{}/policies/{}:getEffectivePolicy"
#: https://docs.cloud.google.com/iam/docs/roles-permissions/orgpolicy
PERMISSION: Final = "orgpolicy.policy.get"
#: Resources that one answer names; more are counted.
SHOWN: Final = 12


def ask(context: PreflightContext) -> Iterator[Answer]:
    """One answer for each constraint and project that it judges something in."""
    wanted = _still_to_make(context)
    for constraint in CONSTRAINTS:
        subjects = sorted(constraint.subjects(wanted), key=attrgetter("project"))
        for project, judged in groupby(subjects, key=attrgetter("project")):
            asked = question(f"project {project}", f"policy {constraint.name}")
            url = URL.format(project, constraint.name)
            document = context.client.get(url, asked, PERMISSION)
            yield judge(asked, constraint, project, list(judged), document)


def _still_to_make(context: PreflightContext) -> DeclaredStack:
    """What the stack declares without what it has made: policies judge what is created.

    APIs stay, since every call of one is judged.
    """
    left = (
        each
        for each in context.declared.resources
        if each.type == SERVICE or not context.is_made(each)
    )
    return dataclasses.replace(context.declared, resources=tuple(left))


def judge(
    asked: Answer,
    constraint: Constraint,
    project: str,
    subjects: Sequence[Subject],
    document: object,
) -> Answer:
    """What the policy in ``document`` means for ``subjects``. Pure."""
    if isinstance(document, Answer):
        return document
    if not isinstance(document, dict):
        return asked.unknown("there is no such project, or no such constraint", PERMISSION)
    policy = EffectivePolicy.parse(document)
    allowed = [
        policy.allows(each.covers) if constraint.is_list else not policy.enforced
        for each in subjects
    ]
    stopped = [each for each, verdict in zip(subjects, allowed, strict=True) if verdict is False]
    unclear = [each for each, verdict in zip(subjects, allowed, strict=True) if verdict is None]
    mend = f"ask its administrator for an exception of projects/{project}"
    mend += f"; or {constraint.mend}" if constraint.mend else ""
    if stopped:
        return asked.refused(str(policy), f"{_shown(stopped)}: {constraint.stops}", mend)
    if unclear:
        answer = f"{policy}: whether that covers {_shown(unclear)} cannot be asked"
        return asked.unknown(answer, mend=mend)
    return asked.ok(f"{policy}: stops none of {len(subjects)}")


def _shown(subjects: Sequence[Subject]) -> str:
    names = list(dict.fromkeys(each.resource for each in subjects))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
