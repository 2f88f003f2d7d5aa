"""Exceptions of a stack from what it includes: what each path changes, and where it stands."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import rows
from vertex_training.errors import Location, Problem
from vertex_training.located_yaml import document
from vertex_training.settings import locations, overrides

#: What the stack's file and an included one give together.
MERGED = {
    "ns:buckets": {"data": {"protect": True, "retention": {"days": 3}}, "own": {}},
    "ns:labels": {"team": "ml"},
    "ns:submitters": ["user:a@x.com"],
    "ns:limits": {"maxUsdPerJob": 5, "allowUnpriced": True},
    "ns:onChange": "finish",
}
#: Full keys and entries of what is included; ``own`` and ``onChange`` are the stack's.
INCLUDED = [("ns:buckets", "data"), ("ns:labels", "team"), ("ns:submitters",), ("ns:limits",)]
OWN = {"ns:buckets": {"own": {}}, "ns:onChange": "finish"}


def applied(given: Any) -> tuple[dict[str, Any], list[tuple[str, str, str, str]]]:
    """The config after the exceptions, and the problems with them."""
    merged = copy.deepcopy(MERGED)
    found = rows(overrides.apply("ns", merged, OWN | {"ns:overrides": given}, INCLUDED))
    return merged, found


@pytest.mark.parametrize(
    ("given", "key", "value"),
    [
        ({"buckets.data.protect": False}, "ns:buckets",
         {"data": {"protect": False, "retention": {"days": 3}}, "own": {}}),
        ({"buckets.data.retention.days": 9}, "ns:buckets",
         {"data": {"protect": True, "retention": {"days": 9}}, "own": {}}),
        ({"buckets.data.new.deep": 1}, "ns:buckets",
         {"data": {"protect": True, "retention": {"days": 3}, "new": {"deep": 1}}, "own": {}}),
        ({"buckets.data.retention": None}, "ns:buckets", {"data": {"protect": True}, "own": {}}),
        ({"buckets.data": None}, "ns:buckets", {"own": {}}),
        ({"buckets.data": {"name": "x"}}, "ns:buckets", {"data": {"name": "x"}, "own": {}}),
        ({"submitters": []}, "ns:submitters", []),
        ({"labels.team": "x"}, "ns:labels", {"team": "x"}),
        ({"limits.maxUsdPerJob": 7}, "ns:limits", {"maxUsdPerJob": 7, "allowUnpriced": True}),
        ({"limits.allowUnpriced": None}, "ns:limits", {"maxUsdPerJob": 5}),
        ({"limits": {"regions": ["r"]}}, "ns:limits", {"regions": ["r"]}),
    ],
)  # fmt: skip
def test_a_path_changes_one_value(given: Any, key: str, value: Any) -> None:
    merged, found = applied(given)
    assert found == []
    assert merged == MERGED | {key: value}


def test_null_leaves_out_a_whole_key() -> None:
    merged, found = applied({"submitters": None})
    assert found == []
    assert merged == {key: value for key, value in MERGED.items() if key != "ns:submitters"}


def test_what_is_shared_with_other_stacks_is_not_written() -> None:
    merged: dict[str, Any] = dict(MERGED)
    given = {"ns:overrides": {"buckets.data.retention.days": 9}}
    assert list(overrides.apply("ns", merged, given, INCLUDED)) == []
    assert MERGED["ns:buckets"]["data"]["retention"] == {"days": 3}  # pyright: ignore
    assert merged["ns:buckets"]["data"]["retention"] == {"days": 9}


def test_without_exceptions_nothing_changes() -> None:
    for given in ({}, None, [], "x"):
        assert applied(given) == (MERGED, [])


@pytest.mark.parametrize(
    ("given", "wrong", "hint"),
    [
        ({"buckets": {}}, "is a mapping of names", "override one of them, like buckets.data"),
        ({"buckets.own.protect": True}, "stands in this file", "change it there"),
        ({"onChange": "cancel"}, "stands in this file", "change it there"),
        ({"buckets.dat.protect": True}, "no included file has buckets.dat",
         "did you mean 'buckets.data'?"),
        ({"lables.team": "x"}, "no included file has lables",
         "known here: buckets.data, labels.team, limits, submitters"),
        ({"secrets": {}}, "no included file has secrets",
         "known here: buckets.data, labels.team, limits, submitters"),
        ({"labels.team.deep": 1}, "labels.team is no mapping", "shorten the path"),
        ({"buckets.data.nothing": None}, "there is nothing to leave out", "remove it"),
    ],
)  # fmt: skip
def test_an_exception_from_nothing_is_told_with_what_there_is(
    given: Any, wrong: str, hint: str
) -> None:
    [(text, _)] = given.items()
    _, found = applied(given)
    assert found == [(f"ns:overrides.{text}", wrong, "", hint)]


def test_the_entry_that_a_hint_names_is_the_first_by_name() -> None:
    given = OWN | {"ns:overrides": {"buckets": {}}}
    included = [("ns:buckets", "logs"), ("ns:buckets", "data"), ("ns:buckets", "models")]
    found = rows(overrides.apply("ns", copy.deepcopy(MERGED), given, included))
    assert [hint for *_, hint in found] == ["override one of them, like buckets.data"]


def test_a_part_of_an_exception_is_a_mistake_and_the_whole_counts() -> None:
    merged, found = applied({"buckets.data.protect": False, "buckets.data": {"name": "x"}})
    whole = "is a part of buckets.data, which is overridden as a whole"
    assert found == [("ns:overrides.buckets.data.protect", whole, "", "keep one of them")]
    assert merged["ns:buckets"] == {"data": {"name": "x"}, "own": {}}
    assert applied({"labels.team": "x", "labels.teams": "y"})[1][0][1] == (
        "no included file has labels.teams"
    )


FILE = """\
config:
  gcp:project: acme
  ns:include: [shared.yaml]
  ns:buckets:
    own: {protect: tru}
  ns:jobs:
  - one
  - two
  ns:overrides:
    buckets.data.protect: x
    submitters: []
  other:thing: 1
