"""Each form of a secret is found once, to its end, by the rule of its service."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.security.test_shapes_of_secrets import SHAPES, made
from vertex_training.secret_rules import redaction
from vertex_training.secret_rules.files import secret_lines
from vertex_training.secret_rules.names import fetches, is_secret, looks_random, strength

#: Shapes of a service whose rule has the name of another one.
OTHERS: Final = {"bitbucket": "atlassian"}
DATA = yaml.safe_load((Path(__file__).parents[3] / "corpus/secret_rules.yaml").read_text("utf-8"))
LINES: Final = DATA["places"]
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


@pytest.mark.parametrize("shape", SHAPES["tokens"])
def test_a_token_is_found_whole_by_the_rule_of_its_service(shape: str) -> None:
    token, _ = made(SHAPES["tokens"][shape], random.Random(7))
    [(start, end, rule)] = redaction.secrets(f"see {token} there")
    assert (start, end) == (4, 4 + len(token))
    service = shape.partition("-")[0]
    assert rule.partition("-")[0] == OTHERS.get(service, service)


@pytest.mark.parametrize("shape", LINES)
def test_a_place_of_a_secret_is_found_by_its_rules(shape: str) -> None:
    text, _ = made(SHAPES["lines"][shape], random.Random(7))
    assert [rule for _, _, rule in redaction.secrets(text)] == LINES[shape]


def test_the_end_of_a_longer_word_is_no_token() -> None:
    token = f"hf_{'a1' * 20}"
    assert list(redaction.secrets(f"x{token} 0{token}")) == []
    assert [rule for _, _, rule in redaction.secrets(f"-{token}")] == ["hugging-face-token"]


def test_every_rule_of_a_place_has_a_text() -> None:
    found = {rule for rules in LINES.values() for rule in rules}
    assert set(redaction.PLACES) <= found


@pytest.mark.parametrize("row", DATA["texts"], ids=lambda row: row["text"])
def test_a_secret_in_a_text_is_found_without_the_words_around_it(row: dict[str, Any]) -> None:
    text = row["text"].replace("@BEGIN@", BEGIN).replace("@END@", END)
    found = [
        [secret.replace("@BEGIN@", BEGIN).replace("@END@", END), rule]
        for secret, rule in row["found"]
    ]
    assert [[text[a:b], rule] for a, b, rule in redaction.secrets(text)] == found


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


@pytest.mark.parametrize("row", DATA["files"], ids=lambda row: row["text"])
def test_a_file_has_secrets_in_the_lines_of_the_table(row: dict[str, Any]) -> None:
    text = row["text"].replace("@TOKEN@", "hf_" + "a1B2" * 8)
    text = text.replace("@BEGIN@", BEGIN).replace("@END@", END)
    for name in row["names"]:
        assert secret_lines(name, text.encode()) == row.get("lines", {}), name
