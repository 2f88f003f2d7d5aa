"""Models of ``limits``, ``teams`` and ``jobDefaults``, and of options of jobs."""

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
#: Provisioning strategy of a job.
Strategy = Literal["STANDARD", "SPOT", "FLEX_START"]
Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Limits(Section):
    """Limits of the stack, its jobs and endpoints. Without a key there is no such limit."""

    max_usd_per_job: Usd | None = None
    """Maximum cost of one job, if it runs until its timeout."""
    max_usd_per_environment: Usd | None = None
    """Maximum total cost of the stack: each job once until its timeout, a month of each schedule
    and of each reservation that the stack creates, and ``maxBytesBilled`` of each snapshot."""
    max_usd_per_month: Usd | None = None
    """Maximum monthly cost of one endpoint, with all versions and replicas, or of one schedule, if
    each job runs until its timeout."""
    max_usd_per_month_in_total: Usd | None = None
    """Maximum monthly cost of all endpoints and schedules of the stack together."""
    allow_unpriced: bool = False
    """Allow jobs and endpoints without a known price. Limits in USD count them as 0."""
    regions: Annotated[list[str], Field(min_length=1)] | None = None
    """Allowed regions of the stack."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Allowed machine types of jobs and endpoints. ``n1-*`` allows all N1 machines."""
    strategies: Annotated[list[Strategy], Field(min_length=1)] | None = None
    """Allowed provisioning strategies of jobs."""
    member_domains: Annotated[list[MemberDomain], Field(min_length=1)] | None = None
    """Allowed domains of IAM members: ``example.com`` for users and groups,
    ``PROJECT.iam.gserviceaccount.com`` for accounts of other projects, ``workforcePools/ID`` or
    ``projects/NUMBER`` for pools of identities. The stack's own project is always allowed."""

    @property
    def in_usd(self) -> bool:
        """Return True if jobs have a limit in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_environment is not None


class TeamLimits(Section):
    """Limits of a team, in addition to the limits of the stack."""

    max_usd_per_job: Usd | None = None
    """Maximum cost of one of the team's jobs, if it runs until its timeout."""
    max_usd_per_team: Usd | None = None
    """Maximum total cost of the team's jobs, each until its timeout, and a month of schedules."""
    max_usd_per_month: Usd | None = None
    """Maximum monthly cost of one of the team's endpoints, with all versions and replicas, or of
    one of its schedules."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Allowed machine types of the team's jobs and endpoints. ``n1-*`` allows all N1 machines."""
    strategies: Annotated[list[Strategy], Field(min_length=1)] | None = None
    """Allowed provisioning strategies of the team's jobs."""

    @property
    def in_usd(self) -> bool:
        """Return True if jobs have a limit in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_team is not None


class Team(Section):
    """People who share accounts, buckets and secrets that other teams cannot use."""

    submitters: list[str] = []
    """IAM members that may submit jobs as the team's accounts only."""
    labels: dict[str, str] = {}
    """Labels of the team's resources and jobs, in addition to ``team: NAME``."""
    limits: TeamLimits = TeamLimits()
    """Limits of the team's jobs and endpoints."""


class JobDefaults(Section):
    """Default values of job files. Values in a job file take precedence."""

    service_account: Annotated[str, Field(min_length=1)] | None = None
    """Default of ``serviceAccount``, like ``${serviceAccounts.trainer}``."""
    timeout: Annotated[str, form(r"[1-9][0-9]{0,8}s", "86400s")] | None = None
    """Default of ``scheduling.timeout``."""
    output_directory: Annotated[str, Field(min_length=1)] | None = None
    """Default of ``baseOutputDirectory.outputUriPrefix``, like
    ``${buckets.out}/${job.requestId}``."""
    labels: dict[str, str] = {}
    """Labels of the request. A job file's label with the same key takes precedence."""


#: Error for a rung with ``region``.
OTHER_REGION: Final = (
    "a rung (an entry of ladder) cannot change the region: the job's buckets, network, key and "
    "images are in the stack's region. Remove region; for another region, use a second stack"
)