"""
SHARED = """\
config:
  ns:buckets:
    data: {protect: true, name: A}
  ns:submitters:
  - x
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("ns:buckets", "data", "protect"),
         ("config", "ns:overrides", "buckets.data.protect")),
        (("ns:buckets", "data", "protect", "deep"),
         ("config", "ns:overrides", "buckets.data.protect", "deep")),
        (("ns:submitters", 0), ("config", "ns:overrides", "submitters", 0)),
        (("ns:buckets", "data"), ()),
        (("ns:buckets", "data", "name"), ()),
        (("other:buckets", "data", "protect"), ()),
        ((), ()),
    ],
)  # fmt: skip
def test_a_value_that_is_overridden_stands_in_the_stacks_file(path: Any, place: Any) -> None:
    assert overrides.place(document.read(FILE.encode(), "Pulumi.dev.yaml"), path) == place


@pytest.mark.parametrize(
    "text",
    [
        "a: b\n", "config: x\n", "config: {}\n", "config: {ns:overrides: x}\n",
        "config: {ns:labels: {buckets: x}}\n",
    ],
)  # fmt: skip
def test_a_file_without_exceptions_has_no_place_for_one(text: str) -> None:
    file = document.read(text.encode(), "Pulumi.dev.yaml")
    assert overrides.place(file, ("ns:buckets", "data")) == ()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        # The key of a value; an item of a list, or the list; the nearest parent that is there.
        (("ns:buckets", "own", "protect"), ("Pulumi.dev.yaml", 5, 11)),
        (("ns:buckets", "own", "missing"), ("Pulumi.dev.yaml", 5, 5)),
        (("ns:buckets",), ("Pulumi.dev.yaml", 4, 3)),
        (("ns:jobs", 1), ("Pulumi.dev.yaml", 8, 5)),
        (("ns:jobs", 2), ("Pulumi.dev.yaml", 6, 3)),
        (("ns:jobs", 1, "x"), ("Pulumi.dev.yaml", 8, 5)),
        # What is included stands in its file; what is overridden does not.
        (("ns:buckets", "data", "name"), ("shared.yaml", 3, 27)),
        (("ns:buckets", "data", "other"), ("shared.yaml", 3, 5)),
        (("ns:buckets", "data", "protect"), ("Pulumi.dev.yaml", 10, 5)),
        (("ns:submitters", 0), ("Pulumi.dev.yaml", 11, 5)),
        # A key that no file has.
        (("ns:missing",), ("Pulumi.dev.yaml", 0, 0)),
        ((), ("Pulumi.dev.yaml", 0, 0)),
    ],
)
def test_a_problem_stands_at_the_longest_part_of_its_path(
    tmp_path: Path, path: Any, place: tuple[str, int, int]
) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(FILE)
    (tmp_path / "shared.yaml").write_text(SHARED)
    problem = Problem("is wrong", "v", "h", path, Location("Pulumi.dev.yaml"))
    assert locations.locate([problem], tmp_path) == [problem.at(Location(*place))]


def test_a_problem_with_a_line_keeps_it_and_one_of_no_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(FILE)
    there = Problem("a", path=("ns:buckets",), location=Location("Pulumi.dev.yaml", 99, 1))
    gone = Problem("b", path=("ns:buckets",), location=Location("Pulumi.prod.yaml"))
    plain = Problem("c", path=("ns:jobs", 0), location=Location("Pulumi.dev.yaml"))
    found = locations.locate([there, gone, plain, there], tmp_path)
    assert found == [there, gone, plain.at(Location("Pulumi.dev.yaml", 7, 5)), there]
    (tmp_path / "Pulumi.prod.yaml").write_text("config: [\n")
    assert locations.locate([gone], tmp_path) == [gone]
