"""Reservations: what they cost more or less after a plan, used or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import capacity, html, json_report, markdown, report
from vertex_training_cli.review.capacity import RESERVATION, ReservationCost
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import ReviewReport

MEGA = "a3-megagpu-8g"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def kept(name: str = "h100", machine: str = MEGA, count: Any = 5, **more: Any) -> plans.Event:
    """Inputs of a reservation in us-east4."""
    specific = {"count": count, "instanceProperties": {"machineType": machine, **more}}
    return {"name": name, "zone": "us-east4-a", "specificReservation": specific}


def review(*told: plans.Event) -> ReviewReport:
    return report.build(plans.plan(*told), source="here")


def after(plan: Plan) -> ReservationCost:
    [change] = capacity.reservation_changes(plan)
    assert change.old is None
    assert change.new is not None
    return change.new


def made(resource: str = "h100", **inputs: Any) -> plans.Event:
    return plans.step("create", RESERVATION, resource, new=kept(resource, **inputs))


def hourly(machine: str, accelerator: str | None = None, count: int = 0) -> float:
    rate = costs.hourly(machine, accelerator, count, "us-east4", fee=False)
    assert rate is not None
    return rate.usd


def test_gpus_that_are_added_to_the_machine_are_paid_for() -> None:
    gpus = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 4}]
    found = after(plans.plan(made(machine="n1-standard-8", guestAccelerators=gpus)))
    assert found.hourly == pytest.approx(5 * hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4))
    assert hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4) > hourly("n1-standard-8")


BACK = "machines given back, and may not be had again"


def test_a_reservation_that_shrinks_or_goes_gives_machines_back() -> None:
    less = plans.step("update", RESERVATION, "h100", old=kept(count=5), new=kept(count=3))
    assert f"{BACK}: h100 (2 x {MEGA} in us-east4-a)" in verdict(review(less))
    assert review(less).risky
    gone = plans.step("delete", RESERVATION, "h100", old=kept(count=UNKNOWN))
    assert f"{BACK}: h100 (an unknown number x {MEGA}" in verdict(review(gone))


def test_nothing_is_given_back_by_what_grows_or_is_protected() -> None:
    more = plans.step("update", RESERVATION, "a", old=kept(count=2), new=kept(count=5))
    unknown = plans.step("update", RESERVATION, "b", old=kept(count=2), new=kept(count=UNKNOWN))
    held = {"old": kept(count=2), "new": kept(count=2, machine="a3-highgpu-8g")}
    refused = plans.step("replace", RESERVATION, "c", **held, protect=(True, True))
    kept_on = plans.step("delete", RESERVATION, "d", old=kept(), protect=(True, False))
    assert BACK not in verdict(review(made("new"), more, unknown, refused, kept_on))


def test_every_format_says_it() -> None:
    found = review(made())
    words = f"+{costs.usd(5 * hourly(MEGA) * 730)} a month"
    assert words in markdown.render(found)
    assert words in html.render(found)
    told = json.loads(json_report.render(found))
    [reservation] = told["reservations"]
    assert words in told["verdict"]
    assert reservation["hourlyUsd"] == pytest.approx(5 * hourly(MEGA))
    assert reservation["price"]["usd"] == pytest.approx(hourly(MEGA))
    assert (reservation["before"], reservation["deleted"]) == (None, False)
