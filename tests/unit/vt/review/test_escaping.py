"""Names and values are harmless in Markdown and in pictures."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.review.parts import block, code, cut, label

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
