"""Tests that the time of the secret scan is linear in the text's length, for any text."""

from __future__ import annotations

import time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertex_training.secret_rules import redaction
from vertex_training.secret_rules.redaction import redacted

_PARTS: Final = """
hf_ sk- sk-a sk-proj- eyJ eyJ- eyJaaaaaaaaaaaa. :// ://a: ://a https://a:b AKIA xox SG. 1//0 st.
sl. dp.st. 8Q~ a8Q~ aaaaaaaaaaaaaa.atlasv1. aaaaaa_ access_token$ 0123456789abcdef 00000000- pat.
secret_ password= password: password={ password:{x{ password=a, password=a,b= password=[ password={{
PASSWORD=a; token= token token=a, a=a key= KEY= A_KEY=a1 password=" password=\\" password=\\\\\\"a
password:str= name:DB_PASSWORD,value: AccountKey= Authorization X-Goog-Signature= ?sig= a. a- a_ -
_ . \\ " ' \\" { [ {} é
"""
#: How texts begin that a rule goes on with, and what may make it begin anew.
RISKY: Final = (
    *_PARTS.split(),
    *("curl -u ", "curl -u a ", "docker login ", "docker login -p", "-u a ", "-u a -p ", "\t"),
    *(
        "--user a x ",
        "mysql -u ",
        "redis-cli ",
        "sshpass -p ",
        "echo a|",
        "echo aaaa | ",
        " ",
        "\n",
    ),
    *("wandb login --a ", "machine a login b ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "="),
    *(" PRIVATE KEY", "Authorization: Bearer ", "--password ", '--password "', '"password", "'),
    *("password:a b c\n", "- name: PASSWORD\n  value: ", "- password: a # "),
    *(form[:4] for form in redaction.TOKENS.values()),
)
SMALL: Final = 8_000
#: Where time grows with the length, four times the length takes four times as long.
GROWTH: Final = 4
MOST: Final = 3 * GROWTH
#: Seconds below which a measurement says nothing.
FLOOR: Final = 0.001


def seconds(text: str) -> float:
    """Return the smaller processor time of two runs."""
    taken: list[float] = []
    for _ in range(2):
        start = time.process_time()
        redacted(text)
        taken.append(time.process_time() - start)
    return min(taken)


def growth(part: str) -> float:
    """Return how much longer the scan takes for a text of four times the length."""
    small = (part * (SMALL // len(part) + 1))[:SMALL]
    return seconds(small * GROWTH) / max(seconds(small), FLOOR)


@pytest.mark.parametrize("part", dict.fromkeys(RISKY))
def test_scan_time_of_a_repeated_part_is_linear(part: str) -> None:
    assert growth(part) < MOST


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(RISKY), min_size=2, max_size=4))
def test_scan_time_of_combined_parts_is_linear(parts: list[str]) -> None:
    assert growth("".join(parts)) < MOST