class Rung(Section):
    """Changes to the job file's request in one rung (alternative) of a ladder.

    A rung with ``machineType`` replaces the whole machine, including the file's accelerators. A
    rung without ``reservation`` uses no reservation.
    """

    strategy: Strategy | None = None
    """Provisioning strategy; default: that of the job file, or STANDARD with ``reservation``."""
    max_wait_duration: Annotated[str, form(r"[0-9]{1,9}s", "3600s")] | None = None
    """Maximum wait of FLEX_START for machines. ``0s``: without limit, so no later rung is used."""
    machine_type: str | None = None
    """Machine type of the first worker pool and of all pools with the same machine."""
    accelerator_type: str | None = None
    """Accelerator type of these worker pools."""
    accelerator_count: Annotated[int, Field(ge=1)] | None = None
    """Number of accelerators per machine."""
    reservation: str | None = None
    """Reservation: key in ``reservations``, or ``projects/P/zones/ZONE/reservations/NAME``."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _stays_in_region(cls, value: Any) -> Any:
        if isinstance(value, dict) and "region" in value:
            raise ValueError(OTHER_REGION)
        return value

    @pydantic.model_validator(mode="after")
    def _changes_something(self) -> Rung:
        if not self.model_fields_set:
            raise ValueError("the rung changes nothing: set strategy, machineType or reservation")
        return self


class Schedule(Section):
    """Repeated submission of a job at given times (slots), by ``vt jobs advance``.

    Each slot has at most one submission, with its own output folder (docs/jobs.md).
    """

    cron: str
    """Cron line with five fields, like ``0 6 * * 1`` for Mondays at 6."""
    time_zone: str = "Etc/UTC"
    """Time zone of the cron line, like ``Europe/Berlin``."""
    paused: bool = False
    """Pause the schedule. Slots in a pause are never submitted."""
    missed: Literal["skip", "latest", "all"] = "latest"
    """Action on slots that were not submitted in time. ``skip``: omit slots that are an hour late.
    ``latest``: submit only the newest slot. ``all``: submit every slot, one after another."""

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
            example = "write a name like Europe/Berlin or Etc/UTC"
            hint = f"did you mean '{near}'?" if near else example
            raise ValueError(f"this time zone does not exist: {hint}")
        return name

    @property
    def calendar(self) -> crons.Calendar:
        return crons.Calendar(self.cron, self.time_zone)


#: Sources of the numbers below. AdamW was measured: a GPT on one H200 (143,771 MiB, torch 2.11),
#: micro-batches of 4 x 1024 tokens, 125M to 1.3B parameters; six of seven peaks were within 1 % of
#: the prediction, one was 7 % above it. ``jobs/transformer`` keeps 36.2 B a layer, token and unit
#: of width for the backward pass, 4.0 B with checkpointing (counted on a processor). Not measured:
#: 16 B a parameter and ZeRO stages (https://arxiv.org/abs/1910.02054, section 3.1 and figure 1);
#: checkpointing keeps each layer's input in float32 (https://arxiv.org/abs/2205.05198, table 2).
GIB: Final = 2**30
#: Maximum difference between a measured peak and its prediction, as a share.
RANGE: Final = 0.07
#: Bytes of a parameter: weights with their 16-bit copies, gradients, and the optimizer's state.
#: ZeRO counts float32 weights as a part of that state.
WEIGHTS: Final = 2
MASTER: Final = 4
GRADIENTS: Final = 2
STATE: Final = {"adamw": 8, "momentum": 4, "sgd": 0}
#: Bytes of a layer for each token and unit of width, and of the loss for each token and level.
LAYER: Final = 36
LAYER_INPUT: Final = 4
LOSS: Final = 12


class TrainedModel(Section):
    """Sizes of the transformer that a job trains, to predict its peak of GPU memory."""

    parameters: int = Field(ge=1)
    """Number of parameters."""
    layers: int = Field(ge=1)
    """Number of layers."""
    width: int = Field(ge=1)
    """Width of the residual stream."""
    vocabulary: int = Field(ge=1)
    """Number of different tokens."""
    micro_batch: int = Field(ge=1)
    """Number of sequences that one GPU processes in one step."""
    sequence: int = Field(ge=1)
    """Number of tokens in a sequence."""
    optimizer: Literal["adamw", "momentum", "sgd"] = "adamw"
    """Optimizer. ``momentum`` is SGD with momentum."""
    zero_stage: int = Field(default=0, ge=0, le=3)
    """ZeRO stage: GPUs share the optimizer's state (1), also gradients (2), also weights (3)."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass, which saves memory."""

    def peak(self, gpus: int) -> float:
        """Return the predicted peak of GPU memory in GiB, if each of ``gpus`` runs one process."""
        tokens = self.micro_batch * self.sequence
        layers = LAYER * self.layers
        if self.gradient_checkpointing:
            layers = LAYER_INPUT * self.layers + LAYER
        activations = layers * tokens * self.width + LOSS * tokens * self.vocabulary
        weights = WEIGHTS / self._share(3, gpus)
        held = weights + (MASTER + STATE[self.optimizer]) / self._share(1, gpus)
        after = held + GRADIENTS / self._share(2, gpus)
        # Gradients replace activations in the backward pass.
        return max(held * self.parameters + activations, after * self.parameters) / GIB

    def _share(self, stage: int, gpus: int) -> int:
        return gpus if self.zero_stage >= stage else 1

    def comparison(self, gpus: int, accelerator: str, memory: int) -> tuple[str, bool]:
        """Compare the peak with a GPU's memory; return a text, and True if it may not fit."""
        peak = self.peak(gpus)
        low, high = peak * (1 - RANGE), peak * (1 + RANGE)
        word = "fits into"
        if high > memory:
            word = "exceeds" if low > memory else "may exceed"
        text = f"predicted peak {peak:.1f} GiB ({low:.1f} to {high:.1f}) of a GPU"
        return f"{text} {word} the {memory} GB of {accelerator}", high > memory
