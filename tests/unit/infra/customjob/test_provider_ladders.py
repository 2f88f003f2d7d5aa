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
from vertex_training.errors import JobRefusedError

__all__ = ["google", "home", "intents", "lookup", "service", "store"]

PROVIDER = module.CustomJobProvider()
SPOT = json.dumps({"displayName": "x", "jobSpec": {"scheduling": {"strategy": "SPOT"}}})


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
            f"the image {IMAGE} does not exist. Hint: run `vt images build titanic --stack dev`, "
            "or name another image. Nothing was cancelled."
        )
    assert asked.asked == 0


def test_the_record_has_the_reason_of_a_stopped_job(service, intents):
    PROVIDER.create(PROPS)
    assert module.stop_reason(PROPS, NAME, "id1") == ""
    record = dataclasses.replace(intents.stored.record, stopped="no accelerator worked")
    intents.write(record, 1)
    assert module.stop_reason(PROPS, NAME, "id1") == "no accelerator worked"
    assert module.stop_reason(PROPS, f"{NAME}0", "id1") == ""
