"""Who is told of what: what each section becomes, and the words of what it refuses."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from vertex_training.settings.alerts import (
    Alerts,
    Budget,
    Channel,
    Dashboard,
    StateMessages,
)

TOPIC = "projects/acme-ml-prod/topics/states"
BUS = {"channel": "bus"}
ONE = {"channels": ["oncall"], "failed": True}
BUDGET = {"billingAccount": "012345-6789AB-CDEF01", "usdPerMonth": 5}


def job(state: str | None = None) -> dict[str, Any]:
    more = {"newJobState": state} if state else {}
    return {"pubsubTopic": TOPIC, "message": {"type": "JOB_STATE_CHANGED", **more}}


def task(state: str) -> dict[str, Any]:
    message = {"type": "TASK_STATE_CHANGED", "newTaskState": state}
    return {"pubsubTopic": TOPIC, "message": message}


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ({}, (job(),)),
        ({"jobStates": ["FAILED", "SUCCEEDED"]}, (job("FAILED"), job("SUCCEEDED"))),
        ({"taskStates": ["FAILED"]}, (job(), task("FAILED"))),
        ({"jobStates": [], "taskStates": ["FAILED", "PENDING"]}, (task("FAILED"), task("PENDING"))),
        (
            {"jobStates": ["CANCELLED"], "taskStates": ["RUNNING"]},
            (job("CANCELLED"), task("RUNNING")),
        ),
    ],
)
def test_batch_tells_a_topic_of_each_state_by_itself(
    given: dict[str, Any], messages: tuple[dict[str, Any], ...]
) -> None:
    assert StateMessages.model_validate(BUS | given).notifications(TOPIC) == messages


LOOKS_BACK = "Cloud Monitoring looks back 23h30m at most"
UNTOLD = (
    "no metric and no log says how long a job waits, so no alert could fire. Remove it: `vt jobs "
    "list` shows what waits"
)


@pytest.mark.parametrize(
    ("section", "given", "said"),
    [
        (Channel, {"email": "a@b.co", "pubsub": TOPIC}, "give one of email, pubsub and existing"),
        (StateMessages, BUS | {"jobStates": ["FAILED", "FAILED"]}, "names a state twice"),
        (StateMessages, BUS | {"jobStates": []},
         "tells nothing: name states, or leave jobStates out for all"),
        (Alerts, {"channels": ["a"]}, "tells nothing: add failed: true or gpuIdleBelow"),
        (Alerts, ONE | {"pendingLongerThan": "2h"}, f"pendingLongerThan: {UNTOLD}"),
        (Alerts, ONE | {"gpuIdleBelow": "5% for 1411m"}, f"5% for 1411m: {LOOKS_BACK}"),
        (Alerts, ONE | {"gpuIdleBelow": "0% for 30m"}, "must look like 5% for 30m"),
        (Budget, BUDGET | {"thresholds": [80, 50]}, "must ascend, each once: [50, 80, 100]"),
        (Dashboard, {"panels": ["cpu", "memory", "cpu"]}, "names a panel twice"),
    ],
)  # fmt: skip
def test_what_tells_nothing_or_twice_is_refused_in_words(
    section: type[pydantic.BaseModel], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(pydantic.ValidationError) as failed:
        section.model_validate(given)
    assert [each["msg"] for each in failed.value.errors()] == [f"Value error, {said}"]
