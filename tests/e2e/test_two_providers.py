"""Tests that every stack of the tests registers equal resources under pulumi-gcp 9.35 and 10.2."""

from __future__ import annotations

import copy

import pytest

from tests.golden.two_providers import differences, install, record_under

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_stacks_register_equal_inputs_under_both_major_versions() -> None:
    (pinned, ours), (other, theirs) = record_under(), record_under(install())
    assert (pinned.split(".")[0], other.split(".")[0]) == ("9", "10")
    assert ours.keys() == theirs.keys()
    told = {name: differences(found, theirs[name]) for name, found in ours.items()}
    assert {name: lines for name, lines in told.items() if lines} == {}

    # What is compared can differ, and a difference is told with its place.
    changed = copy.deepcopy(theirs["dev"])
    changed["apis-storage"][1]["service"] = "compute.googleapis.com"
    changed["one-more"] = changed["apis-iam"]
    assert differences(ours["dev"], changed) == [
        "one-more: in one of them",
        "apis-storage.service: 'storage.googleapis.com', then 'compute.googleapis.com'",
    ]
