"""Alert policies as they were declared: what is read of them, and which cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.alerting import policies
from localgcp.inventory.store import ALERT_POLICY, BUDGET, StoredResource

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


@pytest.mark.parametrize(
    ("given", "others"),
    [
        (declared(BUDGET), {"Failed": "nothing costs anything here"}),
        (declared(enabled=False), {}),
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
