"""Rules of reservations: path, what is wrong, value and hint, with both sides of each limit."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.unit.infra.stacks import H100, rows, unjudged
from vertex_training.plan.reservations import plan_reservations
from vertex_training.stack_rules import reservations

NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
THEIRS = "projects/acme-capacity/zones/us-central1-a/reservations/h100"
MEGA = "NVIDIA_H100_MEGA_80GB"
CARRIES = f"it carries: {MEGA} x 8"
OWNERS = "is its owner's to say: this reservation exists"


def told(stack: str = "prod", **given: Any) -> list[tuple[str, str, str, str]]:
    """What is wrong with one reservation, by paths below it."""
    settings = unjudged(stack=stack, reservations={"h100": H100 | given})
    found = rows(reservations.problems(settings, plan_reservations(settings), NOW))
    return [(path.removeprefix("reservations.h100").lstrip("."), *rest) for path, *rest in found]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        # Machines and their GPUs.
        ({"machineType": "a3-megagpu-9g"}, [
            ("machineType", "no machine type of training jobs", "a3-megagpu-9g",
             "did you mean 'a3-megagpu-8g'?")]),
        ({"acceleratorType": "NVIDIA_L4"}, [
            ("acceleratorType", "a3-megagpu-8g does not carry it", "NVIDIA_L4", CARRIES)]),
        ({"acceleratorType": MEGA, "acceleratorCount": 4}, [
            ("acceleratorCount", f"a3-megagpu-8g carries another number of {MEGA}", "4", CARRIES)]),
        ({"acceleratorCount": 8}, [
            ("acceleratorCount", "says nothing without acceleratorType", "8",
             "add it, or remove this")]),
        ({"machineType": "cloud-tpu"}, [
            ("", "cloud-tpu comes with one of several sets of GPUs", "",
             "say which by acceleratorType and acceleratorCount: TPU_V2 x 8, TPU_V3 x 8")]),
        # Zones.
        ({"zone": "europe-west4-a"}, [
            ("zone", "is not in us-central1, where the stack's jobs run: none could use it",
             "europe-west4-a", "a zone of us-central1")]),
        ({"zone": "us-central1-z"}, [
            ("zone", "is no zone of us-central1", "us-central1-z",
             "one of us-central1-a, us-central1-b, us-central1-c, us-central1-f")]),
        # One that exists.
        ({"existing": THEIRS, "zone": "us-central1-b"}, [
            ("zone", "existing is in zone us-central1-a", "us-central1-b",
             "zone: us-central1-a")]),
        ({"existing": THEIRS, "name": "x", "project": "acme-capacity", "protect": False,
          "shareWith": [], "deleteAtTime": "2020-01-01T00:00:00Z",
          "deleteAfterDuration": None}, [
            (field, OWNERS, "", "remove it")
            for field in ("name", "project", "deleteAtTime", "deleteAfterDuration", "shareWith",
                          "protect")]),
        # Its end.
        ({"deleteAtTime": "2026-11-21T00:00:00Z"}, [
            ("deleteAtTime",
             "has passed: Google has deleted the reservation, and refuses to make it anew",
             "2026-11-21T00:00:00+00:00", "a later time, or remove the reservation")]),
        # Whose it is.
        ({"project": "acme-capacity"}, [
            ("shareWith", "the project where jobs run may not use it", "", "add acme-ml-prod")]),
        ({"project": "acme-capacity", "shareWith": ["acme-ml-prod", "acme-capacity"]}, [
            ("shareWith", "names the project that owns it", "acme-capacity", "remove it")]),
    ],
)  # fmt: skip
def test_what_a_reservation_cannot_be(given: dict[str, Any], found: Any) -> None:
    assert told(**given) == found


def test_its_name_is_one_that_compute_engine_takes() -> None:
    assert told(stack="s" * 58) == []
    rule = "at most 63 lowercase letters, digits and '-': shorten the key or the stack's name"
    name = f"h100-{'s' * 59}"
    assert told(stack="s" * 59) == [("", "makes a name that Compute Engine refuses", name, rule)]
    assert told(stack="s" * 59, name="short") == []
