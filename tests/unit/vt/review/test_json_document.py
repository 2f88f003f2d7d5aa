"""The JSON of a review, whole: what a program reads of each thing that a report has."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.costs import JobCost, PoolCost, Rate
from vertex_training.customjob.batch.offers import Offer
from vertex_training.errors import Location, Problem
from vertex_training.plan.access import Access
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import (
    CheckpointObservation,
    Diagnostic,
    JobObservation,
    PolicyViolation,
)
from vertex_training_cli.review import json_report, report
from vertex_training_cli.review.capacity import ReservationChange, ReservationCost
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.jobs import JobChange, RungRequest
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport
from vertex_training_cli.review.schedules import ScheduleChange

RATE: Final = Rate(0.5, "skypilot-v8", "undated", "us-central1", exact=True)
PRICE: Final = {
    "usd": 0.5, "source": "skypilot-v8", "date": "undated", "region": "us-central1", "exact": True,
}  # fmt: skip
PLAIN: Final = PoolCost(0, "n1-standard-4", "", 0, 1, None)
GPUS: Final = PoolCost(1, "n1-standard-4", "NVIDIA_TESLA_T4", 2, 3, RATE)
COST: Final = JobCost((GPUS,), 7200.0, default_timeout=False)
DEAR: Final = JobCost((GPUS,), 14400.0, default_timeout=True)
CLOSED: Final = {
    "name": "a", "action": "submit", "region": "us-central1", "strategy": "STANDARD",
    "account": "t@acme", "images": ["x/y:1"], "reservation": None, "network": None, "ladder": None,
    "idleStop": None, "hourlyUsd": 1.5, "timeoutSeconds": 7200.0, "defaultTimeout": False,
    "worstCaseUsd": 3.0, "worstCaseUsdBefore": None, "previousState": None, "now": None,
    "differences": [],
}  # fmt: skip
POOL: Final = {
    "index": 1, "machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4",
    "acceleratorCount": 2, "machines": 3, "hourlyUsd": 1.5, "price": PRICE,
}  # fmt: skip
OFFERS: Final = [
    {"backend": "vertex", "worstCaseUsd": 3.0, "timeoutSeconds": 7200.0, "attempts": 1,
     "refusal": None},
    {"backend": "batch", "worstCaseUsd": None, "timeoutSeconds": None, "attempts": None,
     "refusal": "it has no such machine"},
]  # fmt: skip


def job(**given: Any) -> JobChange:
    offers = (Offer("vertex", COST), Offer("batch", None, "it has no such machine"))
    values: dict[str, Any] = {
        "name": "a", "action": "submit", "region": "us-central1", "strategy": "STANDARD",
        "reservation": "", "account": "t@acme", "network": "", "images": ("x/y:1",),
        "cost": COST, "offers": offers, "differences": (), "previous_state": "",
    }  # fmt: skip
    return JobChange(**{**values, **given})


def with_(**given: Any) -> ReviewReport:
    """An empty report with these."""
    return dataclasses.replace(report.build(plans.plan(), source="here"), **given)


def written(**given: Any) -> dict[str, Any]:
    return json.loads(json_report.render(with_(**given)))


def test_a_job_without_anything_has_null_for_it() -> None:
    [found] = written(jobs=(job(),))["jobs"]
    assert found == CLOSED | {"pools": [POOL], "offers": OFFERS}


def test_a_job_with_everything_has_all_of_it() -> None:
    now = JobObservation("RUNNING", 60.0, 1.25, "epoch 3", CheckpointObservation(30.0))
    given = job(
        action="replace", reservation="h100", network="projects/1/global/networks/x",
        cost_before=DEAR, previous_state="SUCCEEDED", idle_stop="5% for 30m", now=now,
        differences=(FieldDifference("run", "1", "2"),),
        ladder=(RungRequest(1, "as the file says", "SPOT", "", COST),
                RungRequest(2, "strategy", "STANDARD", "h100", DEAR)),
        cost=DEAR,
    )  # fmt: skip
    [found] = written(jobs=(given,))["jobs"]
    rung = {"rung": 1, "what": "as the file says", "strategy": "SPOT", "reservation": None,
            "worstCaseUsd": 3.0}  # fmt: skip
    second = {"rung": 2, "what": "strategy", "strategy": "STANDARD", "reservation": "h100",
              "worstCaseUsd": 6.0}  # fmt: skip
    assert found == CLOSED | {
        "pools": [POOL], "offers": OFFERS, "action": "replace", "reservation": "h100",
        "network": "projects/1/global/networks/x", "worstCaseUsdBefore": 6.0, "worstCaseUsd": 6.0,
        "timeoutSeconds": 14400.0, "defaultTimeout": True, "previousState": "SUCCEEDED",
        "idleStop": "5% for 30m", "ladder": [rung, second],
        "differences": [{"path": "run", "old": "1", "new": "2"}],
        "now": {"state": "RUNNING", "seconds": 60.0, "usdSoFar": 1.25, "lastLine": "epoch 3",
                "checkpointSeconds": 30.0},
    }  # fmt: skip


def test_a_job_that_nobody_could_look_into_has_no_line_and_no_checkpoint() -> None:
    [found] = written(jobs=(job(now=JobObservation("PENDING")),))["jobs"]
    assert found["now"] == {
        "state": "PENDING", "seconds": 0.0, "usdSoFar": None, "lastLine": None,
        "checkpointSeconds": None,
    }  # fmt: skip


def test_a_machine_without_a_price_makes_the_job_one_without_a_price() -> None:
    both = JobCost((PLAIN, GPUS), 3600.0, default_timeout=False)
    found = written(jobs=(job(cost=both), job(name="b"), job(name="c", action="keep", cost=both)))
    assert found["unpricedJobs"] == ["a"]
    assert found["worstCaseUsd"] == 3.0
    assert found["jobs"][0]["worstCaseUsd"] is None
    assert found["jobs"][0]["pools"] == [
        {"index": 0, "machineType": "n1-standard-4", "acceleratorType": None,
         "acceleratorCount": 0, "machines": 1, "hourlyUsd": None, "price": None},
        POOL,
    ]  # fmt: skip


@pytest.mark.parametrize(("usd", "shown"), [(0.5, 3.0), (1.0 / 3, 2.0), (0.123456, 0.74)], ids=str)
def test_the_worst_case_is_in_cents(usd: float, shown: float) -> None:
    pool = dataclasses.replace(GPUS, rate=dataclasses.replace(RATE, usd=usd))
    cost = JobCost((pool,), 7200.0, default_timeout=False)
    assert written(jobs=(job(cost=cost),))["worstCaseUsd"] == shown


def test_a_tuning_job_has_its_trials_and_others_do_not() -> None:
    tuned = dataclasses.replace(COST, trials=8, parallel=2)
    plain, found = written(jobs=(job(), job(name="b", cost=tuned)))["jobs"]
    assert "trials" not in plain
    assert found["trials"] == {"max": 8, "parallel": 2}
    assert (found["hourlyUsd"], found["worstCaseUsd"]) == (3.0, 24.0)


def test_a_reservation_is_told_as_it_is_afterwards_or_was() -> None:
    two = ReservationCost("r", "us-central1-a", "n1-standard-4", 2, RATE)
    three = dataclasses.replace(two, machines=3)
    unknown = ReservationCost("u", "us-central1-b", "z9-none", 0, None)
    place = {"name": "r", "zone": "us-central1-a", "machineType": "n1-standard-4", "price": PRICE}
    before = place | {"machines": 2, "hourlyUsd": 1.0}
    after = place | {"machines": 3, "hourlyUsd": 1.5}
    changes = [(two, three), (two, None), (None, three), (None, unknown)]
    found = written(reservations=tuple(ReservationChange(*each) for each in changes))
    assert found["reservations"] == [
        after | {"deleted": False, "monthlyUsdMore": 365.0, "before": before},
        before | {"deleted": True, "monthlyUsdMore": -730.0, "before": before},
        after | {"deleted": False, "monthlyUsdMore": 1095.0, "before": None},
        {"name": "u", "zone": "us-central1-b", "machineType": "z9-none", "machines": None,
         "hourlyUsd": None, "price": None, "deleted": False, "monthlyUsdMore": None,
         "before": None},
    ]  # fmt: skip


def test_rights_are_by_what_becomes_of_them() -> None:
    everybody = IamBinding("allUsers", "roles/x", "bucket", "data")
    reader = IamBinding("group:a@b.example", "roles/y", "secret", "key", "until 2027", "asked")
    found = written(gained=(everybody,), lost=(reader,), kept=(reader, everybody))
    open_ = {"member": "allUsers", "role": "roles/x", "kind": "bucket", "target": "data",
             "condition": None, "public": True, "reason": None}  # fmt: skip
    given = {"member": "group:a@b.example", "role": "roles/y", "kind": "secret", "target": "key",
             "condition": "until 2027", "public": False, "reason": "asked"}  # fmt: skip
    assert found["rights"] == {"gained": [open_], "lost": [given], "kept": [given, open_]}


def test_policies_are_told_with_their_levels_and_what_they_found() -> None:
    found = written(
        packs=("acme",), policies=30, levels={"bucket-versioned": "advisory"},
        violations=(PolicyViolation("p", "acme", "mandatory", "no", "urn:x", "high"),
                    PolicyViolation("q", "acme", "advisory", "hm")),
    )  # fmt: skip
    assert found["policies"] == {
        "packs": ["acme"], "count": 30, "levels": {"bucket-versioned": "advisory"},
        "violations": [
            {"policy": "p", "pack": "acme", "level": "mandatory", "severity": "high",
             "resource": "urn:x", "message": "no"},
            {"policy": "q", "pack": "acme", "level": "advisory", "severity": None,
             "resource": None, "message": "hm"},
        ],
        "lowered": [],
    }  # fmt: skip


def test_a_mistake_has_its_place_value_and_hint_and_a_diagnostic_is_its_text() -> None:
    place = Location("jobs/a.yaml", 3, 4)
    problem = Problem("is wrong", "x", "write y", ("spec", "a"), place, rule="some-rule")
    found = written(
        problems=(problem,), errors=(Diagnostic("error", "broke"),),
        warnings=(Diagnostic("warning", "look"),), notes=(Diagnostic("info", "by the way"),),
    )  # fmt: skip
    [told] = found["problems"]
    assert told == {
        "where": "jobs/a.yaml:3:4", "what": "spec.a: is wrong", "got": "x", "hint": "write y",
        "rule": "some-rule",
    }  # fmt: skip
    assert (found["errors"], found["warnings"], found["notes"]) == (
        ["broke"], ["look"], ["by the way"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "name", "code"),
    [
        (ReviewOutcome.CLEAN, "clean", 0),
        (ReviewOutcome.FAILED, "failed", 1),
        (ReviewOutcome.FORBIDDEN, "forbidden", 3),
        (ReviewOutcome.OVER_LIMIT, "over-limit", 4),
        (ReviewOutcome.DIFFERENT, "different", 5),
    ],
)
def test_the_outcome_is_a_word_and_the_exit_code(
    outcome: ReviewOutcome, name: str, code: int
) -> None:
    found = written(outcome=outcome)
    assert (found["outcome"], found["exitCode"]) == (name, code)


def test_a_document_is_of_version_1_and_ends_with_a_line_break() -> None:
    text = json_report.render(with_(expected="", preflight="", source="été"))
    found = json.loads(text)
    assert text.startswith('{\n  "version": 1,\n')
    assert text.endswith("\n}\n")
    assert '"source": "été"' in text
    assert (found["expected"], found["preflight"], "schedules" in found) == (None, None, False)
    given = written(expected="0" * 64, preflight="41 asked")
    assert (given["expected"], given["preflight"]) == ("0" * 64, "41 asked")


def test_a_report_of_nothing_has_every_key_in_its_order() -> None:
    assert list(written()) == [
        *("version", "verdict", "answers", "outcome", "exitCode", "worstCaseUsd", "unpricedJobs"),
        *("stack", "project", "region", "source", "digest", "expected", "jobs", "unseenImages"),
        *("images", "otherImages", "models", "endpoints", "snapshots", "watching"),
        *("reservations", "reachability", "unjudgedTypes", "destroyed", "protected", "objects"),
        *("changes", "unchanged", "problems", "errors", "notes", "warnings", "preflight", "rights"),
        *("access", "policies", "madeAnew", "substitutes", "keysGone", "dataLosses"),
        *("endedEndpoints", "deletedVersions", "lessTold", "putBack", "returnedMachines"),
        *("refusals", "locks", "unprotected", "renames", "keysChanged", "raisedLimits"),
        *("widenedRoles", "accountKeys", "liftedDenials", "membersOfOtherDomains", "shells"),
        *("doubtfulTraffic", "servedRuns", "publicEndpoints"),
        *("costlierEndpoints", "driftExceptions", "acceptedLosses", "allowedSecrets"),
        *("loweredRules", "loweredGuards", "overrides", "openedToEverybody", "egressToAnywhere"),
        *("coldBuckets", "personalData"),
    ]


def test_whose_data_becomes_readable_is_told_with_the_way() -> None:
    reads = Access("group:a@b.example", "reads", "bucket", "data", ("account t@acme",))
    writes = Access("allUsers", "writes", "bucket", "out")
    found = written(access_gained=(reads,), access_lost=(writes,))
    assert found["access"] == {
        "gained": [{"member": "group:a@b.example", "verb": "reads", "kind": "bucket",
                    "target": "data", "through": ["account t@acme"]}],
        "lost": [{"member": "allUsers", "verb": "writes", "kind": "bucket", "target": "out",
                  "through": []}],
    }  # fmt: skip


def test_a_field_of_several_words_is_in_camel_case() -> None:
    change = ScheduleChange(
        "weekly", "begin", "on Mondays", False, "latest", ("2026-12-07 06:00",), 5, 15.0, "t@acme",
        ("x/y:1",), (),
    )  # fmt: skip
    assert written(schedules=(change,))["schedules"] == [
        {"name": "weekly", "action": "begin", "words": "on Mondays", "paused": False,
         "missed": "latest", "slots": ["2026-12-07 06:00"], "mostAMonth": 5,
         "worstMonthUsd": 15.0, "account": "t@acme", "images": ["x/y:1"], "differences": []}
    ]  # fmt: skip
