"""A job with rungs, as the provider of ``CustomJob`` has it: inputs, outputs, changes, the end."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.unit.infra.customjob.google.test_connections import (
    INSTANCES,
    PROJECT,
    add_tensorboard,
    home,
    store,
)
from tests.unit.infra.customjob.test_provider import (
    NAME,
    OPTIONS,
    PLACE,
    PROPS,
    google,
    intents,
    lookup,
    service,
)
from vertex_training.customjob import provider as module
from vertex_training.customjob.google import utilization
from vertex_training.customjob.protocol.idle import IdleRule, IdleStop, Reading
from vertex_training.errors import JobRefusedError

__all__ = ["google", "home", "intents", "lookup", "service", "store"]

PROVIDER = module.CustomJobProvider()
SPOT = json.dumps({"displayName": "x", "jobSpec": {"scheduling": {"strategy": "SPOT"}}})
KEPT = {"controlBucket": "control", "onDelete": "keep"}


def with_ladder(*ids: str, first: str = "id1", **options: Any) -> dict[str, Any]:
    """Inputs of the job with rungs of these ids after the first."""
    ladder = [{"requestId": each, "request": SPOT, "words": "strategy SPOT"} for each in ids]
    return PROPS | {"requestId": first, "options": {**OPTIONS, **options, "ladder": ladder}}


def test_rungs_have_the_number_of_the_tensorboard(service, store):
    add_tensorboard(store, "7", "dev")
    body = json.dumps({"jobSpec": {"tensorboard": f"{INSTANCES}/0"}})
    job = PROPS | {"submission": PLACE | {"project": PROJECT}, "request": body}
    [rung] = module.ladder_of(job).rungs
    assert json.loads(rung.body)["jobSpec"]["tensorboard"] == f"{INSTANCES}/7"


STATE = {
    "state": "JOB_STATE_PENDING",
    "submission": PLACE,
    "requestId": "id1",
    "options": KEPT,
    "ladder": ["id1", "id2"],
}


def test_the_first_rung_counts_where_the_turn_cannot_be_read_and_a_line_says_so(capsys):
    declared = with_ladder("id3")
    assert PROVIDER.diff(NAME, STATE, declared).replaces == []
    line = "vt: job 'titanic': which rung it is on could not be read: nobody is asked here\n"
    assert capsys.readouterr().err == line


IMAGE = "us-central1-docker.pkg.dev/acme-ml-dev/training/titanic:1"
WITH_IMAGE = PROPS | {
    "requestId": "id2",
    "request": json.dumps(
        {"jobSpec": {"workerPoolSpecs": [{"containerSpec": {"imageUri": IMAGE}}]}}
    ),
}


@pytest.mark.parametrize("there", [True, False])
def test_a_preview_of_a_replacement_asks_only_what_holds_for_the_deployment(
    service, google, monkeypatch, there
):
    outs, asked = PROVIDER.create(PROPS).outs, google(yes=False)
    monkeypatch.setattr(asked, "has_image", lambda *_: there, raising=False)
    if there:
        assert PROVIDER.diff(NAME, outs, WITH_IMAGE).replaces == ["request"]
    else:
        with pytest.raises(JobRefusedError) as refused:
            PROVIDER.diff(NAME, outs, WITH_IMAGE)
        assert str(refused.value) == (
            f"there is no image {IMAGE}. Hint: vt images build titanic --stack dev, or name "
            "another. Nothing was cancelled."
        )
    assert asked.asked == 0


ROBOT = "robot@acme-ml.iam.gserviceaccount.com"


def test_a_job_is_stopped_as_its_inputs_say_by_the_account_that_acts(service, intents, monkeypatch):
    asked: list[Any] = []

    def read(*arguments: Any) -> Reading:
        asked.append(arguments)
        return Reading(1.0, ())

    monkeypatch.setattr(utilization, "read", read)
    options = {**OPTIONS, "idleStop": "5% for 30m", "impersonate": ROBOT}
    found = module.idle_stop_of(PROPS | {"options": options})
    assert found is not None
    assert found == IdleStop(IdleRule("5% for 30m"), service, intents, found.read)
    assert found.read(NAME, 60.0) == Reading(1.0, ())
    assert asked == [("acme-ml-dev", NAME, 60.0, ROBOT)]
    assert module.idle_stop_of(PROPS) is None


def test_the_record_has_the_reason_of_a_stopped_job(service, intents):
    PROVIDER.create(PROPS)
    assert module.stop_reason(PROPS, NAME, "id1") == ""
    record = dataclasses.replace(intents.stored.record, stopped="no accelerator worked")
    intents.write(record, 1)
    assert module.stop_reason(PROPS, NAME, "id1") == "no accelerator worked"
    assert module.stop_reason(PROPS, f"{NAME}0", "id1") == ""
