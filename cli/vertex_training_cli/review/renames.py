"""Entries of a stack file under another name, and other resources under the name of an entry.

A renamed entry keeps what is there by ``formerly``; without it, or with a wrong one, it is made
anew. An entry that was another team's (``existing``) and is the stack's own begins empty.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training_cli.engine.fields import FieldDifference, diff_fields
from vertex_training_cli.engine.plan import WITH_REQUEST, Diagnostic, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review import jobs
from vertex_training_cli.review.risk import LOST, told_alike

#: What a job is in the program: itself, or its schedule.
_OF_JOBS: Final = ("training-{}", "training-{}-schedule")
#: Section of the stack file -> names that an entry's resource may have in the program.
RESOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "buckets": ("storage-{}",),
    "secrets": ("secrets-{}",),
    "serviceAccounts": ("{}-account",),
    "reservations": ("capacity-{}",),
    "jobs": _OF_JOBS,
    "tuning": _OF_JOBS,
}
#: Pairs that are compared: a plan of a pull request has as many steps as it likes.
COMPARED: Final = 10_000
#: Sections with data: the output of this name has what each key was deployed as.
OUTPUTS: Final = ("buckets", "secrets")
#: The resource of section ``registry``, which has no keys; its output is one text.
REGISTRY: Final = "registry-docker"


@dataclass(frozen=True, slots=True, order=True)
class Rename:
    """An entry that is made anew, and differs by nothing but its name from one that goes."""

    section: str
    old: str
    new: str


def renames(plan: Plan) -> tuple[Rename, ...]:
    """All of a plan, by section."""
    gone = {step.name: step for step in plan.changed if step.op == "delete"}
    made = {step.name: step for step in plan.changed if step.op == "create"}
    pairs = (
        (Rename(section, old, key), gone[template.format(old)], new)
        for section, templates in RESOURCES.items()
        for template in templates
        for olds in (_keys_of(template, gone),)
        for key in sorted(plan.section(section))
        if (new := made.get(template.format(key)))
        for old in olds
    )
    some = itertools.islice(pairs, COMPARED)
    return tuple(
        found for found, old, new in some if _differ_by_name(old, new, found.old, found.new)
    )


def _keys_of(template: str, steps: Mapping[str, Step]) -> list[str]:
    before, after = template.split("{}")
    found = (n for n in sorted(steps) if n.startswith(before) and n.endswith(after))
    return [name[len(before) : len(name) - len(after)] for name in found]


def _differ_by_name(old: Step, new: Step, before: str, after: str) -> bool:
    """Whether ``new`` is ``old`` with the one key wherever the other stands as a word."""
    if old.type != new.type or old.old is None or new.new is None:
        return False
    if old.type in WITH_REQUEST:
        both = Step("replace", new.urn, new.type, old.old, new.new)
        calendars = (as_mapping(s.inputs.get("schedule")) for s in (old.old, new.new))
        differences = [*jobs.differences(both), *diff_fields(*calendars)]
    else:
        differences = diff_fields(old.old.inputs, new.new.inputs)
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(before)}(?![A-Za-z0-9])")
    return all(word.sub(after, each.old or "") == each.new for each in differences)


def deployed_names(plan: Plan) -> dict[str, str]:
    """Resources with data, by their names in the program -> what the stack was deployed with."""
    found = {
        template.format(key): str(deployed)
        for section in OUTPUTS
        for template in RESOURCES[section]
        for key, deployed in as_mapping(plan.deployed_outputs.get(section)).items()
    }
    if isinstance(registry := plan.deployed_outputs.get("registry"), str):
        found[REGISTRY] = registry
    return found


def substitutes(plan: Plan) -> tuple[FieldDifference, ...]:
    """Names of resources with data that are new and empty, with what the entry was until now."""
    before = deployed_names(plan)
    made = [step for step in plan.changed if step.op == "create" and step.name in before]
    found = list[FieldDifference]()
    for step in made:
        old, new = before[step.name], resource_types.find(step.type).output_of(step.inputs)
        if old != new:
            # Of most the last part says it; a repository has its project before that.
            short = old if step.name == REGISTRY else old.rpartition("/")[2]
            found.append(FieldDifference(step.name, short, new))
    return tuple(found)


def unknown_first_names(plan: Plan) -> tuple[Diagnostic, ...]:
    """A warning for each. None of a stack that is all new: it has the names of its first day."""
    created = {step.name for step in plan.steps if step.op == "create"}
    if not any(step.old is not None for step in plan.steps if step.custom):
        return ()
    return tuple(
        Diagnostic(
            "warning",
            f"{section}.{key}: formerly: {former} names nothing that is deployed, so it is made "
            f"anew. Was it {key} already, or another name? Read what is destroyed below.",
        )
        for section, templates in RESOURCES.items()
        for key, former in _given(plan, section)
        if any(template.format(former) in created for template in templates)
    )


def _given(plan: Plan, section: str) -> Iterator[tuple[str, str]]:
    """(key, ``formerly``) of the entries that have one."""
    for key, entry in plan.section(section).items():
        if isinstance(entry, Mapping) and isinstance(entry.get("formerly"), str):
            yield str(key), entry["formerly"]


SUBSTITUTES: Final = told_alike(
    substitutes,
    lambda each, quote: f"{quote(each.path)} (until now {quote(each.old or '')})",
    "substitutes",
    "new and empty in place of another",
    LOST,
    "destroys",
)
RENAMES: Final = told_alike(
    renames,
    lambda each, quote: (
        f"{quote(each.old)} → {quote(each.new)} ({quote(f'formerly: {each.old}')} in "
        f"{quote(f'{each.section}.{each.new}')} keeps what is there)"
    ),
    "renames",
    "renamed without formerly",
    LOST,
)
