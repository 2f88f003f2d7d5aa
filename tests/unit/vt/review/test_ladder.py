"""Ladders in a review: a line for each rung, the dearest price, and edits that submit nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.review import jobs


def request(machine: str, strategy: str) -> str:
    pool = {"machineSpec": {"machineType": machine}, "replicaCount": "1"}
    scheduling = {"strategy": strategy, "timeout": "3600s"}
    return json.dumps({"jobSpec": {"workerPoolSpecs": [pool], "scheduling": scheduling}})


def inputs(*rungs: tuple[str, str]) -> dict[str, Any]:
    (first, *others), region = rungs, "us-central1"
    ladder = [
        {"requestId": f"r{number}", "request": request(*each), "words": " ".join(each)}
        for number, each in enumerate(others, start=2)
    ]
    return {
        "submission": {"region": region, "job": "fell"},
        "requestId": "r1",
        "request": request(*first),
        "options": {"onDelete": "keep", **({"ladder": ladder} if ladder else {})},
    }


SMALL, SPOT, LARGE = (
    ("n1-standard-4", "STANDARD"),
    ("n1-standard-4", "SPOT"),
    ("n1-standard-16", "STANDARD"),
)


def test_an_edit_of_a_rung_is_told_in_words():
    old, new = inputs(SMALL, SPOT), inputs(SMALL, SPOT, LARGE)
    step: Any = SimpleNamespace(
        old=SimpleNamespace(inputs=old), new=SimpleNamespace(inputs=new), changes=True
    )
    found = jobs.differences(step)
    assert len(found) == 1
    assert "n1-standard-16 STANDARD" in str(found[0])
    assert "jobSpec" not in str(found[0])


def test_each_rung_has_its_number_its_words_and_what_it_asks_for() -> None:
    large = json.loads(request(*LARGE))
    large["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["reservationAffinity"] = {
        "reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["p/reservations/big"],
    }  # fmt: skip
    given = inputs(SMALL, SPOT, LARGE)
    given["options"]["ladder"][1]["request"] = json.dumps(large)
    given["options"]["ladder"].append("not known yet")
    small, spot = (json.loads(request(*each)) for each in (SMALL, SPOT))
    rungs = tuple(
        jobs.RungRequest(number, what, strategy, reservation, costs.of_job(each, "us-central1"))
        for number, what, strategy, reservation, each in (
            (1, "as in the job file", "STANDARD", "", small),
            (2, "n1-standard-4 SPOT", "SPOT", "", spot),
            (3, "n1-standard-16 STANDARD", "STANDARD", "big", large),
        )
    )
    [job] = jobs.job_changes(plans.plan(plans.create(plans.JOB, "training-fell", **given)))
    assert (job.ladder, job.machines) == (rungs, ("1 x n1-standard-4",))
    assert (job.pools, job.cost) == (rungs[0].cost.pools, rungs[2].cost)
    assert str(rungs[2]).startswith("1 x n1-standard-16, STANDARD, big, at most $")


def test_a_job_without_a_region_or_a_request_is_of_none() -> None:
    given = inputs(SMALL, SPOT) | {"submission": {}}
    assert jobs._ladder(given)[1].cost == costs.of_job(json.loads(request(*SPOT)), "")
    assert (jobs.request({}), jobs.request({"request": None})) == ({}, {})
