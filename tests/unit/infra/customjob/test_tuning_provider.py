"""A tuning job meets the service and the records of its kind; a job meets those of jobs."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob import provider as module
from vertex_training.customjob.google import backends, intent_store
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB

PLACE = {"project": "local-x", "region": "us-central1"}
JOB: dict[str, Any] = {"submission": PLACE, "options": {"controlBucket": "control"}}
ROBOT = "robot@acme-ml.iam.gserviceaccount.com"
TUNING: dict[str, Any] = {
    "submission": {**PLACE, "section": "tuning"},
    "options": {"controlBucket": "control", "onDelete": "keep", "impersonate": ROBOT},
}


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What clients were connected with."""
    calls: list[tuple[Any, ...]] = []
    for client in (intent_store, backends):
        monkeypatch.setattr(client, "connect", lambda *arguments: calls.append(arguments))
    return calls


def test_each_kind_and_account_has_a_service_and_records_of_its_own(connected: list[Any]) -> None:
    for props in (JOB, TUNING):
        module._service(props)
        module._intents(props)
    assert connected == [
        ("local-x", "us-central1", CUSTOM_JOB, "", "", ()),
        ("local-x", "control", "", ""),
        ("local-x", "us-central1", TUNING_JOB, ROBOT, "", ()),
        ("local-x", "control", "tuning/", ROBOT),
    ]
