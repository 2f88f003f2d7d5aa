"""Scheduled times (slots) of a cron line in a time zone.

A cron line has five fields, as in Debian's cron (man 5 crontab). When a clock goes forward, a
skipped slot moves to the first minute after the gap. When it goes back, a slot at a fixed time
occurs once, and hourly slots occur in both hours. Zones come from the package ``tzdata``, so that
all machines compute the same slots.
"""

from __future__ import annotations

import datetime
import functools
import importlib.resources
import itertools
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cronsim import CronSim, CronSimError

UTC: Final = datetime.UTC
#: Characters of a cron field. The size is bounded since the parser is recursive.
_FIELD: Final = r"[0-9A-Za-z*,/#-]{1,40}"
_LINE: Final = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}\Z")
#: Minimum minutes between two slots: the interval of ``vt jobs advance``.
LEAST_MINUTES: Final = 15
#: The calendar repeats after 28 years.
_YEARS: Final = range(2000, 2028)
_FORM: Final = "%Y%m%dt%H%M%Sz"


@functools.cache
def zones() -> frozenset[str]:
    return frozenset(importlib.resources.files("tzdata").joinpath("zones").read_text().split())


@functools.cache
def zone(name: str) -> zoneinfo.ZoneInfo:
    """Return the time zone for a name from :func:`zones`."""
    folder = importlib.resources.files("tzdata").joinpath("zoneinfo")
    with folder.joinpath(*name.split("/")).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def name_of(slot: datetime.datetime) -> str:
    """Format a time like ``20261130t060000z``, for ids, labels and folders that sort by time."""
    return slot.astimezone(UTC).strftime(_FORM)


def time_of(name: str) -> datetime.datetime:
    """Return the time in a text of :func:`name_of`; raise ValueError for another form."""
    return datetime.datetime.strptime(name, _FORM).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Scheduled times of a valid cron line (see :func:`problem`) in a time zone."""

    cron: str
    time_zone: str

    def slots(self, after: datetime.datetime) -> Iterator[datetime.datetime]:
        """Yield the scheduled times after ``after``, in UTC, in ascending order."""
        last = after.astimezone(UTC)
        for time in CronSim(self.cron, after.astimezone(zone(self.time_zone))):
            # At clock changes the parser may repeat a minute, or return an earlier minute.
            if (slot := time.astimezone(UTC)) > last:
                yield slot
                last = slot

    def next(self, after: datetime.datetime, count: int) -> list[datetime.datetime]:
        """Return up to ``count`` scheduled times after ``after``."""
        return list(itertools.islice(self.slots(after), count))

    def due(self, after: datetime.datetime, until: datetime.datetime) -> list[datetime.datetime]:
        """Return the scheduled times after ``after``, up to and including ``until``."""
        return list(itertools.takewhile(lambda slot: slot <= until, self.slots(after)))

    @property
    def words(self) -> str:
        """Describe the schedule, like ``At 06:00 on Monday (Europe/Berlin)``."""
        try:
            text = CronSim(self.cron, datetime.datetime.min).explain()
        except (CronSimError, IndexError, KeyError, ValueError):
            text = self.cron
        return f"{text} ({self.time_zone})"

    @property
    def most_a_month(self) -> int:
        """Return the maximum number of scheduled times in a calendar month."""
        return _most_a_month(self.cron, self.time_zone)


@functools.cache
def _most_a_month(cron: str, time_zone: str) -> int:
    parsed = CronSim(cron, datetime.datetime.min)
    days = dict[tuple[int, int], int]()
    for year in _YEARS:
        day = datetime.date(year, 1, 1)
        while day.year == year:
            if day.month in parsed.months and parsed.match_day(day):
                days[year, day.month] = days.get((year, day.month), 0) + 1
            day += datetime.timedelta(days=1)
    most = max(days.values(), default=0) * len(parsed.hours) * len(parsed.minutes)
    # A clock that goes back repeats an hour with its hourly slots.
    repeats = time_zone != "Etc/UTC" and (cron.startswith("*") or cron.split()[1].startswith("*"))
    return most + (len(parsed.minutes) if repeats else 0)


def problem(cron: str) -> str:
    """Return the mistake in a cron line as text; empty for a valid line."""
    if not _LINE.match(cron):
        return "a cron line must have five fields, like 0 6 * * 1 (Mondays at 6)"
    try:
        parsed = CronSim(cron, datetime.datetime.min)
        first = next(parsed, None)
    except (CronSimError, AssertionError, ValueError, OverflowError) as error:
        minute, hour, day, month, weekday = cron.split()
        any_month = f"{minute} {hour} {day} * {weekday}"
        if month != "*" and str(error) == "Bad day-of-month" and not problem(any_month):
            return "this cron line never matches: none of its months has such a day"
        return f"this is not a cron line: {error or 'see man 5 crontab'}"
    if first is None:
        return "this cron line never matches: none of its months has such a day"
    minutes = sorted(parsed.minutes)
    gaps = (after - before for before, after in itertools.pairwise([*minutes, minutes[0] + 60]))
    if min(gaps) < LEAST_MINUTES:
        return (
            f"start times must be at least {LEAST_MINUTES} minutes apart, but the {len(minutes)} "
            "values of the minute field (the first) are closer"
        )
    return ""
