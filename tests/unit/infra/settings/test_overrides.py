"""Exceptions of a stack from what it includes: what each path changes, and where it stands."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import rows
from vertex_training.errors import Location, Problem
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
        ({"buckets.data.retention": None}, "ns:buckets", {"data": {"protect": True}, "own": {}}),
        ({"buckets.data": None}, "ns:buckets", {"own": {}}),
        ({"buckets.data": {"name": "x"}}, "ns:buckets", {"data": {"name": "x"}, "own": {}}),
        ({"submitters": []}, "ns:submitters", []),
        ({"labels.team": "x"}, "ns:labels", {"team": "x"}),
    ],
)  # fmt: skip
def test_a_path_changes_one_value(given: Any, key: str, value: Any) -> None:
    merged, found = applied(given)
    assert found == []
    assert merged == MERGED | {key: value}


@pytest.mark.parametrize(
    ("given", "wrong", "hint"),
    [
        ({"buckets": {}}, "is a mapping of names", "override one of them, like buckets.data"),
        ({"buckets.own.protect": True}, "stands in this file", "change it there"),
        ({"onChange": "cancel"}, "stands in this file", "change it there"),
        ({"buckets.dat.protect": True}, "no included file has buckets.dat",
         "did you mean 'buckets.data'?"),
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
        # The key of a value; an item of a list, or the list; the nearest parent that is there.
        (("ns:buckets", "own", "protect"), ("Pulumi.dev.yaml", 5, 11)),
        (("ns:buckets", "own", "missing"), ("Pulumi.dev.yaml", 5, 5)),
        (("ns:jobs", 1), ("Pulumi.dev.yaml", 8, 5)),
        # What is included stands in its file; what is overridden does not.
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
