"""Reservations that exist: each answer word for word."""

from __future__ import annotations

from typing import Any

from tests.unit.infra.stacks import H100, planned
from tests.unit.vt.preflight.documents import COMPUTE, FORBIDDEN, PROJECT, context
from vertex_training.plan.reservations import ReservationPlan
from vertex_training_cli.preflight import reservations
from vertex_training_cli.preflight.answers import question

PATH = f"projects/{PROJECT}/zones/us-central1-a/reservations/h100"
ASKED = question(PATH, "whether the reservation is there, and what it matches")
FOUND = {
    "status": "READY",
    "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
    "specificReservationRequired": True,
    "specificReservation": {
        "count": "5", "instanceProperties": {"machineType": "a3-megagpu-8g"},
    },
}  # fmt: skip
SHOWN = "5 x a3-megagpu-8g"
OURS, OTHERS = (PROJECT, "109876543210"), ("acme-other", "7")


def plan(**changes: Any) -> ReservationPlan:
    given = {**H100, "existing": PATH, **changes}
    return planned(reservations={"h100": given}).reservations["h100"]


def test_what_the_stack_makes_itself_is_not_asked_for_and_what_exists_is() -> None:
    made = {"made": H100, "theirs": {**H100, "existing": PATH}}
    found = list(reservations.ask(context({COMPUTE + PATH: FOUND}, reservations=made)))
    assert found == [ASKED.ok(SHOWN)]
    unread = list(reservations.ask(context({COMPUTE + PATH: FORBIDDEN}, reservations=made)))
    assert unread == [
        ASKED.unknown(f"{PATH} cannot be read: 403 Forbidden", "compute.reservations.get")
    ]
