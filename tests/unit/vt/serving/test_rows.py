"""Rows of a file: read in bounds, sent in batches, an answer for each in order."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.serving import rows
from vertex_training_cli.serving.rows import Prediction, RowsRefusedError

MOST = 1000


def read(text: bytes, most: int = MOST) -> list[rows.InputRow]:
    return list(rows.read_rows(io.BytesIO(text), most))


def answers(values: Iterable[Any], send: rows.Send, most: int = MOST) -> list[Prediction]:
    text = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    return list(rows.answer(rows.read_rows(io.BytesIO(text), most), send, most))


class Recorder:
    """Answers each row with itself, but for some that it refuses; keeps what was sent."""

    def __init__(self, *refused: Any) -> None:
        self.refused, self.batches = refused, list[list[Any]]()

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(values))
        if any(each in self.refused for each in values):
            raise RowsRefusedError("500 the container failed")
        return list(values)


def test_every_line_is_a_row_with_its_number() -> None:
    found = read(b'{"a": 1}\n[2]\n"x"\nnull\n5')
    assert [(row.line, row.value) for row in found] == [
        (1, {"a": 1}), (2, [2]), (3, "x"), (4, None), (5, 5),
    ]  # fmt: skip


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


def test_a_line_of_100_mb_is_refused_and_never_held_in_memory() -> None:
    class Endless(io.RawIOBase):
        """``1``, a line of 100 MB without an end within, ``2``."""

        def __init__(self) -> None:
            self.left = 100 * 2**20
            self.parts = [b"1\n"]

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 < size <= 2_000_000
            if self.parts:
                return self.parts.pop(0)
            if self.left > 0:
                size = min(size, self.left)
                self.left -= size
                if self.left:
                    return b"7" * size
                self.parts = [b"2\n"]
                return b"7" * (size - 1) + b"\n"
            return b""

    tracemalloc.start()
    found = list(rows.read_rows(Endless(), rows.SHARED_BYTES))  # pyright: ignore[reportArgumentType]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(row.line, bool(row.problem)) for row in found] == [(1, False), (2, True), (3, False)]
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (b"7" * 9 + b"\n", True), (b"7" * 10 + b"\n", True), (b"7" * 11 + b"\n", False),
        (b"7" * 10, True), (b"7" * 11, False), (b"7" * 30 + b"\n", False),
    ],
)  # fmt: skip
def test_a_line_may_be_as_long_as_a_request(text: bytes, taken: bool) -> None:
    first, *more = read(text + b"1\n" if text.endswith(b"\n") else text, 10)
    problem = "" if taken else "longer than a request may be: 10 bytes"
    assert (first.line, first.problem) == (1, problem)
    assert [(row.line, row.value) for row in more] == [(2, 1)] * text.endswith(b"\n")


@pytest.mark.parametrize(
    ("most", "sizes"), [(1001, [2, 1]), (1000, [1, 1, 1]), (1501, [2, 1]), (1502, [3])]
)
def test_rows_of_500_bytes_fill_a_request_with_what_is_between_them(
    most: int, sizes: list[int]
) -> None:
    send = Recorder()
    answers(["x" * 498] * 3, send, most)
    assert [len(batch) for batch in send.batches] == sizes


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (2.0**53 - 1, "9007199254740991"), (1 - 2.0**53, "-9007199254740991"),
        (2.0**53, "9007199254740992.0"), (0.5, "0.5"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_whole_numbers_that_a_float_holds_exactly_are_integers(number: float, shown: str) -> None:
    assert repr(rows.to_plain(Value(number_value=number))) == shown


def test_rows_go_in_batches_within_the_size_and_the_number() -> None:
    send = Recorder()
    found = answers(range(600), send)
    assert [each.value for each in found] == list(range(600))
    assert all(len(batch) <= rows.MOST_ROWS for batch in send.batches)
    assert all(len(json.dumps(batch)) <= MOST * 2 for batch in send.batches)
    wide = Recorder()
    answers(["x" * 400] * 5, wide)
    assert [len(batch) for batch in wide.batches] == [2, 2, 1]


def test_a_row_that_the_endpoint_answers_with_500_is_found_and_all_others_are_answered() -> None:
    send = Recorder(77)
    found = answers(range(100), send)
    assert [each.line for each in found] == list(range(1, 101))
    assert [each for each in found if each.problem] == [
        Prediction(78, problem="500 the container failed")
    ]
    assert [each.value for each in found if not each.problem] == [n for n in range(100) if n != 77]
    assert len(send.batches) < 20


def test_a_bad_line_is_answered_in_its_place() -> None:
    text = io.BytesIO(b"1\nnot json\n3\n")
    found = list(rows.answer(rows.read_rows(text, MOST), Recorder(), MOST))
    assert [(each.line, each.value, bool(each.problem)) for each in found] == [
        (1, 1, False), (2, None, True), (3, 3, False),
    ]  # fmt: skip


def test_an_endpoint_that_fails_for_all_is_not_asked_for_the_rest() -> None:
    send = Recorder(*range(2000))
    found = answers(range(2000), send)
    assert len(found) == rows.MOST_FAILURES
    assert len(send.batches) < 100


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


def test_a_number_that_json_lacks_is_kept() -> None:
    assert str(rows.to_plain(Value(number_value=float("nan")))) == "nan"
    assert repr(rows.to_plain(Value(number_value=3.0))) == "3"


@given(st.lists(st.integers(0, 9), max_size=60), st.sets(st.integers(0, 9), max_size=1))
def test_every_row_has_one_answer_in_order(values: list[int], refused: set[int]) -> None:
    found = answers(values, Recorder(*refused))
    if len(found) == len(values):
        assert [each.line for each in found] == list(range(1, len(values) + 1))
        assert [bool(each.problem) for each in found] == [each in refused for each in values]
    else:
        assert all(each.problem for each in found[-rows.MOST_FAILURES :])
