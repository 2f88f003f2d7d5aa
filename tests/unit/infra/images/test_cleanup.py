"""What a clean-up deletes, and that it never takes what a stack file pins."""

from __future__ import annotations

import itertools

import pytest

from vertex_training.images import cleanup
from vertex_training.images.cleanup import CleanupPolicy, ImageVersion
from vertex_training.settings.model import Registry

PINNED = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64
DAY = 24 * 3600
TAGS = (None, (), ("context-1",), ("latest",))
AGES = (None, 0.0, 400.0 * DAY)
NEWER = (None, 0, 500)


def every_version(digest: str) -> list[ImageVersion]:
    """The same digest with everything that may be known of it, or not."""
    return [
        ImageVersion("train", digest, tags, age, newer)
        for tags, age, newer in itertools.product(TAGS, AGES, NEWER)
    ]


def test_a_pinned_digest_is_kept_whatever_its_tags_and_age() -> None:
    policies = cleanup.declared(Registry(), [PINNED])
    assert {cleanup.deletes(policies, version) for version in every_version(PINNED)} == {False}


def test_a_tagged_image_is_kept_and_an_untagged_one_goes_unless_it_is_among_the_newest() -> None:
    policies = cleanup.declared(Registry(keepVersions=3), [PINNED])
    assert cleanup.deletes(policies, ImageVersion("train", OTHER, ("context-2",))) is False
    assert cleanup.deletes(policies, ImageVersion("train", OTHER, (), newer=2)) is False
    assert cleanup.deletes(policies, ImageVersion("train", OTHER, (), newer=3)) is True
    assert cleanup.deletes(policies, ImageVersion("train", OTHER, ())) is None
    assert cleanup.deletes(policies, ImageVersion("train", OTHER)) is None


def test_nothing_is_pinned_nothing_is_said_of_pins() -> None:
    assert [each.id for each in cleanup.declared(Registry(), [])] == [
        "delete-untagged",
        "keep-newest",
    ]


def test_policies_as_the_engine_has_them_mean_the_same() -> None:
    rows = [
        {
            "id": "delete-untagged",
            "action": "DELETE",
            "condition": {"tagState": "UNTAGGED", "olderThan": "2592000s"},
        },
        {"id": "keep-newest", "action": "KEEP", "mostRecentVersions": {"keepCount": 10}},
        {"id": "keep-pinned", "action": "KEEP", "condition": {"versionNamePrefixes": [PINNED]}},
    ]
    assert cleanup.parse(rows) == cleanup.declared(Registry(), [PINNED])


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "all", "action": "DELETE", "condition": {"olderThan": "30d"}}],
        [{"id": "all", "action": "DELETE", "condition": {"tagPrefixes": ["context-"]}}],
        [{"id": "all", "action": "DELETE"}],
        [{"id": "odd", "action": "REMOVE", "condition": {"olderThan": "soon"}}],
        [
            {"id": "all", "action": "DELETE", "condition": {"tagState": "ANY"}},
            {"id": "keep", "action": "KEEP", "condition": {"packageNamePrefixes": ["other"]}},
        ],
    ],
)
def test_policies_that_take_a_pinned_image_are_found(rows: list[dict[str, object]]) -> None:
    before = cleanup.declared(Registry(), [PINNED])
    version = ImageVersion("train", PINNED, ("context-1",))
    assert cleanup.endangered(before, cleanup.parse(rows), [version]) == [version]
    assert cleanup.endangered(before, before, [version]) == []


def test_a_keep_policy_that_ends_with_age_keeps_nothing_for_certain() -> None:
    rows = [
        {"id": "all", "action": "DELETE", "condition": {"tagState": "TAGGED"}},
        {"id": "young", "action": "KEEP", "condition": {"newerThan": "5d"}},
    ]
    policies = cleanup.parse(rows)
    tagged = ImageVersion("train", PINNED, ("context-1",))
    assert cleanup.deletes(policies, tagged) is None
    old = ImageVersion("train", PINNED, ("context-1",), age=6.0 * DAY)
    assert cleanup.deletes(policies, old) is True


@pytest.mark.parametrize("rows", [None, "x", [1], [{"condition": 5, "mostRecentVersions": "x"}]])
def test_inputs_of_any_form_are_read(rows: object) -> None:
    assert all(isinstance(each, CleanupPolicy) for each in cleanup.parse(rows))
