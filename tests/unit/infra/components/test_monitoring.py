"""Every setting of channels, alerts and the budget, and what watches them."""

import pytest

from tests.unit.infra.recorder import registered

LABELS = {"managed-by": "pulumi", "stack": "dev", "team": "ml-platform"}
CHANNELS = {
    "oncall": {"email": "ml-oncall@example.com"},
    "bus": {"pubsub": "projects/acme-bus-1/topics/alerts"},
    "slack": {"existing": "projects/acme-ml-dev/notificationChannels/123"},
}
BUDGET = {"billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 2000, "channels": ["oncall"]}


@pytest.fixture(scope="module")
def found():
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulumi.log.info", lambda text, *_, **__: said.append(text))
        made = registered(
            "dev",
            jobs={},
            channels=CHANNELS,
            alerts={
                "channels": ["oncall", "bus", "slack"],
                "failed": True,
                "gpuIdleBelow": "5% for 2h",
            },
            budget=BUDGET | {"thresholds": [50, 120]},
            dashboards={"gpus": {"title": "GPUs"}},
        )
    return {name: row for name, row in made.items() if name.startswith("monitoring-")}, said


def test_channels_are_made_but_for_those_that_are_there(found):
    made, _ = found
    type_ = "gcp:monitoring/notificationChannel:NotificationChannel"
    common = {"project": "acme-ml-dev", "userLabels": LABELS}
    assert {name: row for name, row in made.items() if row[0] == type_} == {
        "monitoring-channel-oncall": (
            type_,
            common
            | {
                "displayName": "oncall (stack dev)",
                "type": "email",
                "labels": {"email_address": "ml-oncall@example.com"},
            },
        ),
        "monitoring-channel-bus": (
            type_,
            common
            | {
                "displayName": "bus (stack dev)",
                "type": "pubsub",
                "labels": {"topic": "projects/acme-bus-1/topics/alerts"},
            },
        ),
    }


def policy(found, name):
    type_, inputs = found[0][f"monitoring-{name}"]
    assert type_ == "gcp:monitoring/alertPolicy:AlertPolicy"
    inputs = dict(inputs)
    assert len(inputs.pop("notificationChannels")) == 3
    documentation = inputs.pop("documentation")
    assert documentation["mimeType"] == "text/markdown"
    assert {key: inputs.pop(key) for key in ("project", "combiner", "userLabels")} == {
        "project": "acme-ml-dev",
        "combiner": "OR",
        "userLabels": LABELS,
    }
    return inputs, documentation["content"]


def test_a_job_that_failed_is_told_once_with_where_the_reason_is(found):
    inputs, content = policy(found, "failed")
    assert inputs == {
        "displayName": "A job failed (dev)",
        "conditions": [
            {
                "displayName": "Vertex AI logged that a job failed",
                "conditionMatchedLog": {
                    "filter": 'resource.type="ml_job" AND resource.labels.task_name="service" '
                    'AND textPayload="Job failed."',
                    "labelExtractors": {"job_id": "EXTRACT(resource.labels.job_id)"},
                },
            }
        ],
        "alertStrategy": {"autoClose": "1800s", "notificationRateLimit": {"period": "300s"}},
    }
    job = "${log.extracted_label.job_id}"
    assert content.startswith(f"Job {job} in project acme-ml-dev.")
    assert f"`vt jobs show {job} --stack dev`" in content
    assert "vt jobs cancel" not in content


def test_accelerators_that_do_nothing_are_told_with_how_to_end_the_job(found):
    inputs, content = policy(found, "gpu-idle")
    [condition] = inputs.pop("conditions")
    assert inputs == {
        "displayName": "Accelerators of a job below 5% for 2h (dev)",
        "alertStrategy": {"autoClose": "1800s"},
    }
    threshold = condition["conditionThreshold"]
    assert "accelerator/utilization" in threshold.pop("filter")
    assert condition["displayName"] == "No replica above 5% for 120 minutes"
    assert threshold == {
        "comparison": "COMPARISON_LT",
        "thresholdValue": 0.05,
        "duration": "7200s",
        "evaluationMissingData": "EVALUATION_MISSING_DATA_INACTIVE",
        "aggregations": [
            {
                "alignmentPeriod": "300s",
                "perSeriesAligner": "ALIGN_MEAN",
                "crossSeriesReducer": "REDUCE_MAX",
                "groupByFields": ["resource.label.job_id"],
            }
        ],
        "trigger": {"count": 1},
    }
    assert "`vt jobs cancel ${resource.label.job_id} --stack dev` ends it" in content


def test_a_budget_is_of_the_project_by_its_number_and_of_a_month(found):
    type_, inputs = found[0]["monitoring-budget"]
    assert type_ == "gcp:billing/budget:Budget"
    inputs = dict(inputs)
    assert len(inputs.pop("allUpdatesRule")["monitoringNotificationChannels"]) == 1
    assert inputs == {
        "billingAccount": "012345-6789AB-CDEF01",
        "displayName": "Training dev: project acme-ml-dev",
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "2000"}},
        "budgetFilter": {"projects": ["projects/210987654321"], "calendarPeriod": "MONTH"},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 1.2}],
    }


def test_a_dashboard_is_the_projects(found):
    type_, inputs = found[0]["monitoring-dashboard-gpus"]
    assert type_ == "gcp:monitoring/dashboard:Dashboard"
    assert inputs["project"] == "acme-ml-dev"
    assert '"displayName": "GPUs"' in inputs["dashboardJson"]


def test_the_owner_of_a_topic_is_told_who_writes_to_it(found):
    [line] = [text for text in found[1] if "topics" in text]
    assert line == (
        "Alerts reach topic alerts once its owner has run: gcloud pubsub topics "
        "add-iam-policy-binding alerts --project=acme-bus-1 --member=serviceAccount:"
        "service-210987654321@gcp-sa-monitoring-notification.iam.gserviceaccount.com "
        "--role=roles/pubsub.publisher"
    )
