"""Notification channels, alerts, budget, dashboards and TensorBoard.

A TensorBoard instance has no IAM policy: all callers of Vertex AI in the project may write to it.
Jobs find the instance by its labels (``customjob.google.prerequisites``), since the service chooses
its id. Its data is encrypted with the key of jobs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pulumi
import pulumi_gcp as gcp

from vertex_training.catalog import ACCELERATOR, metric_filter
from vertex_training.components.iam import Apis
from vertex_training.components.ordering import Resources, Scope
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.settings.alerts import Channel, Dashboard, idle_rule
from vertex_training.settings.model import Settings

if TYPE_CHECKING:
    Condition: TypeAlias = gcp.monitoring.AlertPolicyConditionArgsDict
    Strategy: TypeAlias = gcp.monitoring.AlertPolicyAlertStrategyArgsDict

#: Minimum time between notifications, which the API requires.
RATE_LIMIT: Final = "300s"
#: Time until an incident closes automatically, since no log entry ends a failure.
AUTO_CLOSE: Final = "1800s"


class Monitoring(pulumi.ComponentResource):
    """Monitoring of a stack. Jobs depend on this component: alerts exist before a job fails."""

    def __init__(self, scope: Scope, settings: Settings, after: Resources) -> None:
        """Declare the resources. ``after`` are the enabled APIs."""
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
                dashboard_json=dashboard_json(settings, key, dashboard),
                opts=self._opts,
            )
        self.register_outputs({})

    def _channel(self, key: str, channel: Channel) -> pulumi.Output[str]:
        where = "email_address" if channel.email else "topic"
        resource = gcp.monitoring.NotificationChannel(
            f"{self._name}-channel-{key}",
            project=self._settings.project,
            display_name=f"{key} (stack {self._settings.stack})",
            type="email" if channel.email else "pubsub",
            labels={where: str(channel.email or channel.pubsub)},
            user_labels=self._labels,
            opts=self._opts,
        )
        return resource.name

    def _declare_alerts(self) -> None:
        alerts, stack = self._settings.alerts, self._settings.stack
        if alerts and alerts.failed:
            match: Condition = {
                "display_name": "Vertex AI logged that a job failed",
                "condition_matched_log": {
                    "filter": FAILED,
                    "label_extractors": {JOB_LABEL: EXTRACTOR},
                },
            }
            job = f"${{log.extracted_label.{JOB_LABEL}}}"
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
                "content": runbook(self._settings, job, failed=name == "failed"),
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
            # The service returns the project's number, not its id.
            budget_filter={
                "projects": [f"projects/{settings.project_number}"],
                "calendar_period": "MONTH",
            },
            threshold_rules=[
                {"threshold_percent": threshold / 100} for threshold in budget.thresholds
            ],
            all_updates_rule={"monitoring_notification_channels": channels} if channels else None,
            opts=self._opts,
        )


def _idle(percent: int, minutes: int) -> Condition:
    """Return the alert condition for a running job whose replicas all use at most ``percent``."""
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
    """Declare the stack's monitoring, and log commands for the owners of topics."""
    if not settings.is_watched:
        return []
    agent = f"service-{settings.project_number}@gcp-sa-monitoring-notification"
    for channel in settings.alert_channels.values():
        if channel.pubsub:
            _log_publisher("Alerts reach", channel.pubsub, f"{agent}.iam.gserviceaccount.com")
    used = ["monitoring", "logging"] + (["billingbudgets"] if settings.budget else [])
    return [Monitoring(scope.child("monitoring"), settings, apis.on(*used))]


def log_publishers(settings: Settings, requests: Mapping[str, JobRequest]) -> None:
    """Log commands by which owners of Pub/Sub topics grant Batch the right to publish."""
    # batch/docs/enable-notifications#before-you-begin: the job's account publishes; if the topic is
    # in another project, Batch's service agent publishes too.
    agent = f"service-{settings.project_number}@gcp-sa-cloudbatch.iam.gserviceaccount.com"
    publishers: dict[tuple[str, str], None] = {}
    for request in requests.values():
        for topic in (str(notification["pubsubTopic"]) for notification in request.notifications):
            publishers[topic, request.account] = None
            if topic.split("/")[1] != settings.project:
                publishers[topic, agent] = None
    for topic, member in publishers:
        _log_publisher("State messages of Batch jobs reach", topic, member)


def _log_publisher(what: str, resource: str, member: str) -> None:
    _, project, _, topic = resource.split("/")
    pulumi.log.info(
        f"{what} topic {topic} after its owner grants the right: gcloud pubsub topics "
        f"add-iam-policy-binding {topic} --project={project} --member=serviceAccount:"
        f"{member} --role=roles/pubsub.publisher"
    )


