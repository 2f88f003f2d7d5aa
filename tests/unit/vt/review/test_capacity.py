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


def test_a_reservation_costs_its_machines_without_the_fee() -> None:
    found = after(plans.plan(made()))
    assert found.hourly == pytest.approx(5 * hourly(MEGA))
    assert (found.name, found.zone, found.machines) == ("h100", "us-east4-a", 5)


def test_gpus_that_are_added_to_the_machine_are_paid_for() -> None:
    gpus = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 4}]
    found = after(plans.plan(made(machine="n1-standard-8", guestAccelerators=gpus)))
    assert found.hourly == pytest.approx(5 * hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4))
    assert hourly("n1-standard-8", "NVIDIA_TESLA_T4", 4) > hourly("n1-standard-8")


@pytest.mark.parametrize(
    "inputs",
    [kept(machine="a4-highgpu-8g"), kept(count=UNKNOWN), {"specificReservation": UNKNOWN}],
)
def test_what_is_not_known_has_no_price(inputs: plans.Event) -> None:
    found = review(plans.step("create", RESERVATION, "r", new=inputs))
    assert [each.monthly for each in found.reservations] == [None]
    assert "; reservations, used or not: 1 reservation without a price (" in verdict(found)


def test_only_what_changes_is_counted() -> None:
    old, new = kept(count=1), kept(count=2)
    plan = plans.plan(
        plans.step("same", RESERVATION, "same", old=old, new=old),
        plans.step("update", RESERVATION, "labels", old=old, new=old | {"description": "d"}),
        plans.step("update", RESERVATION, "more", old=old, new=new),
    )
    [change] = capacity.reservation_changes(plan)
    assert (change.old and change.old.machines, change.new and change.new.machines) == (1, 2)


def test_the_verdict_has_the_difference_of_a_month_first() -> None:
    price = hourly(MEGA)
    more = plans.step("update", RESERVATION, "h100", old=kept(count=2), new=kept(count=5))
    hours = f"{costs.usd(2 * price)} → {costs.usd(5 * price)} an hour"
    told = f"reservations, used or not: +{costs.usd(3 * price * 730)} a month"
    assert f"; {told} (h100 2 → 5 x {MEGA}, {hours});" in verdict(review(more))


def test_a_reservation_that_goes_is_paid_for_no_longer() -> None:
    price = hourly(MEGA)
    gone = plans.step("delete", RESERVATION, "h100", old=kept(count=2))
    assert f"-{costs.usd(2 * price * 730)} a month (h100 2 → 0 x" in verdict(review(gone))


def test_another_machine_or_zone_is_named() -> None:
    moved = kept() | {"zone": "us-east4-b"}
    found = review(plans.step("replace", RESERVATION, "h100", old=kept(), new=moved))
    assert f"5 x {MEGA} in us-east4-a → 5 x {MEGA} in us-east4-b" in verdict(found)


def test_reservations_without_a_price_are_counted_not_free() -> None:
    told = verdict(review(made("a"), made("b"), made("c", machine="a4-highgpu-8g")))
    price = costs.usd(10 * hourly(MEGA) * 730)
    assert f"+{price} a month and 1 reservation without a price (" in told


BACK = "machines given back, and may not be had again"


def test_a_reservation_made_anew_gives_its_machines_back_though_its_price_stays() -> None:
    gpus = [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]
    ssds = {"guestAccelerators": gpus, "localSsds": [{"interface": "NVME"}]}
    scsi = {"guestAccelerators": gpus, "localSsds": [{"interface": "SCSI"}]}
    old, new = (kept("t4", "n1-standard-8", 3, **disks) for disks in (ssds, scsi))
    found = review(plans.step("replace", RESERVATION, "t4", old=old, new=new))
    assert found.reservations == ()
    assert f"; {BACK}: t4 (3 x n1-standard-8 in us-east4-a, made anew)." in verdict(found)
    assert found.risky
    assert f"- {BACK}: `t4` (3 x" in markdown.render(found)
    assert "machines given back, and may not be had again: <code>t4</code> (3 x" in html.render(
        found
    )
    [returned] = json.loads(json_report.render(found))["returnedMachines"]
    assert (returned["machineType"], returned["machines"]) == ("n1-standard-8", 3)


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


