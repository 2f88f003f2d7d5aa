"""Arguments of a component while they are read: plain values, names, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.components import provider
from vertex_training.components.arguments import KEYWORDS, Arguments
from vertex_training.pulumi_internals import UNKNOWN
from vertex_training.settings.model import Settings


@pytest.fixture
def given() -> Arguments:
    return Arguments("TrainingBuckets 'store'")


@pytest.fixture(autouse=True)
def of_provider(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings of the provider of the component."""
    values: dict[str, str] = {}
    monkeypatch.setattr(provider, "value", lambda _, key: values.get(key))
    return values


def said(given: Arguments) -> list[str]:
    return [str(problem) for problem in given.problems]


NOT_KNOWN = (
    "is not known before another resource was made. Hint: give what is known in a preview, like a "
    "name that the program chooses"
)


KNOWN = ("project", "region", "own_buckets")


@pytest.mark.parametrize(
    ("args", "keywords", "found", "problems"),
    [
        ({"own_buckets": False, "project": None}, {}, {"own_buckets": False}, []),
        (KEYWORDS, {"project": "p"}, {"project": "p"}, []),
        (
            {"project": "p"},
            {"region": "r", "x": 1},
            {"project": "p"},
            ["region: are keywords, too. Hint: give all arguments in one way"],
        ),
        (
            ["project"],
            {},
            {},
            ["the arguments are a list. Hint: give a dict by names of arguments"],
        ),
        (
            {"ownBuckets": 1},
            {},
            {},
            ["ownBuckets: unknown argument. Hint: did you mean 'own_buckets'?"],
        ),
    ],
)
def test_arguments_are_found_by_their_names(
    given: Arguments, args: Any, keywords: dict[str, Any], found: Any, problems: list[str]
) -> None:
    assert given.named(args, keywords, KNOWN) == found
    assert [line.partition(". Hint: known")[0] for line in said(given)] == problems


@pytest.mark.parametrize(
    ("args", "flag", "inputs", "problems"),
    [
        ({}, True, {}, []),
        ({"own_buckets": True}, True, {"ownBuckets": True}, []),
        ({"own_buckets": False}, False, {"ownBuckets": False}, []),
        ({"own_buckets": "no"}, True, {"ownBuckets": "no"},
         ["own_buckets: must be true or false."]),
        ({"own_buckets": UNKNOWN}, True, {"ownBuckets": None}, [f"own_buckets: {NOT_KNOWN}"]),
    ],
)  # fmt: skip
def test_a_flag_is_true_without_a_word(
    given: Arguments, args: dict[str, Any], flag: bool, inputs: dict[str, Any], problems: list[str]
) -> None:
    assert given.flag(args, "own_buckets") is flag
    assert (given.inputs, said(given)) == (inputs, problems)


@pytest.mark.parametrize(
    ("value", "config"),
    [
        ("x", "x"),
        ([{"soft_delete_days": 7}, "x"], [{"softDeleteDays": 7}, "x"]),
        ({"data": "x"}, {"data": "x"}),
    ],
)
def test_what_is_no_section_is_left_to_the_rules(given: Arguments, value: Any, config: Any) -> None:
    assert given.section(Settings, {"buckets": value}, ("buckets",)) == {"buckets": config}
    assert given.problems == []
