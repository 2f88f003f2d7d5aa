"""Dashboards and what who is woken reads, whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from vertex_training.plan.monitoring import dashboard_json, runbook
from vertex_training.settings.alerts import Dashboard

SETTINGS = unjudged()


def series(metric: str, aligner: str, reducer: str) -> dict[str, Any]:
    return {
        "plotType": "LINE",
        "legendTemplate": "${resource.labels.job_id} " + metric.partition("/")[2],
        "timeSeriesQuery": {
            "timeSeriesFilter": {
                "filter": (
                    f'metric.type="ml.googleapis.com/training/{metric}" AND '
                    'resource.type="cloudml_job"'
                ),
                "aggregation": {
                    "alignmentPeriod": "60s",
                    "perSeriesAligner": aligner,
                    "crossSeriesReducer": reducer,
                    "groupByFields": ["resource.label.job_id"],
                },
            }
        },
    }


def chart(title: str, *metrics: str) -> dict[str, Any]:
    ways = ("ALIGN_MEAN", "REDUCE_MEAN")
    if len(metrics) > 1:  # counters
        ways = ("ALIGN_RATE", "REDUCE_SUM")
    return {"title": title, "xyChart": {"dataSets": [series(each, *ways) for each in metrics]}}


WIDGETS = {
    "accelerator": chart("Accelerators in use", "accelerator/utilization"),
    "acceleratorMemory": chart(
        "Memory of accelerators in use", "accelerator/memory/utilization"
    ),
    "cpu": chart("CPU in use", "cpu/utilization"),
    "memory": chart("Memory in use", "memory/utilization"),
    "network": chart(
        "Network, bytes a second", "network/received_bytes_count", "network/sent_bytes_count"
    ),
    "ends": {
        "title": "What Vertex AI logs of jobs, their ends among it",
        "logsPanel": {
            "filter": 'resource.type="ml_job" AND resource.labels.task_name="service"',
            "resourceNames": ["projects/acme-ml-prod"],
        },
    },
}  # fmt: skip
MISSING = {
    "title": "Not on this page",
    "text": {
        "content": (
            "No metric of Google's has what a job costs, how long it was queued, or its state. "
            "`vt jobs list --stack prod` has states and times, `vt jobs compare` costs at list "
            "prices, reports of Cloud Billing what was billed."
        ),
        "format": "MARKDOWN",
    },
}


def tiles(*widgets: dict[str, Any]) -> list[dict[str, Any]]:
    """Two in a row, of 24 columns each."""
    return [
        {
            "width": 24, "height": 16, "xPos": 24 * (number % 2), "yPos": 16 * (number // 2),
            "widget": widget,
        }
        for number, widget in enumerate(widgets)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "title", "panels"),
    [
        ({}, "Training prod: gpus", list(WIDGETS)),
        ({"title": "GPUs", "panels": ["network", "cpu"]}, "GPUs", ["network", "cpu"]),
        ({"panels": ["ends"]}, "Training prod: gpus", ["ends"]),
    ],
)
def test_a_dashboard_has_its_panels_in_order_and_says_what_it_lacks(
    given: dict[str, Any], title: str, panels: list[str]
) -> None:
    text = dashboard_json(SETTINGS, "gpus", Dashboard.model_validate(given))
    layout = {"columns": 48, "tiles": tiles(*(WIDGETS[each] for each in panels), MISSING)}
    wanted = {"displayName": title, "mosaicLayout": layout}
    assert json.loads(text) == wanted
    assert text == json.dumps(wanted, sort_keys=True)


@pytest.mark.parametrize(
    ("failed", "what"),
    [
        (
            True,
            "The reason: `vt jobs show JOB --stack prod`, or without a checkout `gcloud ai "
            "custom-jobs describe JOB --project=acme-ml-prod --region=us-central1 "
            "--format='value(state,error.message)'` (a tuning job: `gcloud ai hp-tuning-jobs`).",
        ),
        (
            False,
            "What it does: `vt jobs logs JOB --stack prod`. It is paid for until it ends; `vt "
            "jobs cancel JOB --stack prod` ends it.",
        ),
    ],
)
def test_who_is_told_reads_how_to_get_the_reason(failed: bool, what: str) -> None:
    assert runbook(SETTINGS, "JOB", failed=failed) == (
        f"Job JOB in project acme-ml-prod. No log and no metric says which stack sent it.\n\n{what}"
    )
