"""Slots of a cron line in a time zone: when they are, how many there may be, in words. Pure.

Five fields, as Debian's cron reads them (man 5 crontab). Where a clock goes forward, a slot that it
leaves out is the first minute after; where it goes back, a slot of a fixed time is once, and one of
every hour is in both hours. The zones are those of the package ``tzdata``, whatever the machine
has: two machines agree on every slot.
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
#: What a cron line is written with. Sizes are bounded: the parser is recursive.
_FIELD: Final = r"[0-9A-Za-z*,/#-]{1,40}"
_LINE: Final = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}\Z")
#: Minutes between two slots, at least: how often a timer runs ``vt jobs advance``.
LEAST_MINUTES: Final = 15
#: After 28 years days of weeks and leap years come again.
_YEARS: Final = range(2000, 2028)
_FORM: Final = "%Y%m%dt%H%M%Sz"


@functools.cache
def zones() -> frozenset[str]:
    """Names of all time zones."""
    return frozenset(importlib.resources.files("tzdata").joinpath("zones").read_text().split())


@functools.cache
def zone(name: str) -> zoneinfo.ZoneInfo:
    """The zone of this name, which :func:`zones` has."""
    folder = importlib.resources.files("tzdata").joinpath("zoneinfo")
    with folder.joinpath(*name.split("/")).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def name_of(slot: datetime.datetime) -> str:
    """A time as ids, labels and folders have it. Names sort as the times do.

    >>> name_of(datetime.datetime(2026, 11, 30, 6, tzinfo=UTC))
    '20261130t060000z'
    """
    return slot.astimezone(UTC).strftime(_FORM)


def time_of(name: str) -> datetime.datetime:
    """The reverse of :func:`name_of`.

    Raises:
        ValueError: it is no such name.
    """
    return datetime.datetime.strptime(name, _FORM).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The slots of a cron line in a time zone; both were checked (:func:`problem`)."""

    cron: str
    time_zone: str

    def slots(self, after: datetime.datetime) -> Iterator[datetime.datetime]:
        """The slots after this time, in UTC, each later than the one before."""
        last = after.astimezone(UTC)
        for found in CronSim(self.cron, after.astimezone(zone(self.time_zone))):
            # Where the clock changes, the parser may name one minute twice, or one that was.
            if (slot := found.astimezone(UTC)) > last:
                yield slot
                last = slot

    def next(self, after: datetime.datetime, count: int) -> list[datetime.datetime]:
        """The next slots after this time; fewer if there are no more."""
        return list(itertools.islice(self.slots(after), count))

    def due(self, after: datetime.datetime, until: datetime.datetime) -> list[datetime.datetime]:
        """The slots after ``after`` and not after ``until``."""
        return list(itertools.takewhile(lambda slot: slot <= until, self.slots(after)))

    @property
    def words(self) -> str:
        """``At 06:00 on Monday (Europe/Berlin)``."""
        try:
            text = CronSim(self.cron, datetime.datetime.min).explain()
        except (CronSimError, IndexError, KeyError, ValueError):
            text = self.cron
        return f"{text} ({self.time_zone})"

    @property
    def most_a_month(self) -> int:
        """Return the maximum number of slots in a calendar month."""
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
    # A clock that goes back has an hour twice, and slots of every hour in both.
    repeats = time_zone != "Etc/UTC" and (cron.startswith("*") or cron.split()[1].startswith("*"))
    return most + (len(parsed.minutes) if repeats else 0)


def problem(cron: str) -> str:
    """Return the mistake in a cron line; empty if there is none."""
    if not _LINE.match(cron):
        return "must be five fields of a cron line, like 0 6 * * 1 (Mondays at 6)"
    try:
        parsed = CronSim(cron, datetime.datetime.min)
        first = next(parsed, None)
    except (CronSimError, AssertionError, ValueError, OverflowError) as error:
        minute, hour, day, month, weekday = cron.split()
        any_month = f"{minute} {hour} {day} * {weekday}"
        if month != "*" and str(error) == "Bad day-of-month" and not problem(any_month):
            return "never comes: no month that it names has such a day"
        return f"is no cron line: {error or 'see man 5 crontab'}"
    if first is None:
        return "never comes: no month that it names has such a day"
    minutes = sorted(parsed.minutes)
    gaps = (after - before for before, after in itertools.pairwise([*minutes, minutes[0] + 60]))
    if min(gaps) < LEAST_MINUTES:
        return (
            f"comes more often than every {LEAST_MINUTES} minutes, {len(minutes)} times an hour: "
            "its first field is the minute"
        )
    return ""
