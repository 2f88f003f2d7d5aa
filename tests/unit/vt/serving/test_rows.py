"""Rows of a file: read in bounds, sent in batches."""

from __future__ import annotations

import io
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import CommandError
from vertex_training_cli.serving import endpoints as rows

MOST = 1000


def read(text: bytes, most: int = MOST) -> list[rows.Batch]:
    return list(rows.batches(io.BytesIO(text), most))


@pytest.mark.parametrize(
    "text",
    [
        b"{a: 1}", b"", b"   ", b"NaN", b"[Infinity]", b"[1e999]", b"\xff\xfe{}", b'"\\ud800"',
        b"[" * 900, b"{} {}", b"-", b"\x00", b"5" * 900 + b"x",
    ],
)  # fmt: skip
def test_what_is_no_json_is_named_by_its_line(text: bytes) -> None:
    with pytest.raises(CommandError, match=r"^line 2 is not a valid JSON value: "):
        read(b"1\n" + text + b"\n2\n")


def test_batches_are_bounded_by_rows_and_bytes() -> None:
    assert read(b"") == []
    first, second = read(b"1\n" * 300)
    assert (len(first.values), str(second)) == (256, "lines 257 to 300")
    wide = b'"%s"\n' % (b"x" * 500)
    assert [str(batch) for batch in read(wide * 2)] == ["line 1", "line 2"]
    with pytest.raises(CommandError, match=r"^line 2 is longer than 1,000 bytes"):
        read(b"1\n" + b"7" * 2000 + b"\n3\n")


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
