"""The section ``teams`` of a stack file: who submits as a team's accounts, and within what."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vertex_training.settings.limits import Usd
from vertex_training.settings.section import Section


class TeamLimits(Section):
    """Bounds for the jobs of one team, beside those of the stack. What is absent is not limited."""

    max_usd_per_job: Usd | None = None
    """The most a job of the team may cost if it runs until its timeout."""
    max_usd_per_team: Usd | None = None
    """The most all jobs of the team may cost together, each once and until its timeout."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Machine types its jobs may run on; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: (
        Annotated[list[Literal["STANDARD", "SPOT", "FLEX_START"]], Field(min_length=1)] | None
    ) = None
    """Strategies its jobs may be scheduled with."""

    @property
    def in_usd(self) -> bool:
        """Whether something is limited in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_team is not None


class Team(Section):
    """People who share accounts, buckets and secrets of the stack, apart from other teams."""

    submitters: list[str] = []
    """IAM members that may submit jobs as the team's accounts, and as no others."""
    labels: dict[str, str] = {}
    """Labels on what the team owns and on its jobs, beside ``team: NAME``."""
    limits: TeamLimits = TeamLimits()
