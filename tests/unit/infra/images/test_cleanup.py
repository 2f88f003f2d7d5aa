"""What a clean-up deletes, and that it never takes what a stack file pins."""

from __future__ import annotations

import itertools

import pytest

from vertex_training.images import cleanup
from vertex_training.images.cleanup import CleanupPolicy
from vertex_training.settings.model import Registry

PINNED = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


def test_a_pinned_digest_is_kept_and_another_one_may_be_deleted() -> None:
    policies = cleanup.declared(Registry(), [PINNED])
    assert cleanup.deletes(policies, "train", PINNED) is False
    assert cleanup.deletes(policies, "train", OTHER) is None


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


DELETE_ALL = CleanupPolicy("all", "DELETE")


@pytest.mark.parametrize(
    ("keep", "gone"),
    [
        (CleanupPolicy("", "KEEP"), False),
        (CleanupPolicy("", "KEEP", version_name_prefixes=(PINNED,)), False),
        (CleanupPolicy("", "KEEP", version_name_prefixes=(OTHER,)), True),
        (CleanupPolicy("", "KEEP", package_name_prefixes=("b",)), True),
        (CleanupPolicy("", "KEEP", "TAGGED"), None),
        (CleanupPolicy("", "KEEP", tag_prefixes=("v",)), None),
        (CleanupPolicy("", "KEEP", older_than=5), None),
        (CleanupPolicy("", "KEEP", newer_than=5), None),
        (CleanupPolicy("", "KEEP", keep_count=2), None),
    ],
)
def test_keep_policy_takes_precedence_over_deletion(keep: CleanupPolicy, gone: bool | None) -> None:
    assert cleanup.deletes([DELETE_ALL, keep], "a", PINNED) is gone
    assert cleanup.deletes([keep], "a", PINNED) is False


def test_deletion_by_age_counts_as_if_time_had_passed() -> None:
    assert cleanup.deletes([CleanupPolicy("", "DELETE", older_than=5)], "a", PINNED) is True


def test_only_images_in_more_danger_are_endangered() -> None:
    maybe, gone, safe = (
        [CleanupPolicy("", "DELETE", "UNTAGGED")],
        [DELETE_ALL],
        [CleanupPolicy("", "KEEP")],
    )
    ranked, image = [safe, maybe, gone], ("a", PINNED)
    for before, after in itertools.product(range(3), repeat=2):
        found = cleanup.endangered(ranked[before], ranked[after], [image])
        assert found == ([image] if after > before else [])
