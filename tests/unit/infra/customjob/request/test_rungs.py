"""Rungs of a ladder: what each asks for, and that each is judged as a job file is."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pydantic
import pytest

from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFile, Submission
from vertex_training.customjob.request.rungs import RungOverrides
from vertex_training.customjob.rules.context import FILE_ONLY, JobLimits, ReservationRequest
from vertex_training.errors import Location, Problem
from vertex_training.settings.ladder import Rung as RungSettings

A100 = "{machineType: a2-highgpu-1g, acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 1}"
FILE = f"""
scheduling: {{strategy: FLEX_START, maxWaitDuration: 3600s, timeout: 3600s}}
baseOutputDirectory: {{outputUriPrefix: "gs://acme-out/fell/${{job.requestId}}"}}
serviceAccount: trainer-dev@p.iam.gserviceaccount.com
workerPoolSpecs:
  - machineSpec: {A100}
    replicaCount: 1
    containerSpec: &task {{imageUri: "us-docker.pkg.dev/p/r/i@sha256:{"0" * 64}"}}
  - machineSpec: {A100}
    replicaCount: 2
    containerSpec: *task
"""
WHO = Submission("acme-ml-dev", "us-central1", "dev", "fell", 1)
NAME = "projects/acme-ml-dev/zones/us-central1-a/reservations/big"
AFFINITY = {
    "reservationAffinityType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": [NAME],
}
L4 = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}


def check(*fields: dict[str, Any], context: Any = FILE_ONLY) -> job_file.JobFileResult:
    ladder = tuple(
        RungOverrides(each, AFFINITY if "reservation" in each else None) for each in fields
    )
    context = dataclasses.replace(context, region="us-central1")
    return job_file.check_ladder(
        JobFile(FILE.encode(), "jobs/x.yaml", WHO, ladder=ladder), {}, context
    )


def spec(*fields: dict[str, Any]) -> list[dict[str, Any]]:
    result = check(*fields)
    assert result.request, result.errors
    return [each.message["jobSpec"] for each in result.request.rungs]


def test_a_job_file_is_the_first_rung_and_keeps_its_identity():
    plain, laddered = check().request, check({"strategy": "SPOT"}).request
    assert plain
    assert laddered
    assert (plain.request_id, plain.body) == (laddered.request_id, laddered.body)
    assert [each.words for each in laddered.rungs] == ["", "strategy SPOT"]
    ids = [each.request_id for each in laddered.rungs]
    assert len(set(ids)) == 2
    for each in laddered.rungs:
        assert each.output_directory == f"gs://acme-out/fell/{each.request_id}"


def test_another_machine_is_that_of_all_equal_pools():
    _, other = spec(L4)
    assert [pool["machineSpec"] for pool in other["workerPoolSpecs"]] == [L4, L4]
    assert other["scheduling"]["strategy"] == "FLEX_START"


def test_a_reservation_is_asked_for_with_standard_and_by_one_rung_alone():
    _, reserved, after = spec({"reservation": NAME}, {"strategy": "SPOT"})
    pools = reserved["workerPoolSpecs"]
    assert [pool["machineSpec"]["reservationAffinity"] for pool in pools] == [AFFINITY] * 2
    assert reserved["scheduling"] == {"timeout": "3600s"}
    assert "reservationAffinity" not in after["workerPoolSpecs"][0]["machineSpec"]


def test_every_rung_is_judged_by_the_rules_and_named():
    result = check({"strategy": "STANDARD"}, {"machineType": "n1-standard-4"})
    assert result.request is None
    assert {problem.rule for problem in result.errors} == {"flex-start-gpu"}
    assert all(p.what.startswith("rung 3 (n1-standard-4): ") for p in result.errors)
    assert all(p.location.file == "jobs/x.yaml" for p in result.errors)


SCARCE = {
    "strategy": "STANDARD", "machineType": "a3-megagpu-8g",
    "acceleratorType": "NVIDIA_H100_MEGA_80GB", "acceleratorCount": 8,
}  # fmt: skip


def test_a_warning_about_a_rung_names_it_and_goes_with_the_request():
    title = "rung 2 (strategy STANDARD, a3-megagpu-8g, 8 x NVIDIA_H100_MEGA_80GB)"
    result = check(SCARCE, {"strategy": "SPOT"})
    assert result.errors == ()
    assert result.request
    assert result.warnings == result.request.warnings == tuple(
        Problem(
            f"{title}: a shared reservation or SPOT is recommended for these machines",
            "NVIDIA_H100_MEGA_80GB",
            "without one the job may wait in the queue for long",
            ("workerPoolSpecs", pool, "machineSpec"),
            Location("jobs/x.yaml", line, 18),
            "scarce-accelerator",
            "warning",
        )
        for pool, line in ((0, 6), (1, 9))
    )  # fmt: skip
    levels = dataclasses.replace(FILE_ONLY, levels={"scarce-accelerator": "error"})
    refused = check(SCARCE, context=levels)
    assert (refused.request, refused.warnings) == (None, ())
    assert [each.what.partition(": ")[0] for each in refused.errors] == [title] * 2


def test_reservations_of_every_rung_are_requests_of_the_job():
    asked = check({"strategy": "SPOT"}, {"reservation": NAME}).facts.reservation_requests
    assert asked == tuple(
        ReservationRequest((NAME,), "a2-highgpu-1g", "NVIDIA_TESLA_A100", 1, machines)
        for machines in (1, 2)
    )


def test_limits_hold_for_every_rung_and_the_dearest_counts():
    cheap = check({"strategy": "SPOT"}).request
    dear = check({"strategy": "SPOT"}, {"strategy": "STANDARD"}).request
    assert cheap
    assert dear
    assert dear.cost.worst_case == max(
        job_file.costs.of_job(each.message, "us-central1").worst_case or 0 for each in dear.rungs
    )
    context = dataclasses.replace(FILE_ONLY, limits=JobLimits(strategies=("FLEX_START",)))
    wrong = check({"strategy": "SPOT"}, context=context)
    assert [problem.rule for problem in wrong.errors] == ["limit-strategy"]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            [{"strategy": "FLEX_START", "maxWaitDuration": "3600s"}],
            "rung 2 (strategy FLEX_START, waits 3600s) asks for what the job file asks for",
        ),
        (
            [{"strategy": "SPOT"}, {"strategy": "SPOT"}],
            "rung 3 (strategy SPOT) asks for what rung 2 (strategy SPOT) asks for",
        ),
    ],
)
def test_a_rung_that_asks_for_the_same_is_refused(fields: Any, what: str):
    place = Location("jobs/x.yaml")
    assert check(*fields).errors == (
        Problem(what, hint="remove it, or change it", location=place, rule="ladder"),
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"region": "europe-west4"}, "buckets, network, key and images of the job are there"),
        ({}, "changes nothing"),
        ({"strategy": "ON_DEMAND"}, "STANDARD"),
        ({"maxWaitDuration": "1h"}, "3600s"),
        ({"acceleratorCount": 0}, "greater than or equal to 1"),
        ({"timeout": "3600s"}, "Extra inputs"),
    ],
)
def test_settings_of_a_rung_that_nobody_meant(given: dict[str, Any], said: str):
    with pytest.raises(pydantic.ValidationError, match=said):
        RungSettings.model_validate(given)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"strategy": "SPOT"}, "strategy SPOT"),
        ({"maxWaitDuration": "3600s"}, "waits 3600s"),
        ({"machineType": "n1-standard-4"}, "n1-standard-4"),
        (L4, "g2-standard-8, 1 x NVIDIA_L4"),
        ({"acceleratorCount": 2}, "2 x accelerators"),
        ({"acceleratorType": "NVIDIA_L4"}, "NVIDIA_L4"),
        ({"reservation": NAME}, "reservation big"),
        (
            {"strategy": "FLEX_START", "maxWaitDuration": "60s", **L4, "reservation": NAME},
            "strategy FLEX_START, waits 60s, g2-standard-8, 1 x NVIDIA_L4, reservation big",
        ),
        ({}, ""),
    ],
)
def test_a_rung_in_a_few_words(fields: dict[str, Any], words: str):
    assert str(RungOverrides(fields)) == words


T4 = {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
CPU = {"machineType": "n1-standard-4"}
FLEX = {"strategy": "FLEX_START", "maxWaitDuration": "3600s"}


def message(*machines: Any, **scheduling: str) -> dict[str, Any]:
    pools = [{"machineSpec": machine, "replicaCount": 1} for machine in machines]
    given = {"scheduling": scheduling} if scheduling else {}
    return {"displayName": "x", "jobSpec": {"workerPoolSpecs": pools, **given}}


@pytest.mark.parametrize(
    ("before", "fields", "after"),
    [
        # A machine type stands for itself: what was attached to the other one is left out.
        (message(T4, T4), CPU, message(CPU, CPU)),
        (message(T4), L4, message(L4)),
        # Without one, what the rung names is exchanged and the rest stays.
        (message(T4), {"acceleratorCount": 1}, message(T4 | {"acceleratorCount": 1})),
        (
            message(T4),
            {"acceleratorType": "NVIDIA_TESLA_V100"},
            message(T4 | {"acceleratorType": "NVIDIA_TESLA_V100"}),
        ),
        # Pools of another machine than the first one's keep theirs, also where it differs by one
        # field alone.
        (message(T4, CPU, T4), L4, message(L4, CPU, L4)),
        (
            message(T4, T4 | {"acceleratorCount": 4}),
            L4,
            message(L4, T4 | {"acceleratorCount": 4}),
        ),
        (message(T4, None), L4, message(L4, None)),
        # The job file's own reservation is not asked for on any later rung.
        (message(T4 | {"reservationAffinity": {"x": "y"}}), {"strategy": "SPOT"},
         message(T4, strategy="SPOT")),
        (message(T4), {"reservation": NAME}, message(T4 | {"reservationAffinity": AFFINITY})),
        # A strategy or a reservation sets aside how the job file waits; its timeout stays.
        (message(T4, **FLEX), {"strategy": "SPOT"}, message(T4, strategy="SPOT")),
        (message(T4, **FLEX, timeout="60s"), {"strategy": "SPOT"},
         message(T4, timeout="60s", strategy="SPOT")),
        (message(T4, **FLEX), {"reservation": NAME},
         message(T4 | {"reservationAffinity": AFFINITY})),
        (message(T4, **FLEX), {"maxWaitDuration": "60s"},
         message(T4, **FLEX | {"maxWaitDuration": "60s"})),
        (message(T4, **FLEX), {"acceleratorCount": 1},
         message(T4 | {"acceleratorCount": 1}, **FLEX)),
        # Nothing to lay over.
        ({"displayName": "x"}, L4, {"displayName": "x"}),
        ({"jobSpec": {}}, L4, {"jobSpec": {}}),
        ({"jobSpec": {"workerPoolSpecs": [{}, {"machineSpec": T4}]}}, L4,
         {"jobSpec": {"workerPoolSpecs": [{}, {"machineSpec": L4}]}}),
    ],
)  # fmt: skip
def test_a_rung_laid_over_a_message(before: Any, fields: dict[str, Any], after: Any):
    untouched = copy.deepcopy(before)
    rung = RungOverrides(fields, AFFINITY if "reservation" in fields else None)
    assert rung.of(before) == after
    assert before == untouched