#: Lines that the service itself logs about jobs.
SERVICE_LINES: Final = 'resource.type="ml_job" AND resource.labels.task_name="service"'
#: Log line of the service, at INFO, for a failed job (observed in public logs). Errors of the job's
#: own code are on other lines.
FAILED: Final = f'{SERVICE_LINES} AND textPayload="Job failed."'
#: Label for one notification per job: ``AlertPolicy.Condition.LogMatch.label_extractors``.
JOB_LABEL: Final = "job_id"
EXTRACTOR: Final = "EXTRACT(resource.labels.job_id)"
#: Panel -> title, metric and unit of its axis.
_CHARTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "accelerator": ("Accelerator utilization", (ACCELERATOR,)),
    "acceleratorMemory": ("Accelerator memory utilization", ("accelerator/memory/utilization",)),
    "cpu": ("CPU utilization", ("cpu/utilization",)),
    "memory": ("Memory utilization", ("memory/utilization",)),
    "network": (
        "Network, bytes per second",
        ("network/received_bytes_count", "network/sent_bytes_count"),
    ),
}
#: Text of a dashboard's last tile: values without a metric.
MISSING: Final = (
    "Google has no metrics for a job's cost, state and time in the queue. For states and times, "
    "run `vt jobs list --stack {stack}`; for costs at list prices, run `vt jobs compare`. Cloud "
    "Billing reports show billed costs."
)
#: Columns of a dashboard, and size of a tile.
_COLUMNS: Final = 48
_SIZE: Final = (24, 16)


def runbook(settings: Settings, job: str, *, failed: bool) -> str:
    """Return instructions for an alert. ``job`` is a placeholder of the job's id."""
    stack, project = settings.stack, settings.project
    lines = [
        f"Job {job} in project {project}. Logs and metrics do not name the job's stack.",
        f"Print the reason: `vt jobs show {job} --stack {stack}`, or without a checkout `gcloud ai "
        f"custom-jobs describe {job} --project={project} --region={settings.region} "
        "--format='value(state,error.message)'` (a tuning job: `gcloud ai hp-tuning-jobs`).",
    ]
    if not failed:
        lines[1] = (
            f"Print the log: `vt jobs logs {job} --stack {stack}`. The job costs money until it "
            f"ends. Cancel the job: `vt jobs cancel {job} --stack {stack}`."
        )
    return "\n\n".join(lines)


def dashboard_json(settings: Settings, key: str, dashboard: Dashboard) -> str:
    """Return a dashboard as JSON of ``projects.dashboards``, with sorted keys."""
    tiles = [_tile(_widget(settings, panel)) for panel in dashboard.panels]
    text = {"content": MISSING.format(stack=settings.stack), "format": "MARKDOWN"}
    tiles.append(_tile({"title": "Values without a chart", "text": text}))
    width, height = _SIZE
    for index, tile in enumerate(tiles):
        tile["xPos"] = index * width % _COLUMNS
        tile["yPos"] = index * width // _COLUMNS * height
    message = {
        "displayName": dashboard.title or f"Training {settings.stack}: {key}",
        "mosaicLayout": {"columns": _COLUMNS, "tiles": tiles},
    }
    return json.dumps(message, sort_keys=True)


def _tile(widget: Mapping[str, Any]) -> dict[str, Any]:
    return {"width": _SIZE[0], "height": _SIZE[1], "widget": widget}


def _widget(settings: Settings, panel: str) -> dict[str, Any]:
    if panel == "ends":
        names = [f"projects/{settings.project}"]
        logs = {"filter": SERVICE_LINES, "resourceNames": names}
        return {"title": "Lines that Vertex AI logs about jobs", "logsPanel": logs}
    title, metrics = _CHARTS[panel]
    return {"title": title, "xyChart": {"dataSets": [_series(metric) for metric in metrics]}}


def _series(metric: str) -> dict[str, Any]:
    aligner = "ALIGN_RATE" if metric.endswith("_count") else "ALIGN_MEAN"
    aggregation = {
        "alignmentPeriod": "60s",
        "perSeriesAligner": aligner,
        "crossSeriesReducer": "REDUCE_MEAN" if aligner == "ALIGN_MEAN" else "REDUCE_SUM",
        "groupByFields": ["resource.label.job_id"],
    }
    return {
        "plotType": "LINE",
        "legendTemplate": "${resource.labels.job_id} " + metric.partition("/")[2],
        "timeSeriesQuery": {
            "timeSeriesFilter": {"filter": metric_filter(metric), "aggregation": aggregation}
        },
    }


#: Note on the cost of a TensorBoard instance, which depends on the amount of logged data.
COST: Final = (
    "is billed by the amount of data that jobs log, which the stack cannot limit: "
    "https://cloud.google.com/vertex-ai/pricing#tensorboard"
)


class Tensorboard(pulumi.ComponentResource):
    """A TensorBoard instance in the stack's region."""

    name: pulumi.Output[str]
    """Full name (``projects/NUMBER/locations/REGION/tensorboards/ID``), unknown until created."""

    def __init__(self, scope: Scope, settings: Settings, *, after: Resources) -> None:
        """Declare the instance. ``after`` enables Vertex AI and grants the use of the key."""
        super().__init__("vertextraining:tensorboard:Tensorboard", scope.name, None, scope.opts)
        key = settings.key_for("jobs")
        instance = gcp.vertex.AiTensorboard(
            f"{scope.name}-instance",
            project=settings.project,
            region=settings.region,
            display_name=settings.tensorboard,
            description=f"Logs of training jobs of stack {settings.stack}",
            encryption_spec={"kms_key_name": key} if key else None,
            labels=settings.names.labels(settings.labels),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.name = instance.name
        self.register_outputs({"name": self.name})


def make_tensorboard(scope: Scope, settings: Settings, after: Resources) -> list[Tensorboard]:
    """Declare a new TensorBoard instance, if the stack has one, and log a note on its cost."""
    if not settings.tensorboard or "/" in settings.tensorboard:
        return []
    pulumi.log.info(f"TensorBoard '{settings.tensorboard}' {COST}")
    return [Tensorboard(scope.child("tensorboard"), settings, after=after)]
