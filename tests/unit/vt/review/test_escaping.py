"""Names and values are harmless in Markdown and in pictures."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.review.escaping import MAX_SHOWN, block, code, cut, label, visible

BACKTICKED = re.compile(r"`[^`|]*`\Z")
ENTITIES = re.compile(r"<code>(?:[\w ]|&#[0-9]+;)*</code>\Z")


@given(st.text())
def test_code_is_one_span_that_nothing_can_leave(value: str) -> None:
    told = code(value)
    assert not told or BACKTICKED.match(told) or ENTITIES.match(told)
    assert "\n" not in told


@given(st.text())
def test_code_shows_the_value_itself(value: str) -> None:
    told = code(value, 10_000)
    inside = told.strip("`") if told.startswith("`") else html.unescape(told[6:-7])
    assert inside == cut(value, 10_000)


@pytest.mark.parametrize("value", ["@octocat", "a|b", "`x`", "<img src=x>", "#12", "[a](b)", "a\\"])
def test_mentions_pipes_tags_and_links_are_code(value: str) -> None:
    told = code(value)
    assert BACKTICKED.match(told) or ENTITIES.match(told)


def test_hidden_characters_are_spelt_out() -> None:
    assert visible("admin\u202eresu\u200b") == "admin\\u202eresu\\u200b"
    assert visible("a\x1b[31m") == "a\\u001b[31m"


def test_a_long_value_is_cut() -> None:
    assert len(cut("x" * 1000)) == MAX_SHOWN
    assert cut("x" * 1000).endswith("…")


@given(st.text())
def test_a_block_ends_where_it_should(value: str) -> None:
    told = block(value)
    fence = told.partition("text")[0]
    assert set(fence) == {"`"}
    assert told.endswith(f"\n{fence}")
    assert not any(line.startswith(fence) for line in told.splitlines()[1:-1])


@given(st.text())
def test_a_label_cannot_leave_its_quotes(value: str) -> None:
    assert re.fullmatch(r"(?:[\w \-./…]|#[0-9]+;)*", label(value))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\n b\u202e", "a b\\u202e"),
        # A single word is a name, and so is one that mixes scripts: another letter is spelt out.
        ("b\u0430nk", "b\\u0430nk"),
        ("of b\u0430nk", "of b\\u0430nk"),
        ("Gr\u00f6\u00dfe", "Gr\\u00f6\\u00dfe"),
        ("\u0441\u043b\u043e\u0432\u043e", "\\u0441\\u043b\\u043e\\u0432\\u043e"),
        ("\u65e5\u672cx", "\\u65e5\\u672cx"),
        ("\U0001f600", "\\U0001f600"),
        # Words of a sentence, and scripts without blanks between words, are shown.
        ("Gr\u00f6\u00dfe, 3 \u20ac", "Gr\u00f6\u00dfe, 3 \u20ac"),
        ("na\u00efve-\u00e9t\u00e9 it\u2019s", "na\u00efve-\u00e9t\u00e9 it\u2019s"),
        ("\u0441\u043b\u043e\u0432\u043e \u0438", "\u0441\u043b\u043e\u0432\u043e \u0438"),
        ("\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e"),
        # What reports add themselves.
        ("a\u2192b\u2026", "a\u2192b\u2026"),
    ],
)
def test_a_letter_that_only_looks_like_another_is_spelt_out_in_names(
    value: str, shown: str
) -> None:
    assert visible(value) == shown


@pytest.mark.parametrize(("length", "shown"), [(160, "x" * 160), (161, "x" * 159 + "…")])
def test_a_value_has_160_characters_at_most(length: int, shown: str) -> None:
    assert cut("x" * length) == shown
