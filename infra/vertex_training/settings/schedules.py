"""``schedule`` of a job in a stack file: when it is submitted by ``vt jobs advance``."""

from __future__ import annotations

from typing import Literal

import pydantic

from vertex_training.errors import nearest
from vertex_training.settings import cron as crons
from vertex_training.settings.section import Section


class Schedule(Section):
    """When a job is submitted, again and again; ``up`` submits none of it.

    Each slot has one submission at most, with a folder of its own (docs/jobs.md).
    """

    cron: str
    """Five fields of a cron line, like ``0 6 * * 1``: Mondays at 6."""
    time_zone: str = "Etc/UTC"
    """The zone that it is meant in, like ``Europe/Berlin``."""
    paused: bool = False
    """Whether there are no slots for the time being. Those that pass are not made up for."""
    missed: Literal["skip", "latest", "all"] = "latest"
    """What becomes of slots that nobody could submit in time. ``skip``: one that is an hour late is
    left out. ``latest``: the newest is submitted, however late. ``all``: each is, one after the
    other."""

    @pydantic.field_validator("cron")
    @classmethod
    def _check_cron(cls, line: str) -> str:
        if wrong := crons.problem(line):
            raise ValueError(wrong)
        return line

    @pydantic.field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, name: str) -> str:
        if name not in crons.zones():
            near = nearest(name, crons.zones(), 0.6)
            hint = f"did you mean '{near}'?" if near else "like Europe/Berlin or Etc/UTC"
            raise ValueError(f"is no time zone: {hint}")
        return name

    @property
    def calendar(self) -> crons.Calendar:
        """Its slots."""
        return crons.Calendar(self.cron, self.time_zone)
