"""The sections ``channels``, ``alerts``, ``budget`` and ``dashboards`` of a stack file; messages of
jobs on Batch."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.naming import DOMAIN
from vertex_training.settings.section import Key, Section, form

#: https://docs.cloud.google.com/billing/docs/reference/budget/rest/v1: NotificationsRule
MOST_BUDGET_CHANNELS: Final = 5
#: Of a condition that must hold for a while: https://docs.cloud.google.com/monitoring/alerts/concepts-indepth
MOST_MINUTES: Final = 23 * 60 + 30
#: What Vertex AI tells in no metric and in no line of a log, so that no policy could ever fire.
UNTOLD: Final = ("pendingLongerThan", "overdue")

Threshold = Annotated[int, Field(ge=1, le=1000)]


def idle_rule(text: str) -> tuple[int, int]:
    """Percent and minutes of ``gpuIdleBelow`` and ``idleStop``.

    >>> idle_rule("5% for 2h")
    (5, 120)
    """
    percent, _, time = text.partition("% for ")
    return int(percent), int(time[:-1]) * {"m": 1, "h": 60}[time[-1]]


def _within_a_day(given: str) -> str:
    if idle_rule(given)[1] > MOST_MINUTES:
        raise ValueError(f"{given}: Cloud Monitoring looks back 23h30m at most")
    return given


#: When accelerators do nothing.
IdleText = Annotated[
    str,
    form(r"[1-9][0-9]?% for [1-9][0-9]{0,3}[mh]", "5% for 30m"),
    pydantic.AfterValidator(_within_a_day),
]
#: Of google-cloud-batch 0.22.4, JobStatus.State and TaskStatus.State.
JobState = Literal[
    "QUEUED", "SCHEDULED", "RUNNING", "SUCCEEDED", "FAILED", "DELETION_IN_PROGRESS",
    "CANCELLATION_IN_PROGRESS", "CANCELLED",
]  # fmt: skip
TaskState = Literal["PENDING", "ASSIGNED", "RUNNING", "FAILED", "SUCCEEDED", "UNEXECUTED"]
Panel = Literal["accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends"]


class Channel(Section):
    """A destination of alerts: one of ``email``, ``pubsub`` and ``existing``."""

    email: Annotated[str, form(rf"[A-Za-z0-9._%+'-]{{1,64}}@{DOMAIN}", "ml@example.com")] | None = (
        None
    )
    """Address of a person or a group."""
    pubsub: (
        Annotated[
            str,
            form(
                r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}",
                "projects/my-project-1/topics/alerts, the topic with 3 to 255 characters",
            ),
        ]
        | None
    ) = None
    """A topic of Pub/Sub that is there."""
    existing: (
        Annotated[
            str,
            form(
                r"projects/[a-z0-9-]{4,30}/notificationChannels/[0-9]{1,25}",
                "projects/my-project-1/notificationChannels/1234567890",
            ),
        ]
        | None
    ) = None
    """A channel of the project that is there, such as one to Slack or PagerDuty: what has a secret
    is made by hand, so that no state has it."""

    @pydantic.model_validator(mode="after")
    def _exactly_one(self) -> Channel:
        if sum(map(bool, (self.email, self.pubsub, self.existing))) != 1:
            raise ValueError("give one of email, pubsub and existing")
        return self


class StateMessages(Section):
    """Messages that Batch publishes to a Pub/Sub topic when a job or a task of it changes state.
    Vertex AI has no such messages."""

    channel: Key
    """Key of a channel with ``pubsub``."""
    job_states: list[JobState] | None = None
    """States of the job to tell of; every change without it."""
    task_states: list[TaskState] = []
    """States of its tasks to tell of, each task by itself."""

    @pydantic.model_validator(mode="after")
    def _tells_something_once(self) -> StateMessages:
        for states in (self.job_states or [], self.task_states):
            if len(set(states)) != len(states):
                raise ValueError("names a state twice")
        if self.job_states == [] and not self.task_states:
            raise ValueError("tells nothing: name states, or leave jobStates out for all")
        return self

    def notifications(self, topic: str) -> tuple[dict[str, Any], ...]:
        """``notifications`` of a job of Batch: each has one condition."""
        every = [{"type": "JOB_STATE_CHANGED"}] if self.job_states is None else []
        job, task = self.job_states or (), self.task_states
        messages = [
            *every,
            *({"type": "JOB_STATE_CHANGED", "newJobState": state} for state in job),
            *({"type": "TASK_STATE_CHANGED", "newTaskState": state} for state in task),
        ]
        return tuple({"pubsubTopic": topic, "message": message} for message in messages)


class Alerts(Section):
    """Alerts about jobs, of the whole project: no log and no metric of a job has the name of the
    stack that it belongs to."""

    channels: Annotated[list[Key], Field(min_length=1, max_length=16)]
    """Keys of ``channels``: all of them are told."""
    failed: bool = False
    """Alert on each failed job, once, by the line that Vertex AI logs."""
    gpu_idle_below: IdleText | None = None
    """Alert if a job's accelerators are idle, like ``5% for 30m``: no replica was above it for so
    long. At most 23h30m."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _no_signal(cls, given: object) -> object:
        found = [name for name in UNTOLD if isinstance(given, dict) and name in given]
        if found:
            raise ValueError(
                f"{' and '.join(found)}: no metric and no log says how long a job waits, so no "
                "alert could fire. Remove it: `vt jobs list` shows what waits"
            )
        return given

    @pydantic.model_validator(mode="after")
    def _tells_something(self) -> Alerts:
        if not (self.failed or self.gpu_idle_below):
            raise ValueError("tells nothing: add failed: true or gpuIdleBelow")
        return self


class Budget(Section):
    """An alert on the monthly cost of the project. It stops nothing, and costs reach it up to a day
    late."""

    billing_account: Annotated[
        str, form(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}", "012345-6789AB-CDEF01")
    ]
    """The billing account of the project; it must pay in USD."""
    usd_per_month: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """The amount for each calendar month, of all that the project costs."""
    thresholds: Annotated[list[Threshold], Field(min_length=1, max_length=20)] = [50, 80, 100]
    """Percent of it at which mail is sent, ascending."""
    channels: Annotated[list[Key], Field(max_length=MOST_BUDGET_CHANNELS)] = []
    """Keys of ``channels`` with an address, or of one to an address that is there: budgets tell
    others nothing. Administrators and users of the billing account are told in any case."""

    @pydantic.field_validator("thresholds")
    @classmethod
    def _ascending(cls, given: list[int]) -> list[int]:
        if given != sorted(set(given)):
            raise ValueError("must ascend, each once: [50, 80, 100]")
        return given


class Dashboard(Section):
    """A page of Cloud Monitoring with charts of all jobs of the project."""

    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Its title; the stack's name and its key without it."""
    panels: Annotated[list[Panel], Field(min_length=1)] = [
        *("accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends")
    ]
    """Its charts, in order. ``ends``: lines that Vertex AI logs when jobs begin and end."""

    @pydantic.field_validator("panels")
    @classmethod
    def _each_once(cls, given: list[str]) -> list[str]:
        if len(set(given)) != len(given):
            raise ValueError("names a panel twice")
        return given
