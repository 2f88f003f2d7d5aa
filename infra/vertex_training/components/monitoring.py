"""Who is told of what: channels, alerts, the budget, and dashboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import pulumi
import pulumi_gcp as gcp

from vertex_training.catalog.metrics import ACCELERATOR, metric_filter
from vertex_training.components.apis import Apis
from vertex_training.components.ordering import Scope
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.plan import monitoring
from vertex_training.settings.alerts import Channel, idle_rule
from vertex_training.settings.model import Settings

if TYPE_CHECKING:
    Condition: TypeAlias = gcp.monitoring.AlertPolicyConditionArgsDict
    Strategy: TypeAlias = gcp.monitoring.AlertPolicyAlertStrategyArgsDict

#: Between two notifications of one job, which fails once. The API wants some.
RATE_LIMIT: Final = "300s"
#: After which an incident closes by itself; no log entry says that a failure is over.
AUTO_CLOSE: Final = "1800s"


class Monitoring(pulumi.ComponentResource):
    """What watches a stack. Jobs wait for it: one that fails at once is told as well."""

    def __init__(self, scope: Scope, settings: Settings, after: Sequence[pulumi.Resource]) -> None:
        """``after``: the APIs."""
        super().__init__("vertextraining:monitoring:Monitoring", scope.name, None, scope.opts)
        self._settings, self._name = settings, scope.name
        self._opts = pulumi.ResourceOptions(parent=self, depends_on=after)
        self._labels = settings.names.labels(settings.labels)
        self._channels: Mapping[str, pulumi.Input[str]] = {
            key: channel.existing or self._channel(key, channel)
            for key, channel in settings.alert_channels.items()
        }
        self._declare_alerts()
        self._declare_budget()
        for key, dashboard in settings.dashboards.items():
            gcp.monitoring.Dashboard(
                f"{self._name}-dashboard-{key}",
                project=settings.project,
                dashboard_json=monitoring.dashboard_json(settings, key, dashboard),
                opts=self._opts,
            )
        self.register_outputs({})

    def _channel(self, key: str, channel: Channel) -> pulumi.Output[str]:
        where = "email_address" if channel.email else "topic"
        labels = {where: str(channel.email or channel.pubsub)}
        made = gcp.monitoring.NotificationChannel(
            f"{self._name}-channel-{key}",
            project=self._settings.project,
            display_name=f"{key} (stack {self._settings.stack})",
            type="email" if channel.email else "pubsub",
            labels=labels,
            user_labels=self._labels,
            opts=self._opts,
        )
        return made.name

    def _declare_alerts(self) -> None:
        alerts, stack = self._settings.alerts, self._settings.stack
        if alerts and alerts.failed:
            match: Condition = {
                "display_name": "Vertex AI logged that a job failed",
                "condition_matched_log": {
                    "filter": monitoring.FAILED,
                    "label_extractors": {monitoring.JOB_LABEL: monitoring.EXTRACTOR},
                },
            }
            job = f"${{log.extracted_label.{monitoring.JOB_LABEL}}}"
            limit: Strategy = {"notification_rate_limit": {"period": RATE_LIMIT}}
            self._alert("failed", f"A job failed ({stack})", job, match, limit)
        if alerts and alerts.gpu_idle_below:
            title = f"Accelerators of a job below {alerts.gpu_idle_below} ({stack})"
            idle = _idle(*idle_rule(alerts.gpu_idle_below))
            self._alert("gpu-idle", title, "${resource.label.job_id}", idle, {})

    def _alert(
        self, name: str, title: str, job: str, condition: Condition, strategy: Strategy
    ) -> None:
        assert self._settings.alerts
        gcp.monitoring.AlertPolicy(
            f"{self._name}-{name}",
            project=self._settings.project,
            display_name=title,
            combiner="OR",
            conditions=[condition],
            alert_strategy={"auto_close": AUTO_CLOSE, **strategy},
            notification_channels=[self._channels[k] for k in self._settings.alerts.channels],
            documentation={
                "content": monitoring.runbook(self._settings, job, failed=name == "failed"),
                "mime_type": "text/markdown",
            },
            user_labels=self._labels,
            opts=self._opts,
        )

    def _declare_budget(self) -> None:
        settings, budget = self._settings, self._settings.budget
        if budget is None:
            return
        channels = [self._channels[key] for key in budget.channels]
        gcp.billing.Budget(
            f"{self._name}-budget",
            billing_account=budget.billing_account,
            display_name=f"Training {settings.stack}: project {settings.project}"[:60],
            amount={
                "specified_amount": {"currency_code": "USD", "units": str(budget.usd_per_month)}
            },
            # By the number: the service returns it in place of the id.
            budget_filter={
                "projects": [f"projects/{settings.project_number}"],
                "calendar_period": "MONTH",
            },
            threshold_rules=[{"threshold_percent": each / 100} for each in budget.thresholds],
            all_updates_rule={"monitoring_notification_channels": channels} if channels else None,
            opts=self._opts,
        )


def _idle(percent: int, minutes: int) -> Condition:
    """Of each job, the replica whose accelerators do most is below; a job that ended is not."""
    return {
        "display_name": f"No replica above {percent}% for {minutes} minutes",
        "condition_threshold": {
            "filter": metric_filter(ACCELERATOR),
            "comparison": "COMPARISON_LT",
            "threshold_value": percent / 100,
            "duration": f"{minutes * 60}s",
            "evaluation_missing_data": "EVALUATION_MISSING_DATA_INACTIVE",
            "aggregations": [
                {
                    "alignment_period": "300s",
                    "per_series_aligner": "ALIGN_MEAN",
                    "cross_series_reducer": "REDUCE_MAX",
                    "group_by_fields": ["resource.label.job_id"],
                }
            ],
            "trigger": {"count": 1},
        },
    }


def make_monitoring(scope: Scope, settings: Settings, apis: Apis) -> list[Monitoring]:
    """The component, where the stack is watched; and what topics need of their owners."""
    if not settings.is_watched:
        return []
    agent = f"service-{settings.project_number}@gcp-sa-monitoring-notification"
    for channel in settings.alert_channels.values():
        if channel.pubsub:
            _log_publisher("Alerts reach", channel.pubsub, f"{agent}.iam.gserviceaccount.com")
    used = ["monitoring", "logging"] + (["billingbudgets"] if settings.budget else [])
    return [Monitoring(scope.child("monitoring"), settings, apis.on(*used))]


def log_publishers(settings: Settings, requests: Mapping[str, JobRequest]) -> None:
    """Log what topics of jobs on Batch need of their owners: the job's account publishes, and
    Batch's service agent where the topic is in another project
    (batch/docs/enable-notifications#before-you-begin)."""
    agent = f"service-{settings.project_number}@gcp-sa-cloudbatch.iam.gserviceaccount.com"
    found: dict[tuple[str, str], None] = {}
    for request in requests.values():
        for topic in (str(each["pubsubTopic"]) for each in request.notifications):
            found[topic, request.account] = None
            if topic.split("/")[1] != settings.project:
                found[topic, agent] = None
    for topic, member in found:
        _log_publisher("States of jobs on Batch reach", topic, member)


def _log_publisher(what: str, resource: str, member: str) -> None:
    _, project, _, topic = resource.split("/")
    pulumi.log.info(
        f"{what} topic {topic} once its owner has run: gcloud pubsub topics "
        f"add-iam-policy-binding {topic} --project={project} --member=serviceAccount:"
        f"{member} --role=roles/pubsub.publisher"
    )
