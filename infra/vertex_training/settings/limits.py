"""What holds for jobs: the sections ``limits``, ``teams`` and ``jobDefaults`` of a stack file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vertex_training.naming import MEMBER_DOMAIN
from vertex_training.settings.section import Section, form

MemberDomain = Annotated[
    str, form(MEMBER_DOMAIN, "example.com, *.example.com, projects/NUMBER or workforcePools/ID")
]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Limits(Section):
    """Bounds of the stack, and of each job and endpoint. What is absent is not limited."""

    max_usd_per_job: Usd | None = None
    """The most a job may cost until its timeout (see ``vertex_training.catalog.costs``)."""
    max_usd_per_environment: Usd | None = None
    """The most all jobs of the stack, each once and until its timeout, each snapshot's
    ``maxBytesBilled`` on demand, and a month of its schedules and of the reservations that it makes
    may cost together."""
    max_usd_per_month: Usd | None = None
    """The most an endpoint may cost a month, all its versions with all their replicas; and the
    most that a job with a schedule may, each slot until its timeout."""
    max_usd_per_month_in_total: Usd | None = None
    """The most all endpoints and schedules of the stack may cost a month together."""
    allow_unpriced: bool = False
    """Whether a job or an endpoint without a known price may run. Its cost cannot be compared with
    a limit in USD, so it is refused where there is one."""
    regions: Annotated[list[str], Field(min_length=1)] | None = None
    """Regions the stack may be in."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Machine types of jobs and endpoints; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: (
        Annotated[list[Literal["STANDARD", "SPOT", "FLEX_START"]], Field(min_length=1)] | None
    ) = None
    """Strategies jobs may be scheduled with."""
    member_domains: Annotated[list[MemberDomain], Field(min_length=1)] | None = None
    """Domains of users and groups, and of accounts of other projects, that may be members, like
    ``example.com`` or ``PROJECT.iam.gserviceaccount.com``; of a pool of identities
    ``workforcePools/ID`` or ``projects/NUMBER``. The stack's own project always may."""

    @property
    def in_usd(self) -> bool:
        """Whether jobs are limited in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_environment is not None


class TeamLimits(Section):
    """Bounds for what is a team's, beside those of the stack. What is absent is not limited."""

    max_usd_per_job: Usd | None = None
    """The most a job of the team may cost if it runs until its timeout."""
    max_usd_per_team: Usd | None = None
    """The most all jobs of the team may cost together, each once and until its timeout; those with
    a schedule for a month."""
    max_usd_per_month: Usd | None = None
    """The most an endpoint of the team may cost a month, all its versions with all their replicas;
    and the most that a job of it with a schedule may."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Machine types of its jobs and endpoints; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: (
        Annotated[list[Literal["STANDARD", "SPOT", "FLEX_START"]], Field(min_length=1)] | None
    ) = None
    """Strategies its jobs may be scheduled with."""

    @property
    def in_usd(self) -> bool:
        """Whether jobs are limited in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_team is not None


class Team(Section):
    """People who share accounts, buckets and secrets of the stack, apart from other teams."""

    submitters: list[str] = []
    """IAM members that may submit jobs as the team's accounts, and as no others."""
    labels: dict[str, str] = {}
    """Labels on what the team owns and on its jobs, beside ``team: NAME``."""
    limits: TeamLimits = TeamLimits()
    """Bounds for the team's jobs."""


class JobDefaults(Section):
    """Values for fields that a job file does not have. What a file says always wins."""

    service_account: Annotated[str, Field(min_length=1)] | None = None
    """``serviceAccount``, like ``${serviceAccounts.trainer}``."""
    timeout: Annotated[str, form(r"[1-9][0-9]{0,8}s", "86400s")] | None = None
    """``scheduling.timeout``."""
    output_directory: Annotated[str, Field(min_length=1)] | None = None
    """``baseOutputDirectory.outputUriPrefix``, like ``${buckets.out}/${job.requestId}``."""
    labels: dict[str, str] = {}
    """Labels of the request; a label of the file wins over one of the same key."""
