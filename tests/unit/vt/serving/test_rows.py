"""Rows of a file: read in bounds, sent in batches, an answer for each in order."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.serving import rows
from vertex_training_cli.serving.rows import Prediction

MOST = 1000


def read(text: bytes, most: int = MOST) -> list[rows.InputRow]:
    return list(rows.read_rows(io.BytesIO(text), most))


def answers(values: Iterable[Any], send: rows.Send, most: int = MOST) -> list[Prediction]:
    text = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    return list(rows.answer(rows.read_rows(io.BytesIO(text), most), send, most))


@pytest.mark.parametrize(
    "text",
    [
        b"{a: 1}", b"", b"   ", b"NaN", b"[Infinity]", b"[1e999]", b"\xff\xfe{}", b'"\\ud800"',
        b"[" * 900, b"{} {}", b"-", b"\x00", b"5" * 900 + b"x",
    ],
)  # fmt: skip
def test_what_is_no_json_is_named_by_its_line_and_the_next_is_read(text: bytes) -> None:
    bad, good = read(b"1\n" + text + b"\n2\n")[1:]
    assert (bad.line, good.line, good.value) == (2, 3, 2)
    assert bad.problem


def test_answers_that_are_too_few_are_no_answers() -> None:
    found = answers(range(4), lambda values: values[:-1])
    assert [each.problem for each in found] == ["0 answers for 1 rows"] * 4


def test_what_is_not_a_rows_fault_ends_it_all() -> None:
    def send(_values: Sequence[Any]) -> Sequence[Any]:
        raise RuntimeError("no rights")

    with pytest.raises(RuntimeError):
        answers([1, 2], send)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**52), 2**52) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_a_value_that_went_through_the_services_message_is_the_same(value: Any) -> None:
    assert rows.to_plain(ParseDict(value, Value())) == value