def test_what_is_given_back_is_by_name_and_says_what_is_made_anew() -> None:
    plan = plans.plan(
        plans.step("update", RESERVATION, "z", old=kept("z", count=5), new=kept("z", count=3)),
        plans.step("delete", RESERVATION, "y", old=kept("y", count=UNKNOWN)),
        plans.step("replace", RESERVATION, "x", old=kept("x"), new=kept("x", "a3-highgpu-8g", 2)),
        plans.step("update", RESERVATION, "w", old=kept("w"), new=kept("w") | {"description": "d"}),
        plans.step("delete", plans.BUCKET, "v", old=kept("v")),
        made("u"),
    )
    assert capacity.returned_machines(plan) == [
        capacity.ReturnedMachines("x", MEGA, "us-east4-a", 5, replaced=True),
        capacity.ReturnedMachines("y", MEGA, "us-east4-a", 0, replaced=False),
        capacity.ReturnedMachines("z", MEGA, "us-east4-a", 2, replaced=False),
    ]


@pytest.mark.parametrize(
    ("op", "protect", "count"),
    [
        # The engine refuses to delete what the state protects, and to replace what the program
        # protects as well; of what shrinks in place it refuses nothing.
        ("delete", (True, False), None),
        ("delete", (False, False), 5),
        ("replace", (True, True), None),
        ("replace", (False, True), 5),
        ("replace", (True, False), 5),
        ("update", (True, True), 4),
        ("update", (False, False), 4),
    ],
)
def test_protection_holds_machines_back_where_the_engine_refuses(
    op: str, protect: tuple[bool, bool], count: int | None
) -> None:
    new = None if op == "delete" else kept(count=1)
    step = plans.step(op, RESERVATION, "h100", old=kept(count=5), new=new, protect=protect)
    found = capacity.returned_machines(plans.plan(step))
    assert [each.machines for each in found] == ([] if count is None else [count])


@pytest.mark.parametrize(
    ("old", "new", "monthly"),
    [
        (None, kept(count=2), 2 * 730),
        (kept(count=3), None, -3 * 730),
        (kept(count=3), kept(count=1), -2 * 730),
        (kept(count=UNKNOWN), kept(count=1), None),
        (kept(count=1), kept(count=UNKNOWN), None),
    ],
)
def test_a_month_has_730_hours_of_what_is_added(
    old: plans.Event | None, new: plans.Event | None, monthly: float | None
) -> None:
    op = "update" if old and new else "create" if new else "delete"
    [change] = capacity.reservation_changes(
        plans.plan(plans.step(op, RESERVATION, "h100", old=old, new=new))
    )
    assert change.monthly == (None if monthly is None else pytest.approx(monthly * hourly(MEGA)))


def test_a_reservation_without_inputs_is_told_by_its_resource() -> None:
    plan = plans.plan(plans.create(RESERVATION, "spare"), made("h100"))
    found = [each.either for each in capacity.reservation_changes(plan)]
    assert [(each.name, each.zone, each.machine_type, each.machines) for each in found] == [
        ("h100", "us-east4-a", MEGA, 5),
        ("spare", "", "", 0),
    ]
    assert found[1].rate is None


def test_a_reservation_has_its_own_name_and_what_is_added_to_its_machines() -> None:
    kinds = "projects/p/zones/us-east4-a/acceleratorTypes/nvidia-tesla-t4"
    gpus = [{"acceleratorType": kinds, "acceleratorCount": 2}]
    inputs = kept("own", "n1-standard-8", 3.0, guestAccelerators=gpus)
    rate = costs.hourly("n1-standard-8", "NVIDIA_TESLA_T4", 2, "us-east4", fee=False)
    step = plans.step("create", RESERVATION, "resource", new=inputs)
    assert after(plans.plan(step)) == ReservationCost("own", "us-east4-a", "n1-standard-8", 3, rate)
    bare = plans.step("create", RESERVATION, "resource", new={"zone": "us-east4-a"})
    assert after(plans.plan(bare)) == ReservationCost("resource", "us-east4-a", "", 0, None)
