"""What is wrong is left out until the rest is valid, and what follows from that is told once."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import Path, Problem
from vertex_training.foundation import config
from vertex_training.settings import partial, reader
from vertex_training.settings.partial import PartialSettings
from vertex_training.stack import SCHEMA


def read(raw: dict[str, Any]) -> PartialSettings:
    before = copy.deepcopy(raw)
    found = partial.read(SCHEMA, raw)
    assert raw == before
    return found


def test_a_config_without_a_mistake_is_read_as_a_whole() -> None:
    found = read(BASE | {"buckets": {"data": {}}})
    assert (found.problems, found.removed) == ((), frozenset())
    assert found.settings is not None
    assert list(found.settings.buckets) == ["data"]


@pytest.mark.parametrize(
    ("changes", "removed", "told"),
    [
        ({"labels": {"a": 1, "b": "x"}}, {("labels", "a")}, [("vertex-training:labels.a", "1")]),
        (
            {"buckets": {"data": {"versionning": True}}},
            {("buckets", "data", "versionning")},
            [("vertex-training:buckets.data.versionning", "")],
        ),
        ({"bukets": {}}, {("bukets",), ("buckets",)}, [("vertex-training:bukets", "")]),
        ({"quux": 1}, {("quux",)}, [("vertex-training:quux", "")]),
        ({"jobs": {"a": {}}}, {("jobs", "a")}, [("vertex-training:jobs.a.file", "")]),
        (
            {"jobs": {"a": {"file": "x", "deadline": "1h"}}},
            {("jobs", "a")},
            [("vertex-training:jobs.a", "")],
        ),
        ({"deployers": ["a", 1]}, {("deployers",)}, [("vertex-training:deployers.1", "1")]),
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


def test_keys_that_every_name_needs_have_others_in_their_place() -> None:
    found = read({"labels": {"a": "b"}, "project": "X", "stack": 3})
    assert found.removed == {("project",), ("region",), ("projectNumber",), ("stack",)}
    settings = found.settings
    assert settings is not None
    assert (settings.project, settings.region, settings.project_number, settings.stack) == (
        *("placeholder", "us-central1", "100000000000", "placeholder"),
    )
    assert settings.labels == {"a": "b"}


def test_what_a_file_has_twice_or_in_another_namespace_counts_as_left_out() -> None:
    raw = reader.RawConfig(BASE)
    raw.problems = (
        Problem("wrong namespace", path=("acme:buckets",)),
        Problem("the same key twice", "vertex-training:jobs"),
        Problem("the same key twice", "vertex-training:unknown"),
        Problem("the same key twice", "secrets"),
    )
    found = read(raw)
    assert found.removed == {("buckets",), ("jobs",)}
    assert found.problems == raw.problems
    raw["bukets"] = {}
    both = read(raw)
    assert both.removed == {("buckets",), ("jobs",), ("bukets",)}
    assert [p.what for p in both.problems] == [*(p.what for p in raw.problems), "unknown key"]


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
        (("buckets", "data"), ("buckets", "data"), "", True),
        (("buckets", "data"), ("buckets", "other"), "", False),
        (("buckets", "data"), ("buckets",), "", False),
        (("buckets", "data"), (), "", False),
        (("buckets", "data"), READS, "data", True),
        (("buckets", "data"), READS, "other", False),
        (("buckets", "data", "protect"), READS, "data", True),
        (("buckets",), READS, "other", True),
        (("buckets",), ("serviceAccounts", "trainer", "writes", 1), "x", True),
        (("buckets",), ("serviceAccounts", "trainer", "secrets", 0), "x", False),
        (("secrets", "key"), ("serviceAccounts", "trainer", "secrets", 0), "key", True),
        (("teams", "vision"), ("buckets", "data", "team"), "vision", True),
        (("teams", "vision"), ("buckets", "data", "team"), "speech", False),
        (("jobs", "train"), ("models", "train", "job"), "train", True),
        (("models", "titanic"), ("endpoints", "titanic", "model"), "titanic", True),
        (("serviceAccounts", "a"), ("endpoints", "titanic", "account"), "a", True),
        (("buckets", "data"), ("snapshots", "clicks", "bucket"), "data", True),
        (("network", "subnet"), ("network", "nat"), "", True),
        (("network", "subnet"), ("sharedVpc", "hostProject"), "", True),
        (("sharedVpc",), ("network",), "", True),
        (("network", "subnet"), ("reservations", "h100"), "", False),
        (("region",), ("network", "subnet"), "", True),
        (("region",), ("sharedVpc",), "", True),
        (("region",), ("reservations", "h100"), "", True),
        (("region",), ("encryption", "key"), "", True),
        (("projectNumber",), ("project",), "", True),
        (("stack",), ("projectNumber",), "", True),
        (("region",), ("buckets", "data"), "", False),
        (("labels", "a"), ("region",), "", False),
        (("reservations", "h100", "count"), ("reservations", "h100", "zone"), "", True),
        (("reservations", "h100", "count"), ("reservations", "l4"), "", False),
        (("buckets", "data", "name"), ("buckets", "data", "protect"), "", False),
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
