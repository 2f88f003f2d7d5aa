"""Reservations: what those cost that a plan makes or changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.catalog import costs
from tests.unit.vt.review import plans
from vt.review import capacity, html, json_report, markdown, report
from vt.review.capacity import RESERVATION
from vt.review.report import ReviewReport
from vt.review.verdict import verdict

MEGA = "a3-megagpu-8g"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def kept(name: str = "h100", machine: str = MEGA, count: Any = 5, **more: Any) -> plans.Event:
    """Inputs of a reservation in us-east4."""
    specific = {"count": count, "instanceProperties": {"machineType": machine, **more}}
    return {"name": name, "zone": "us-east4-a", "specificReservation": specific}


def review(*told: plans.Event) -> ReviewReport:
    return report.build(plans.plan(*told), source="here")


def made(resource: str = "h100", **inputs: Any) -> plans.Event:
    return plans.step("create", RESERVATION, resource, new=kept(resource, **inputs))


def hourly(machine: str, accelerator: str | None = None, count: int = 0) -> float:
    rate = costs.hourly(machine, accelerator, count, "us-east4", fee=False)
    assert rate is not None
    return rate.usd


def test_a_reservation_costs_its_machines_without_the_fee() -> None:
    [found] = capacity.reservation_costs(plans.plan(made()))
    assert found.hourly == pytest.approx(5 * hourly(MEGA))
    assert (found.name, found.zone, found.machines) == ("h100", "us-east4-a", 5)


def test_gpus_that_are_added_to_the_machine_are_paid_for() -> None:
    gpus = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 4}]
    [found] = capacity.reservation_costs(
        plans.plan(made(machine="n1-standard-8", guestAccelerators=gpus))
    )
    assert found.hourly == pytest.approx(5 * hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4))
    assert hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4) > hourly("n1-standard-8")


@pytest.mark.parametrize(
    "inputs",
    [kept(machine="a4-highgpu-8g"), kept(count=UNKNOWN), {"specificReservation": UNKNOWN}],
)
def test_what_is_not_known_has_no_price(inputs: plans.Event) -> None:
    found = review(plans.step("create", RESERVATION, "r", new=inputs))
    assert [each.hourly for each in found.reservations] == [None]
    assert "; 1 reservation without a price, used or not;" in verdict(found)


def test_only_what_is_made_or_changed_is_counted() -> None:
    old, new = kept(count=1), kept(count=2)
    plan = plans.plan(
        plans.step("same", RESERVATION, "same", old=old, new=old),
        plans.step("delete", RESERVATION, "gone", old=old),
        plans.step("update", RESERVATION, "more", old=old, new=new),
    )
    assert [each.machines for each in capacity.reservation_costs(plan)] == [2]


def test_the_verdict_adds_reservations_to_what_jobs_cost() -> None:
    price = costs.usd(5 * hourly(MEGA))
    told = f"{price} an hour for 1 reservation, used or not"
    assert f"No job is submitted; {told};" in verdict(review(made()))
    job = plans.create(plans.JOB, "training-a", **plans.job("a"))
    assert f"at most $0.22; plus {told};" in verdict(review(job, made()))


def test_reservations_without_a_price_are_counted_not_free() -> None:
    told = verdict(review(made("a"), made("b"), made("c", machine="a4-highgpu-8g")))
    price = costs.usd(10 * hourly(MEGA))
    assert f"{price} an hour for 2 reservations, used or not, and 1 without a price" in told


def test_every_format_says_it() -> None:
    found = review(made())
    words = "an hour for 1 reservation, used or not"
    assert words in markdown.render(found)
    assert words in html.render(found)
    told = json.loads(json_report.render(found))
    [reservation] = told["reservations"]
    assert words in told["verdict"]
    assert reservation["hourlyUsd"] == pytest.approx(5 * hourly(MEGA))
    assert reservation["price"]["usd"] == pytest.approx(hourly(MEGA))
