"""Text of a form: what fits all of it, and what an editor is told of it."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
import pytest

from vertex_training.settings.network import Network
from vertex_training.settings.section import Key, ProjectId, ProjectNumber, Section, form
from vertex_training.settings.serving import Endpoint

AB = pydantic.TypeAdapter[Any](Annotated[str, form("a|b+", "bbb")])


def test_an_editor_has_the_pattern_of_all_of_the_text_and_the_example() -> None:
    assert AB.json_schema() == {
        "type": "string", "pattern": "^(?:a|b+)$", "errorMessage": "must look like bbb",
    }  # fmt: skip


# https://docs.cloud.google.com/resource-manager/docs/creating-managing-projects: 6 to 30
# characters, the first a letter, the last no hyphen.
@pytest.mark.parametrize(
    ("form_of", "right", "wrong"),
    [
        (
            ProjectId,
            ["abcdef", "a" * 30, "a-b-c1"],
            ["abcde", "a" * 31, "1abcde", "abcde-", "Abcdef"],
        ),
        (ProjectNumber, ["123456", "1" * 19], ["12345", "1" * 20, "12345a"]),
    ],
)  # fmt: skip
def test_projects_have_ids_and_numbers(form_of: Any, right: list[str], wrong: list[str]) -> None:
    adapter = pydantic.TypeAdapter[Any](form_of)
    assert [adapter.validate_python(text) for text in right] == right
    for text in wrong:
        with pytest.raises(pydantic.ValidationError):
            adapter.validate_python(text)


def test_a_name_has_at_most_forty_characters() -> None:
    adapter = pydantic.TypeAdapter[Any](Key)
    assert adapter.validate_python("a" * 40) == "a" * 40
    with pytest.raises(pydantic.ValidationError):
        adapter.validate_python("a" * 41)


class Numbers(Section):
    """Values of several kinds."""

    days: int | None = None
    share: Annotated[float, pydantic.Field(ge=0)] | None = None
    count_or_all: int | bool = 0
    is_on: bool = False
    name: str = ""


@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_are_no_numbers(value: bool) -> None:
    for key, told in (
        ("days", "Value error, must be a number"),
        ("share", "Value error, must be a number"),
        ("name", "Input should be a valid string"),
    ):
        with pytest.raises(pydantic.ValidationError) as refused:
            Numbers.model_validate({key: value})
        assert [error["msg"] for error in refused.value.errors()] == [told]
    found = Numbers.model_validate({"countOrAll": value, "isOn": value})
    assert (found.count_or_all, found.is_on) == (value, value)


def test_shares_of_an_endpoint_are_in_the_order_of_runs() -> None:
    split = {"run 10": 5, "run 9": 95}
    found = Endpoint.model_validate({"machine": "n1-standard-2", "split": split})
    assert list(found.shares.items()) == [(9, 95), (10, 5)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"subnet": {"range": "10.20.0.1/24"}},
            "must be a block of IPv4 addresses like 10.20.0.0/24: 10.20.0.1/24 has host bits set",
        ),
        (
            {"ranges": {"workers": {"prefixLength": 16, "address": "10.64.0"}}},
            "must be an IPv4 address like 10.64.0.0",
        ),
        (
            {"allow": {"nfs": {"protocol": "tcp", "ports": ["9-8"], "destinationRanges": []}}},
            "must be ports from 0 to 65535, the lower one first",
        ),
        (
            {"allow": {"nfs": {"protocol": "tcp", "ports": ["65536"], "destinationRanges": []}}},
            "must be ports from 0 to 65535, the lower one first",
        ),
    ],
)
def test_addresses_and_ports_are_told_by_an_example(given: dict[str, Any], told: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        Network.model_validate({"mode": "psc", **given})
    assert f"Value error, {told}" in [error["msg"] for error in refused.value.errors()]
