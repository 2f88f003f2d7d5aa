"""Names, machines, rights and cost of reservations follow from the settings."""

import datetime

import pydantic
import pytest

from tests.unit.infra.stacks import H100, planned
from vertex_training.catalog import costs
from vertex_training.errors import ConfigError
from vertex_training.plan.reservations import (
    cost_lines,
    lifetime,
    monthly,
    reservation_grants,
)

NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
THEIRS = "projects/acme-capacity/zones/us-central1-a/reservations/h100"


def plan(**given):
    return planned(reservations={"h100": H100 | given}).reservations["h100"]


def rights(**given):
    stack = planned(reservations={"h100": H100 | given})
    found = reservation_grants(stack.declared, stack.reservations)
    return [(right.role, right.place, right.ours) for right in found]


def lines(now=NOW, **given):
    stack = planned(reservations={"h100": H100 | given})
    return cost_lines(stack.reservations, stack.declared.region, now)


def test_an_open_reservation_is_used_without_its_name():
    open_ = plan(specificReservationRequired=False)
    assert open_.affinity == {"reservationAffinityType": "ANY_RESERVATION"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [("roles/compute.viewer", "projects/acme-ml-prod", True)]),
        ({"existing": THEIRS}, [("roles/compute.viewer", "projects/acme-capacity", False)]),
        (
            {"project": "acme-capacity", "shareWith": ["acme-ml-prod"]},
            [("roles/compute.viewer", "projects/acme-capacity", True)],
        ),
        ({"specificReservationRequired": False}, []),
    ],
)
def test_the_agent_may_see_reservations_that_jobs_name_where_they_are(given, expected):
    assert rights(**given) == expected


def test_a_machine_without_a_price_has_none():
    [line] = lines(machineType="a4x-highgpu-4g")
    assert "no price known" in line
    assert "$" not in line


@pytest.mark.parametrize("given", [{"count": 10**400}, {"deleteAfterDuration": "9" * 400 + "s"}])
def test_numbers_that_no_price_can_be_multiplied_with_are_refused(given):
    with pytest.raises((ConfigError, pydantic.ValidationError)):
        lines(**given)


@pytest.mark.parametrize(
    ("given", "hours", "month"),
    [
        ({}, None, 730.0),
        ({"deleteAfterDuration": "172800s"}, 48.0, 48.0),
        ({"deleteAfterDuration": "2628000s"}, 730.0, 730.0),
        ({"deleteAfterDuration": "2631600s"}, 731.0, 730.0),
        ({"deleteAtTime": "2999-01-02T00:00:00Z"}, 36.0, 36.0),
        ({"deleteAtTime": "2999-01-01T00:00:00Z"}, 12.0, 12.0),
    ],
)
def test_a_month_of_a_reservation_ends_with_it(given, hours, month):
    now = datetime.datetime(2998, 12, 31, 12, tzinfo=datetime.UTC)
    made = plan(**given)
    assert lifetime(made.settings, now) == hours
    rate = costs.hourly("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8, "us-central1", fee=False)
    assert rate is not None
    assert monthly(made, "us-central1", now) == pytest.approx(rate.usd * 5 * month)
