"""Two stacks -> what differs, as text for people and JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import ConfigError
from vertex_training.stack import Stack
from vertex_training_cli.check.checking import shown_from
from vertex_training_cli.diff import neutral
from vertex_training_cli.engine.fields import FieldDifference, diff_fields
from vertex_training_cli.engine.values import redact

#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1
#: Stands for a side that has no such field.
ABSENT: Final = "(none)"


@dataclass(frozen=True, slots=True)
class JobDifference:
    """A job that only one stack has (``only_in`` names it), or whose requests differ."""

    name: str
    only_in: str = ""
    fields: tuple[FieldDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between the stacks ``one`` and ``other``, in this order."""

    one: str
    other: str
    settings: tuple[FieldDifference, ...]
    jobs: tuple[JobDifference, ...]
    same_jobs: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.settings or self.jobs)


def compare(one: Stack, other: Stack) -> Comparison:
    """What differs between two stacks of one checkout.

    Raises:
        ConfigError: with every mistake in the jobs of either.
    """
    here, there = requests_of(one), requests_of(other)
    jobs, same = list[JobDifference](), list[str]()
    for name in sorted({*here, *there}):
        if name not in here or name not in there:
            jobs.append(JobDifference(name, only_in=_name(one if name in here else other)))
        elif fields := diff_fields(here[name], there[name]):
            jobs.append(JobDifference(name, fields=tuple(fields)))
        else:
            same.append(name)
    settings = diff_fields(
        neutral.settings(one.settings, other.settings),
        neutral.settings(other.settings, one.settings),
    )
    return Comparison(_name(one), _name(other), tuple(settings), tuple(jobs), tuple(same))


def requests_of(stack: Stack) -> dict[str, Mapping[str, Any]]:
    """The requests of all jobs under neutral names.

    Raises:
        ConfigError: with every mistake in them.
    """
    renamed = dataclasses.replace(stack, settings=neutral.renamed(stack.settings))
    verdicts = renamed.check_jobs(shown_from(stack.root))
    if problems := [problem for verdict in verdicts.values() for problem in verdict.errors]:
        raise ConfigError(problems)
    return {
        name: neutral.request(verdict.request, renamed.references)
        for name, verdict in verdicts.items()
        if verdict.request
    }


def _name(stack: Stack) -> str:
    return stack.settings.stack


def as_text(found: Comparison) -> str:
    """Lines like ``buckets.data.keepNoncurrentDays: 7 -> 30``, settings first."""
    if found.same:
        return f"{found.one} and {found.other} are the same, but for their names.\n"
    lines = [f"{found.one} -> {found.other}", ""]
    if found.settings:
        lines += ["settings:", *(_line(field) for field in found.settings), ""]
    for job in found.jobs:
        if job.only_in:
            lines += [f"job {job.name}: only in {job.only_in}", ""]
        else:
            lines += [f"job {job.name}:", *(_line(field) for field in job.fields), ""]
    if found.same_jobs:
        lines += [f"the same request in both: {', '.join(found.same_jobs)}", ""]
    return "\n".join(lines)


def _line(field: FieldDifference) -> str:
    old, new = (ABSENT if side is None else side for side in (field.old, field.new))
    return f"  {redact(field.path)}: {redact(old)} -> {redact(new)}"


def as_json(found: Comparison) -> str:
    """The comparison for programs; null stands for a side that does not have it."""
    content = {"version": VERSION, "same": found.same, **redact(dataclasses.asdict(found))}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
