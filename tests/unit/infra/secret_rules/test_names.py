"""Names of secrets, and values that are none: the tables of ``tests/corpus/secret_rules.yaml``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from vertex_training.secret_rules.names import fetches, is_secret, looks_random, strength

DATA = yaml.safe_load((Path(__file__).parents[3] / "corpus/secret_rules.yaml").read_text("utf-8"))


def test_a_number_at_the_end_of_a_name_counts_others() -> None:
    assert strength("DB_PASSWORD_12") == "sure"
    assert strength("DB_PASSWORD_123") == ""
    assert strength("") == strength("12") == ""


def test_the_strength_of_a_name_is_that_of_the_table() -> None:
    expected = {name: row["strength"] for row in DATA["names"] for name in row["names"]}
    assert {name: strength(name) for name in expected} == expected


@pytest.mark.parametrize("row", DATA["values"], ids=lambda row: "-".join(row[:2]))
def test_a_value_is_a_secret_by_its_name_and_its_form(row: list[Any]) -> None:
    name, value, in_variable, elsewhere = row
    assert is_secret(name, value, variable=True) is in_variable
    assert is_secret(name, value, variable=False) is elsewhere


@pytest.mark.parametrize(("key", "check"), [("random", looks_random), ("code", fetches)])
def test_random_values_and_code_are_recognized(key: str, check: Callable[[str], bool]) -> None:
    for expected, values in DATA[key].items():
        assert {value: check(value) for value in values} == dict.fromkeys(values, expected)
