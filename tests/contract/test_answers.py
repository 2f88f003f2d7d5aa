"""Every method that is served is called, and each answer is held against Google's description."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contract import description, differences, served, story
from tests.contract.cloud import ContractCloud
from tests.contract.differences import Comparison


@pytest.fixture(scope="module")
def comparison(cloud: ContractCloud) -> Comparison:
    return differences.compare(cloud, list(story.tell(cloud)))


def test_the_cloud_of_these_tests_serves_what_the_product_serves(cloud: ContractCloud) -> None:
    assert cloud.classes == {each.__name__ for each in served.services()}


def test_what_differs_is_listed(comparison: Comparison) -> None:
    assert sorted({*comparison.found} - {*differences.listed()}) == []


def test_no_difference_that_is_listed_is_gone(comparison: Comparison) -> None:
    assert sorted({*differences.listed()} - {*comparison.found}) == []


def test_every_method_is_called_and_answered(comparison: Comparison) -> None:
    assert comparison.answered == len(served.calls()) - len(story.NOT_ANSWERED)
    assert comparison.answer_fields > 400


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"invented": 1}, "invented: unknown field"),
        ({"priority": "7"}, "priority: str where there is integer"),
        ({"priority": 2**31}, "priority: 2147483648 is no int32"),
        ({"id": 7}, "id: int where there is string"),
        ({"id": str(2**64)}, "id: '18446744073709551616' is no uint64"),
        ({"direction": "UP"}, "direction: 'UP' is no value of the enum"),
        ({"allowed": [{"ports": "22"}]}, "allowed[].ports: str where there is array"),
    ],
)
def test_the_comparison_finds_what_is_wrong(value: dict[str, object], expected: str) -> None:
    form = {"$ref": "Firewall"}
    found = description.differences(value, form, "compute.v1", Counter())
    assert [*found] == [expected]
