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


@pytest.mark.parametrize("rows", [None, "x", [1], [{"condition": 5, "mostRecentVersions": "x"}]])
def test_inputs_of_any_form_are_read(rows: object) -> None:
    assert all(isinstance(each, CleanupPolicy) for each in cleanup.parse(rows))


def test_an_age_that_is_no_age_deletes_everything_and_keeps_nothing() -> None:
    unclear = {"olderThan": "soon", "newerThan": "5w"}
    [deletes, keeps] = cleanup.parse(
        [{"action": "DELETE", "condition": unclear}, {"action": "KEEP", "condition": unclear}]
    )
    assert (deletes.older_than, deletes.newer_than) == (0, None)
    assert (keeps.older_than, keeps.newer_than) == (None, 0)
    young = ImageVersion("train", PINNED, (), age=0.0)
    assert cleanup.deletes([deletes, keeps], young) is True


DELETE_ALL = CleanupPolicy("all", "DELETE")


@pytest.mark.parametrize(
    ("keep", "version", "gone"),
    [
        # By tags: any, some, none; unknown tags may be any.
        (CleanupPolicy("", "KEEP", "TAGGED"), ImageVersion("a", PINNED, ("x",)), False),
        (CleanupPolicy("", "KEEP", "TAGGED"), ImageVersion("a", PINNED, ()), True),
        # By the beginning of a tag, a digest or a package.
        (CleanupPolicy("", "KEEP", tag_prefixes=("v",)), ImageVersion("a", PINNED, ("x",)), True),
        # By age: exactly as old is neither older nor newer.
        (CleanupPolicy("", "KEEP", older_than=5), ImageVersion("a", PINNED, age=6), False),
        (CleanupPolicy("", "KEEP", newer_than=5), ImageVersion("a", PINNED, age=4), False),
        # By count: as many as are kept are newer.
        (CleanupPolicy("", "KEEP", keep_count=2), ImageVersion("a", PINNED, newer=1), False),
    ],
)  # fmt: skip
def test_keep_policy_takes_precedence_over_deletion(
    keep: CleanupPolicy, version: ImageVersion, gone: bool | None
) -> None:
    assert cleanup.deletes([DELETE_ALL, keep], version) is gone
    assert cleanup.deletes([keep], version) is False


def test_only_versions_in_more_danger_are_endangered() -> None:
    version = ImageVersion("a", PINNED)
    maybe, gone, safe = (
        [CleanupPolicy("", "DELETE", "UNTAGGED")],
        [DELETE_ALL],
        [CleanupPolicy("", "KEEP")],
    )
    ranked = [safe, maybe, gone]
    for before, after in itertools.product(range(3), repeat=2):
        found = cleanup.endangered(ranked[before], ranked[after], [version])
        assert found == ([version] if after > before else [])
