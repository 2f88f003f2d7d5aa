"""Two stacks -> what differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.errors import ConfigError
from vertex_training.stack import Stack
from vertex_training_cli.check.checking import shown_from
from vertex_training_cli.diff import neutral
from vertex_training_cli.engine.fields import FieldDifference, diff_fields


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
