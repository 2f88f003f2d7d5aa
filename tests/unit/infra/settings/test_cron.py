"""Slots of cron lines: in UTC, once each, whatever clocks do; what is no cron line."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from vertex_training.settings import cron
from vertex_training.settings.cron import Calendar, name_of

BERLIN = "Europe/Berlin"


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def names(line, zone, after, count):
    return [name_of(slot) for slot in Calendar(line, zone).next(at(after), count)]


def test_a_week_has_its_slot_at_the_local_time():
    found = names("0 6 * * 1", BERLIN, "2026-10-18", 3)
    assert found == ["20261019t040000z", "20261026t050000z", "20261102t050000z"]


def test_a_time_that_comes_twice_is_one_slot_and_every_hour_is_in_both():
    # at 03:00 of 2026-10-25, clocks in Berlin go back to 02:00
    assert names("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == [
        "20261025t003000z",
        "20261026t013000z",
    ]
    hours = names("30 * * * *", BERLIN, "2026-10-24T23:40", 3)
    assert hours == ["20261025t003000z", "20261025t013000z", "20261025t023000z"]
    # also where the look begins in the second of the two hours
    assert names("30 2 * * *", BERLIN, "2026-10-25T01:15", 1) == ["20261026t013000z"]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["0 6 * * 1", "30 2 * * *", "0 */3 * * *", "15,45 1-3 * * *", "0 0 L * *"]),
    st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1)),
    st.integers(1, 40_000),
)
def test_slots_are_the_same_from_wherever_a_look_begins(line, zone, start, minutes):
    calendar, begin = Calendar(line, zone), start.replace(tzinfo=UTC)
    middle, end = begin + timedelta(minutes=minutes), begin + timedelta(days=60)
    found = calendar.due(begin, end)
    assert all(one < other for one, other in itertools.pairwise(found))
    assert [*calendar.due(begin, middle), *calendar.due(middle, end)] == found


@pytest.mark.parametrize(
    ("line", "zone", "most"),
    [
        ("0 6 * * 1", BERLIN, 5),
        ("0 6 * * *", BERLIN, 31),
        ("0 0 29 2 *", "Etc/UTC", 1),
        # A weekday is five times in a February that ends with it, once in 28 years.
        *((f"0 6 * 2 {day}", "Etc/UTC", 5) for day in range(7)),
        ("*/30 9-17 * * 1-5", "Etc/UTC", 18 * 23),
        ("0 * * * *", "Etc/UTC", 744),
        ("0 * * * *", BERLIN, 745),
        # Every minute that a field names is in both of the hours that come twice.
        ("*/15 3 * * *", BERLIN, 31 * 4 + 4),
        ("*/15 3 * * *", "Etc/UTC", 31 * 4),
        ("0,30 * * * *", BERLIN, 31 * 24 * 2 + 2),
        ("0,30 3 * * *", BERLIN, 31 * 2),
    ],
)
def test_a_month_has_at_most_so_many_slots(line, zone, most):
    calendar = Calendar(line, zone)
    assert calendar.most_a_month == most
    months = {}
    for slot in calendar.due(at("2024-01-01"), at("2026-12-31")):
        local = slot.astimezone(cron.zone(zone))
        months[local.year, local.month] = months.get((local.year, local.month), 0) + 1
    assert max(months.values()) <= most


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*,/#-LWMONJAN ", max_size=30))
def test_any_line_is_refused_or_has_slots(line):
    if not cron.problem(line):
        assert Calendar(line, BERLIN).next(at("2026-01-01"), 2)
        assert Calendar(line, BERLIN).words
