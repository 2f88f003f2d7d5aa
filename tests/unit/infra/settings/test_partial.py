"""What is wrong is left out until the rest is valid, and what follows from that is told once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import Path, Problem
from vertex_training.foundation import config
from vertex_training.settings import partial
from vertex_training.settings.partial import PartialSettings
from vertex_training.stack import SCHEMA


def read(raw: dict[str, Any]) -> PartialSettings:
    before = copy.deepcopy(raw)
    found = partial.read(SCHEMA, raw)
    assert raw == before
    return found


@pytest.mark.parametrize(
    ("changes", "removed", "told"),
    [
        (
            {"buckets": {"data": {"versionning": True}}},
            {("buckets", "data", "versionning")},
            [("vertex-training:buckets.data.versionning", "")],
        ),
        (
            {"jobs": {"a": {"file": "x", "deadline": "1h"}}},
            {("jobs", "a")},
            [("vertex-training:jobs.a", "")],
        ),
        (
            {"buckets": {"Data": {}}},
            {("buckets", "Data")},
            [("vertex-training:buckets.Data", '"Data"')],
        ),
        (
            {"channels": {"a": {"email": "nobody"}, "b": {"email": "ml@example.com"}}},
            {("channels", "a", "email"), ("channels", "a")},
            [("vertex-training:channels.a.email", '"nobody"')],
        ),
        (
            {"reservations": {"a": {"machineType": "m", "count": 0}}},
            {("reservations", "a"), ("reservations", "a", "count")},
            [
                ("vertex-training:reservations.a.zone", ""),
                ("vertex-training:reservations.a.count", "0"),
            ],
        ),
        (
            {"encryption": {"covers": ["jobs"]}},
            {("encryption",)},
            [("vertex-training:encryption.key", "")],
        ),
        ({"region": "us"}, {("region",)}, [("gcp:region", '"us"')]),
    ],
)
def test_what_is_wrong_is_left_out_with_no_more_than_it_takes(
    changes: dict[str, Any], removed: set[Path], told: list[tuple[str, str]]
) -> None:
    found = read(BASE | {"dashboards": {"jobs": {}}} | changes)
    assert found.removed == removed
    assert [(".".join(map(str, p.path)), p.value) for p in found.problems] == told
    assert found.settings is not None
    assert list(found.settings.dashboards) == ["jobs"]


def test_the_rest_of_a_section_stays() -> None:
    found = read(
        BASE
        | {
            "buckets": {"data": {"protect": True, "versioning": "x"}, "other": {}},
            "jobs": {"a": {}, "b": {"file": "x"}},
        }
    ).settings
    assert found is not None
    assert list(found.buckets) == ["data", "other"]
    assert found.buckets["data"].protect
    assert list(found.jobs) == ["b"]


def test_where_something_is_missing_that_nothing_stands_for_nothing_is_saved() -> None:
    schema: Any = config.SCHEMA  # whose key github has no stand-in
    found = partial.read(schema, {key: BASE[key] for key in BASE if key != "submitters"})
    assert found.settings is None
    assert [(problem.what, problem.path) for problem in found.problems] == [
        ("missing", ("vertex-training-bootstrap:github",))
    ]


READS: Path = ("serviceAccounts", "trainer", "reads", 0)


@pytest.mark.parametrize(
    ("removed", "path", "value", "follows"),
    [
        (("buckets", "data"), ("buckets", "data", "name"), "", True),
        (("buckets", "data"), READS, "data", True),
        (("network", "subnet"), ("network", "nat"), "", True),
        (("network", "subnet"), ("sharedVpc", "hostProject"), "", True),
        (("region",), ("network", "subnet"), "", True),
        (("reservations", "h100", "count"), ("reservations", "h100", "zone"), "", True),
    ],
)
def test_a_rule_is_not_asked_about_what_is_left_out(
    removed: Path, path: Path, value: str, follows: bool
) -> None:
    found = PartialSettings(None, (), frozenset({removed}))
    assert found.concerns_removed(Problem("is wrong", value, path=path)) is follows
    assert PartialSettings(None, ()).concerns_removed(Problem("x", value, path=path)) is False
    more = PartialSettings(None, (), frozenset({removed, ("budget", "channels")}))
    assert more.concerns_removed(Problem("is wrong", value, path=path)) is follows
