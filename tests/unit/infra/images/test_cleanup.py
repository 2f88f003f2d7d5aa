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


def test_pinned_digests_stand_once_each_in_one_order() -> None:
    digests = [f"sha256:{digit * 64}" for digit in "0123456789abcdef"]
    policies = cleanup.declared(Registry(), [*reversed(digests), *digests])
    assert policies[-1] == CleanupPolicy(
        "keep-pinned", "KEEP", version_name_prefixes=tuple(digests)
    )


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("90", 90), ("90s", 90), ("90.5s", 90), ("2m", 120), ("3h", 10_800), ("5d", 432_000)),
        *((text, None) for text in ("", None)),
    ],
)
def test_an_age_is_read_in_any_unit(text: str | None, seconds: int | None) -> None:
    for action in ("DELETE", "KEEP"):
        [policy] = cleanup.parse([{"action": action, "condition": {"olderThan": text}}])
        assert policy.older_than == seconds
        [policy] = cleanup.parse([{"action": action, "condition": {"newerThan": text}}])
        assert policy.newer_than == seconds


def test_an_age_that_is_no_age_deletes_everything_and_keeps_nothing() -> None:
    unclear = {"olderThan": "soon", "newerThan": "5w"}
    [deletes, keeps] = cleanup.parse(
        [{"action": "DELETE", "condition": unclear}, {"action": "KEEP", "condition": unclear}]
    )
    assert (deletes.older_than, deletes.newer_than) == (0, None)
    assert (keeps.older_than, keeps.newer_than) == (None, 0)
    young = ImageVersion("train", PINNED, (), age=0.0)
    assert cleanup.deletes([deletes, keeps], young) is True


@pytest.mark.parametrize(
    ("row", "policy"),
    [
        ({}, CleanupPolicy("", "DELETE")),
        ({"id": "a", "action": "keep"}, CleanupPolicy("a", "KEEP")),
        ({"action": "Delete", "condition": {"tagState": "tagged"}},
         CleanupPolicy("", "DELETE", "TAGGED")),
        ({"action": "KEEP", "condition": {"tagPrefixes": ["v", 1]}},
         CleanupPolicy("", "KEEP", tag_prefixes=("v", "1"))),
        ({"action": "KEEP", "condition": {"tagPrefixes": "v"}}, CleanupPolicy("", "KEEP")),
        ({"action": "KEEP", "mostRecentVersions": {"keepCount": 3.0, "packageNamePrefixes": ["a"]}},
         CleanupPolicy("", "KEEP", package_name_prefixes=("a",), keep_count=3)),
        # A count that is no number keeps none for certain.
        ({"action": "KEEP", "mostRecentVersions": {"keepCount": "3"}},
         CleanupPolicy("", "KEEP", keep_count=0)),
        ({"action": "KEEP", "mostRecentVersions": {"packageNamePrefixes": ["a"]}},
         CleanupPolicy("", "KEEP", package_name_prefixes=("a",), keep_count=0)),
    ],
)  # fmt: skip
def test_a_policy_is_read_as_the_engine_has_it(
    row: dict[str, object], policy: CleanupPolicy
) -> None:
    assert cleanup.parse([row]) == (policy,)


DELETE_ALL = CleanupPolicy("all", "DELETE")


@pytest.mark.parametrize(
    ("keep", "version", "gone"),
    [
        # By tags: any, some, none; unknown tags may be any.
        (CleanupPolicy("", "KEEP", "TAGGED"), ImageVersion("a", PINNED, ("x",)), False),
        (CleanupPolicy("", "KEEP", "TAGGED"), ImageVersion("a", PINNED, ()), True),
        (CleanupPolicy("", "KEEP", "TAGGED"), ImageVersion("a", PINNED), None),
        (CleanupPolicy("", "KEEP", "UNTAGGED"), ImageVersion("a", PINNED, ()), False),
        (CleanupPolicy("", "KEEP", "UNTAGGED"), ImageVersion("a", PINNED, ("x",)), True),
        (CleanupPolicy("", "KEEP", "ANY"), ImageVersion("a", PINNED), False),
        # By the beginning of a tag, a digest or a package.
        (CleanupPolicy("", "KEEP", tag_prefixes=("v", "r")),
         ImageVersion("a", PINNED, ("x", "r1")), False),
        (CleanupPolicy("", "KEEP", tag_prefixes=("v",)), ImageVersion("a", PINNED, ("x",)), True),
        (CleanupPolicy("", "KEEP", tag_prefixes=("v",)), ImageVersion("a", PINNED), None),
        (CleanupPolicy("", "KEEP", version_name_prefixes=(PINNED,)),
         ImageVersion("a", PINNED), False),
        (CleanupPolicy("", "KEEP", version_name_prefixes=(OTHER,)),
         ImageVersion("a", PINNED), True),
        (CleanupPolicy("", "KEEP", package_name_prefixes=("tr",)),
         ImageVersion("train", PINNED), False),
        (CleanupPolicy("", "KEEP", package_name_prefixes=("tr",)),
         ImageVersion("serve", PINNED), True),
        # By age: exactly as old is neither older nor newer.
        (CleanupPolicy("", "KEEP", older_than=5), ImageVersion("a", PINNED, age=6), False),
        (CleanupPolicy("", "KEEP", older_than=5), ImageVersion("a", PINNED, age=5), True),
        (CleanupPolicy("", "KEEP", newer_than=5), ImageVersion("a", PINNED, age=4), False),
        (CleanupPolicy("", "KEEP", newer_than=5), ImageVersion("a", PINNED, age=5), True),
        (CleanupPolicy("", "KEEP", newer_than=5), ImageVersion("a", PINNED), None),
        # By count: as many as are kept are newer.
        (CleanupPolicy("", "KEEP", keep_count=2), ImageVersion("a", PINNED, newer=1), False),
        (CleanupPolicy("", "KEEP", keep_count=2), ImageVersion("a", PINNED, newer=2), True),
        (CleanupPolicy("", "KEEP", keep_count=2), ImageVersion("a", PINNED), None),
    ],
)  # fmt: skip
def test_what_a_policy_keeps_of_what_another_deletes(
    keep: CleanupPolicy, version: ImageVersion, gone: bool | None
) -> None:
    assert cleanup.deletes([DELETE_ALL, keep], version) is gone
    assert cleanup.deletes([keep], version) is False


def test_a_deletion_by_age_takes_what_is_young_some_day() -> None:
    old = CleanupPolicy("", "DELETE", older_than=5)
    assert cleanup.deletes([old], ImageVersion("a", PINNED, age=1)) is True
    unknown = CleanupPolicy("", "DELETE", "UNTAGGED")
    assert cleanup.deletes([unknown], ImageVersion("a", PINNED)) is None


def test_only_what_is_in_more_danger_than_before_is_endangered() -> None:
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
