"""What watches a stack's jobs: filters, texts and charts of Cloud Monitoring. Pure.

Logs: resource ``ml_job``; metrics: ``catalog.metrics``. None has the labels of a job, so all of it
is about every job of the project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.catalog.metrics import ACCELERATOR, metric_filter
from vertex_training.settings.alerts import Dashboard
from vertex_training.settings.model import Settings

#: Observed in public logs: the service tells the end of a job that failed by this line, at INFO.
#: Errors of a job's own code are other lines.
FAILED: Final = (
    'resource.type="ml_job" AND resource.labels.task_name="service" AND textPayload="Job failed."'
)
#: What the service itself logs of jobs.
SERVICE_LINES: Final = 'resource.type="ml_job" AND resource.labels.task_name="service"'
#: Each job is told on its own: ``AlertPolicy.Condition.LogMatch.label_extractors``.
JOB_LABEL: Final = "job_id"
EXTRACTOR: Final = "EXTRACT(resource.labels.job_id)"
#: Panel -> title, metric and unit of its axis.
_CHARTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "accelerator": ("Accelerators in use", (ACCELERATOR,)),
    "acceleratorMemory": (
        "Memory of accelerators in use",
        ("accelerator/memory/utilization",),
    ),
    "cpu": ("CPU in use", ("cpu/utilization",)),
    "memory": ("Memory in use", ("memory/utilization",)),
    "network": (
        "Network, bytes a second",
        ("network/received_bytes_count", "network/sent_bytes_count"),
    ),
}
#: What no metric tells, as the last tile of a dashboard says.
MISSING: Final = (
    "No metric of Google's has what a job costs, how long it was queued, or its state. "
    "`vt jobs list --stack {stack}` has states and times, `vt jobs compare` costs at list prices, "
    "reports of Cloud Billing what was billed."
)
#: Columns of a dashboard, and size of a tile.
_COLUMNS: Final = 48
_SIZE: Final = (24, 16)


def runbook(settings: Settings, job: str, *, failed: bool) -> str:
    """How to get the reason; ``job`` stands for the job's id in a notification."""
    stack, project = settings.stack, settings.project
    lines = [
        f"Job {job} in project {project}. No log and no metric says which stack sent it.",
        f"The reason: `vt jobs show {job} --stack {stack}`, or without a checkout `gcloud ai "
        f"custom-jobs describe {job} --project={project} --region={settings.region} "
        "--format='value(state,error.message)'` (a tuning job: `gcloud ai hp-tuning-jobs`).",
    ]
    if not failed:
        lines[1] = (
            f"What it does: `vt jobs logs {job} --stack {stack}`. It is paid for until it ends; "
            f"`vt jobs cancel {job} --stack {stack}` ends it."
        )
    return "\n\n".join(lines)


def dashboard_json(settings: Settings, key: str, dashboard: Dashboard) -> str:
    """``projects.dashboards`` of the API as JSON, keys sorted."""
    tiles = [_tile(_widget(settings, panel)) for panel in dashboard.panels]
    text = {"content": MISSING.format(stack=settings.stack), "format": "MARKDOWN"}
    tiles.append(_tile({"title": "Not on this page", "text": text}))
    width, height = _SIZE
    for index, tile in enumerate(tiles):
        tile["xPos"] = index * width % _COLUMNS
        tile["yPos"] = index * width // _COLUMNS * height
    found = {
        "displayName": dashboard.title or f"Training {settings.stack}: {key}",
        "mosaicLayout": {"columns": _COLUMNS, "tiles": tiles},
    }
    return json.dumps(found, sort_keys=True)


def _tile(widget: Mapping[str, Any]) -> dict[str, Any]:
    width, height = _SIZE
    return {"width": width, "height": height, "widget": widget}


def _widget(settings: Settings, panel: str) -> dict[str, Any]:
    if panel == "ends":
        names = [f"projects/{settings.project}"]
        logs = {"filter": SERVICE_LINES, "resourceNames": names}
        return {"title": "What Vertex AI logs of jobs, their ends among it", "logsPanel": logs}
    title, metrics = _CHARTS[panel]
    return {
        "title": title,
        "xyChart": {"dataSets": [_series(metric) for metric in metrics]},
    }


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
