"""Models of sections ``channels``, ``alerts``, ``budget`` and ``dashboards``; messages of Batch."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.naming import DOMAIN
from vertex_training.settings.section import PROJECT, Key, Section, form

#: https://docs.cloud.google.com/billing/docs/reference/budget/rest/v1: NotificationsRule
MOST_BUDGET_CHANNELS: Final = 5
#: Maximum duration of an alert condition: https://docs.cloud.google.com/monitoring/alerts/concepts-indepth
MOST_MINUTES: Final = 23 * 60 + 30
#: Unsupported keys: no metric and no log of Vertex AI has the waiting time of a job.
UNTOLD: Final = ("pendingLongerThan", "overdue")

Threshold = Annotated[int, Field(ge=1, le=1000)]


def idle_rule(text: str) -> tuple[int, int]:
    """Return percent and minutes of ``gpuIdleBelow`` or ``idleStop``, like ``5% for 2h``."""
    percent, _, time = text.partition("% for ")
    return int(percent), int(time[:-1]) * {"m": 1, "h": 60}[time[-1]]


def _within_a_day(text: str) -> str:
    if idle_rule(text)[1] > MOST_MINUTES:
        raise ValueError(f"{text} is longer than Cloud Monitoring supports: write 23h30m or less")
    return text


#: Condition for idle accelerators, like ``5% for 30m``.
IdleText = Annotated[
    str,
    form(r"[1-9][0-9]?% for [1-9][0-9]{0,3}[mh]", "5% for 30m"),
    pydantic.AfterValidator(_within_a_day),
]
Email = Annotated[str, form(rf"[A-Za-z0-9._%+'-]{{1,64}}@{DOMAIN}", "ml@example.com")]
Topic = Annotated[
    str,
    form(
        rf"projects/{PROJECT}/topics/[A-Za-z][A-Za-z0-9._~+%-]{{2,254}}",
        "projects/my-project-1/topics/alerts, the topic with 3 to 255 characters",
    ),
]
ChannelPath = Annotated[
    str,
    form(
        r"projects/[a-z0-9-]{4,30}/notificationChannels/[0-9]{1,25}",
        "projects/my-project-1/notificationChannels/1234567890",
    ),
]
#: Source: google-cloud-batch 0.22.4, JobStatus.State and TaskStatus.State.
JobState = Literal[
    "QUEUED", "SCHEDULED", "RUNNING", "SUCCEEDED", "FAILED", "DELETION_IN_PROGRESS",
    "CANCELLATION_IN_PROGRESS", "CANCELLED",
]  # fmt: skip
TaskState = Literal["PENDING", "ASSIGNED", "RUNNING", "FAILED", "SUCCEEDED", "UNEXECUTED"]
Panel = Literal["accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends"]


class Channel(Section):
    """Destination of alerts: exactly one of ``email``, ``pubsub`` and ``existing``."""

    email: Email | None = None
    """E-mail address of a person or group."""
    pubsub: Topic | None = None
    """Full name of an existing Pub/Sub topic."""
    existing: ChannelPath | None = None
    """Full name of an existing notification channel of the project, for example to Slack or
    PagerDuty. Create channels with a secret by hand, so that no state contains the secret."""

    @pydantic.model_validator(mode="after")
    def _exactly_one(self) -> Channel:
        if sum(map(bool, (self.email, self.pubsub, self.existing))) != 1:
            raise ValueError("set exactly one of email, pubsub and existing")
        return self


class StateMessages(Section):
    """Messages that Batch publishes to a Pub/Sub topic when a job or one of its tasks changes
    state. Vertex AI has no such messages."""

    channel: Key
    """Key of a channel with ``pubsub``."""
    job_states: list[JobState] | None = None
    """Job states to report; default: every change."""
    task_states: list[TaskState] = []
    """Task states to report, with one message per task."""

    @pydantic.model_validator(mode="after")
    def _tells_something_once(self) -> StateMessages:
        for states in (self.job_states or [], self.task_states):
            if len(set(states)) != len(states):
                raise ValueError("a state is listed twice: remove one entry")
        if self.job_states == [] and not self.task_states:
            raise ValueError("no state is selected: list states, or remove jobStates to report all")
        return self

    def notifications(self, topic: str) -> tuple[dict[str, Any], ...]:
        """Return ``notifications`` of a Batch job, with one condition each."""
        every = [{"type": "JOB_STATE_CHANGED"}] if self.job_states is None else []
        job, task = self.job_states or (), self.task_states
        messages = [
            *every,
            *({"type": "JOB_STATE_CHANGED", "newJobState": state} for state in job),
            *({"type": "TASK_STATE_CHANGED", "newTaskState": state} for state in task),
        ]
        return tuple({"pubsubTopic": topic, "message": message} for message in messages)


class Alerts(Section):
    """Alerts about all jobs of the project. Logs and metrics of a job do not name its stack."""

    channels: Annotated[list[Key], Field(min_length=1, max_length=16)]
    """Keys of the channels to notify, from section ``channels``."""
    failed: bool = False
    """Alert once for each failed job, when Vertex AI logs the failure."""
    gpu_idle_below: IdleText | None = None
    """Alert if all accelerators of a job are idle. With ``5% for 30m``, no replica exceeds 5%
    utilization for 30 minutes. The maximum time is 23h30m."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _no_signal(cls, value: object) -> object:
        unsupported = [name for name in UNTOLD if isinstance(value, dict) and name in value]
        if unsupported:
            raise ValueError(
                f"{' and '.join(unsupported)}: no metric and no log has the waiting time of a job. "
                "Remove "
                "the key; `vt jobs list` lists waiting jobs"
            )
        return value

    @pydantic.model_validator(mode="after")
    def _tells_something(self) -> Alerts:
        if not (self.failed or self.gpu_idle_below):
            raise ValueError("no alert is selected: add failed: true or gpuIdleBelow")
        return self


class Budget(Section):
    """Alert on the monthly cost of the project, which may be a day old. A budget stops no job."""

    billing_account: Annotated[
        str, form(r"[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}", "012345-6789AB-CDEF01")
    ]
    """Billing account of the project, with currency USD."""
    usd_per_month: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """Budgeted cost of the project for each calendar month, in USD."""
    thresholds: Annotated[list[Threshold], Field(min_length=1, max_length=20)] = [50, 80, 100]
    """Percentages of the budget that trigger a notification, ascending."""
    channels: Annotated[list[Key], Field(max_length=MOST_BUDGET_CHANNELS)] = []
    """Keys of channels with ``email``, or with ``existing`` for an e-mail channel; budgets support
    no other kind. Administrators and users of the billing account are always notified."""

    @pydantic.field_validator("thresholds")
    @classmethod
    def _ascending(cls, thresholds: list[int]) -> list[int]:
        if thresholds != sorted(set(thresholds)):
            raise ValueError("thresholds must ascend without duplicates, like [50, 80, 100]")
        return thresholds


class Dashboard(Section):
    """Cloud Monitoring dashboard with charts of all jobs of the project."""

    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Title; default: the stack's name and the dashboard's key."""
    panels: Annotated[list[Panel], Field(min_length=1)] = [
        *("accelerator", "acceleratorMemory", "cpu", "memory", "network", "ends")
    ]
    """Charts, in order. ``ends``: lines that Vertex AI logs when jobs start and end."""

    @pydantic.field_validator("panels")
    @classmethod
    def _each_once(cls, panels: list[str]) -> list[str]:
        if len(set(panels)) != len(panels):
            raise ValueError("a panel is listed twice: remove one entry")
        return panels
