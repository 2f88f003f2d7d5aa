"""Limits of what is read, what was said of a value, and what stands left of an assignment."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.unit.vt.importing.expressions import evaluated
from vertex_training_cli.importing.evaluation import Evaluator
from vertex_training_cli.importing.imported import Note
from vertex_training_cli.importing.values import ClientCall, annotate, plain


@pytest.mark.parametrize(
    ("expression", "of", "value"),
    [
        ("w", "a" * 200_000, "a" * 200_000),
        ("w", "a" * 200_001, "<LONG_VALUE>"),
        ("w.replace('a', 'b')", "a" * 100_000, "b" * 100_000),
        ("w.replace('a', 'b')", "a" * 100_001, "<LONG_VALUE>"),
        ("[w.append('b'), len(w)][1]", ["a"] * 199_999, 200_000),
        ("[w.append('b'), len(w)][1]", ["a"] * 200_000, 0),
    ],
)
def test_what_is_built_has_200_000_characters_or_items_at_most(
    expression: str, of: Any, value: Any
) -> None:
    assert evaluated(expression, w=of)[0] == value


SAID = Note("it was changed", "code, line 9")


@pytest.mark.parametrize(
    ("expression", "value"), [("len(b)", 0), ("[*b, 1]", [1]), ("not b", True)]
)
def test_a_note_about_an_empty_list_is_no_item_of_it(expression: str, value: Any) -> None:
    empty: list[Any] = []
    annotate(empty, {SAID})
    assert evaluated(expression, b=empty)[0] == value


def target_of(code: str) -> ast.expr:
    [assigned] = ast.parse(f"{code} = None").body
    assert isinstance(assigned, ast.Assign)
    return assigned.targets[0]


@pytest.mark.parametrize(
    ("target", "given", "names"),
    [
        ("a", [1], {"a": [1]}),
        ("a, b", [1, 2], {"a": 1, "b": 2}),
        ("a, (b, c)", [1, [2, 3]], {"a": 1, "b": 2, "c": 3}),
        ("a, b", [1, 2, 3], {"a": "<YOUR_A>", "b": "<YOUR_B>"}),
        ("a, *b", [1], {"a": 1, "b": []}),
        ("a, *b", [], {"a": "<YOUR_A>", "b": "<YOUR_B>"}),
    ],
)
def test_names_left_of_an_assignment_get_their_parts(
    target: str, given: Any, names: dict[str, Any]
) -> None:
    evaluator = Evaluator()
    evaluator.assign(target_of(target), given)
    assert plain(evaluator.scopes) == [names]


def test_a_job_of_which_a_part_is_assigned_says_so() -> None:
    job, evaluator = ClientCall("CustomJob", {}, "code, line 1"), Evaluator()
    evaluator.label, evaluator.scopes = "code", [{"job": job}]
    evaluator.assign(target_of("job.spec.z"), "new")
    assert job.notes == {Note("`job.spec.z = …` is not read", "code, line 1")}
    assert [evaluator.value(ast.parse(code, mode="eval").body) for code in
            ("job is None", "job is not None", "not job", "job and 'a'")] == [
        False, True, False, "a",
    ]  # fmt: skip
