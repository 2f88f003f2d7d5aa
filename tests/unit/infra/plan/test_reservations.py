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


def test_a_job_names_a_specific_reservation_in_full():
    assert plan().affinity == {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["projects/acme-ml-prod/zones/us-central1-a/reservations/h100-prod"],
    }
    assert plan(existing=THEIRS).affinity["values"] == [THEIRS]


def test_an_open_reservation_is_used_without_its_name():
    open_ = plan(specificReservationRequired=False)
    assert open_.affinity == {"reservationAffinityType": "ANY_RESERVATION"}


def test_gpus_follow_from_the_machine_type_where_it_has_one_set_only():
    assert (plan().accelerator_type, plan().accelerator_count) == ("NVIDIA_H100_MEGA_80GB", 8)
    t4 = plan(machineType="n1-standard-8", acceleratorType="NVIDIA_TESLA_T4", acceleratorCount=2)
    assert (t4.accelerator_type, t4.accelerator_count) == ("NVIDIA_TESLA_T4", 2)
    assert plan(machineType="n2-standard-8").accelerator_type == ""


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


def test_a_reservation_costs_the_list_price_without_the_fee_until_it_is_deleted():
    rate = costs.hourly("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8, "us-central1", fee=False)
    with_fee = costs.hourly("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8, "us-central1")
    assert rate is not None
    assert with_fee is not None
    assert with_fee.usd > rate.usd
    [line] = lines()
    assert f"${rate.usd * 5:,.2f} an hour" in line
    assert f"${rate.usd * 5 * 24:,.0f} a day" in line
    assert "from creation until it is deleted, used or not" in line
    assert rate.source in line
    assert "in all" not in line


def test_a_reservation_with_an_end_says_what_it_comes_to():
    rate = costs.hourly("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8, "us-central1", fee=False)
    assert rate is not None
    expected = f"${rate.usd * 5 * 48:,.0f} in all"
    assert expected in lines(deleteAfterDuration="172800s")[0]
    two_days_before = datetime.datetime(2998, 12, 30, tzinfo=datetime.UTC)
    assert expected in lines(two_days_before, deleteAtTime="2999-01-01T00:00:00Z")[0]


def test_a_machine_without_a_price_has_none():
    [line] = lines(machineType="a4x-highgpu-4g")
    assert "no price known" in line
    assert "$" not in line


def test_a_reservation_of_others_costs_others():
    assert lines(existing=THEIRS) == []


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
        ({"deleteAtTime": "2998-12-31T00:00:00Z"}, 0.0, 0.0),
    ],
)
def test_a_month_of_a_reservation_ends_with_it(given, hours, month):
    now = datetime.datetime(2998, 12, 31, 12, tzinfo=datetime.UTC)
    made = plan(**given)
    assert lifetime(made.settings, now) == hours
    rate = costs.hourly("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8, "us-central1", fee=False)
    assert rate is not None
    assert monthly(made, "us-central1", now) == pytest.approx(rate.usd * 5 * month)


def test_a_month_without_a_price_is_not_known():
    assert monthly(plan(machineType="a4x-highgpu-4g"), "us-central1", NOW) is None


def test_the_whole_line_of_a_reservation():
    rate = costs.hourly("n1-standard-8", None, 0, "us-central1", fee=False)
    assert rate is not None
    [line] = lines(machineType="n1-standard-8", count=1000, deleteAfterDuration="86400s")
    hour = rate.usd * 1000
    assert line == (
        f"reservation h100: 1000 x n1-standard-8 in us-central1-a: ${hour:,.2f} an hour, "
        f"${hour * 24:,.0f} a day, ${hour * 730:,.0f} a month, ${hour * 24:,.0f} in all, from "
        f"creation until it is deleted, used or not (list price {rate.date}, {rate.source})"
    )
    [line] = lines(machineType="a4x-highgpu-4g")
    assert line == (
        "reservation h100: 5 x a4x-highgpu-4g in us-central1-a: no price known; it is paid for "
        "from creation until it is deleted, used or not"
    )
