"""Alert policies as they were declared: what is read of them, and which cannot be judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localgcp.alerting import policies
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, StoredResource

ID = "projects/local-training/alertPolicies/7"
TIME = "2026-11-24T10:00:00+00:00"
FILTER = 'resource.type="ml_job" AND textPayload="Job failed."'
MATCH: dict[str, Any] = {
    "filter": FILTER,
    "labelExtractors": {
        "job": "EXTRACT(resource.labels.job_id)",
        "task": "EXTRACT(resource.labels.task_name)",
    },
}


def declared(type_: str = ALERT_POLICY, **inputs: Any) -> StoredResource:
    given = {"conditions": [{"conditionMatchedLog": MATCH}], "displayName": "Failed"} | inputs
    outputs = {"creationRecords": [{"mutateTime": TIME}, {"mutateTime": "2020-01-01T00:00:00Z"}]}
    return StoredResource(type_, ID, "local-training", given, outputs)


def test_all_of_a_policy_is_read() -> None:
    given = declared(
        notificationChannels=["c1", "c2"],
        documentation={"content": "look"},
        alertStrategy={"notificationRateLimit": {"period": "90.5s"}},
        enabled=True,
    )
    [found], others = policies.read([given])
    assert others == {}
    assert (found.id, found.project, found.title) == (ID, "local-training", "Failed")
    assert found.created == datetime(2026, 11, 24, 10, tzinfo=UTC)
    assert (found.channels, found.text) == (("c1", "c2"), "look")
    assert found.pause == timedelta(seconds=90.5)
    [(log_filter, labels)] = found.filters
    assert log_filter.equal == {"resource.type": "ml_job", "textPayload": "Job failed."}
    assert labels == {"job": "resource.labels.job_id", "task": "resource.labels.task_name"}


def test_what_a_policy_may_leave_out_is_empty() -> None:
    given = declared(displayName="", conditions=[{"conditionMatchedLog": {"filter": ""}}])
    [found], _ = policies.read([given])
    assert (found.title, found.channels, found.text) == (ID, (), "")
    assert found.pause == timedelta(0)
    [(log_filter, labels)] = found.filters
    assert (log_filter.equal, labels) == ({}, {})


@pytest.mark.parametrize(
    ("given", "others"),
    [
        (declared(BUDGET), {"Failed": "nothing costs anything here"}),
        (declared(BUDGET, displayName=None), {ID: "nothing costs anything here"}),
        (declared(enabled=False), {}),
        (declared(CHANNEL), {}),
        (declared(conditions=[{"conditionThreshold": {}}]),
         {"Failed": "there are no metrics here"}),
        (declared(conditions=[{"conditionMatchedLog": {**MATCH, "labelExtractors": {
            "a": "REGEXP_EXTRACT(textPayload)"}}}]),
         {"Failed": "the extractor REGEXP_EXTRACT(textPayload) is none that the local cloud "
                    "knows"}),
        (declared(conditions=[{"conditionMatchedLog": {"filter": 'resource.type="gce_instance"'}}]),
         {"Failed": "lines of ml_job alone are judged, not of gce_instance"}),
        (declared(conditions=[{"conditionMatchedLog": {"filter": "severity>=ERROR"}}]),
         {"Failed": "Unparseable filter: 'severity' (the local cloud knows few)."}),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_not_and_it_is_said_why(
    given: StoredResource, others: dict[str, str]
) -> None:
    assert policies.read([given]) == ([], others)


@pytest.mark.parametrize(
    "field",
    [
        *("resource.type", "resource.labels.job_id", "resource.labels.task_name"),
        *("resource.labels.project_id", "textPayload", "logName"),
    ],
)
def test_a_filter_may_compare_what_a_line_of_a_job_has(field: str) -> None:
    given = declared(conditions=[{"conditionMatchedLog": {"filter": f'{field}="ml_job"'}}])
    [found], _ = policies.read([given])
    assert found.filters[0][0].equal == {field: "ml_job"}
