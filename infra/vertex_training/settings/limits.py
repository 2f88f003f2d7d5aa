"""Sections that apply to jobs: ``limits``, ``teams``, ``jobDefaults``, ladders and schedules."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.errors import nearest
from vertex_training.naming import MEMBER_DOMAIN
from vertex_training.settings import cron as crons
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
    """Allow a job or an endpoint without a known price. Its cost cannot be compared with a limit in
    USD, so it is refused if there is one."""
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
        """Return whether jobs have a limit in USD."""
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
        """Return whether jobs have a limit in USD."""
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


#: Why no rung leaves the region of the stack.
OTHER_REGION: Final = (
    "a rung stays in the stack's region: buckets, network, key and images of the job are there; a "
    "job elsewhere reads them across regions or not at all; another region is another stack"
)


class Rung(Section):
    """Differences of one rung from the job file; all else is as in the job file.

    A rung with a ``machineType`` names the whole machine: accelerators of the file are left out. A
    rung uses the reservation that it names, and none without one.
    """

    strategy: Literal["STANDARD", "SPOT", "FLEX_START"] | None = None
    """Provisioning of its machines; the job file's without it, STANDARD beside a reservation."""
    max_wait_duration: Annotated[str, form(r"[0-9]{1,9}s", "3600s")] | None = None
    """Longest wait of FLEX_START for machines; ``0s`` is for ever, so no rung would follow."""
    machine_type: str | None = None
    """Machine type of every pool that has the machine of the first one."""
    accelerator_type: str | None = None
    """Accelerator of those pools."""
    accelerator_count: Annotated[int, Field(ge=1)] | None = None
    """Number of them in a machine."""
    reservation: str | None = None
    """Key in ``reservations``, or ``projects/P/zones/ZONE/reservations/NAME``."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _stays_in_region(cls, given: Any) -> Any:
        if isinstance(given, dict) and "region" in given:
            raise ValueError(OTHER_REGION)
        return given

    @pydantic.model_validator(mode="after")
    def _changes_something(self) -> Rung:
        if not self.model_fields_set:
            raise ValueError("changes nothing: give a strategy, a machine or a reservation")
        return self


class Schedule(Section):
    """Repeated submission of a job; ``up`` submits none of it.

    Each slot has one submission at most, with a folder of its own (docs/jobs.md).
    """

    cron: str
    """Five fields of a cron line, like ``0 6 * * 1``: Mondays at 6."""
    time_zone: str = "Etc/UTC"
    """The zone that it is meant in, like ``Europe/Berlin``."""
    paused: bool = False
    """Stop the schedule for the time being. Slots that pass are not submitted later."""
    missed: Literal["skip", "latest", "all"] = "latest"
    """Treatment of slots that were not submitted in time. ``skip``: one that is an hour late is
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
