"""Limits of what is read, what was said of a value, and what stands left of an assignment."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.unit.vt.importing.expressions import evaluated
from vertex_training_cli.importing.evaluation import Evaluator
from vertex_training_cli.importing.imported import Note
from vertex_training_cli.importing.values import ClientCall, UnresolvedValue, annotate, plain


@pytest.mark.parametrize(
    ("expression", "of", "value"),
    [
        ("w", "a" * 200_000, "a" * 200_000),
        ("w", "a" * 200_001, "<LONG_VALUE>"),
        ("w", ["a"] * 200_001, "<LONG_VALUE>"),
        ("w.replace('a', 'b')", "a" * 100_000, "b" * 100_000),
        ("w.replace('a', 'b')", "a" * 100_001, "<LONG_VALUE>"),
        ("w.replace('a', 'b')", "a" * 66_667, "b" * 66_667),
        ("w.replace('a', 'bb')", "a" * 66_667, "<LONG_VALUE>"),
        ("[w.append('b'), len(w)][1]", ["a"] * 199_999, 200_000),
        ("[w.append('b'), len(w)][1]", ["a"] * 200_000, 0),
    ],
)
def test_what_is_built_has_200_000_characters_or_items_at_most(
    expression: str, of: Any, value: Any
) -> None:
    assert evaluated(expression, w=of)[0] == value


@pytest.mark.parametrize(("length", "shown"), [(79, "c" * 79), (80, "c" * 77 + "...")])
def test_a_long_condition_is_cut_where_it_is_said(length: int, shown: str) -> None:
    assert evaluated(f"'a' if {'c' * length} else 'b'") == (
        "<THE_VALUE>",
        [f"the value is 'a' or 'b': `{shown}` cannot be decided (code, line 1)"],
    )


SAID = Note("it was changed", "code, line 9")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a.k", "v"),
        ("a['k']", "v"),
        ("a.get('k')", "v"),
        ("a.get('z')", None),
        ("a.copy()", {"k": "v"}),
        ("a.keys()", ["k"]),
        ("a.values()", ["v"]),
        ("a.items()", [["k", "v"]]),
        ("{'n': 1, **a}", {"n": 1, "k": "v"}),
        ("{} | a", {"k": "v"}),
        ("a | {'n': 1}", {"k": "v", "n": 1}),
        ("b", []),
        ("b + ['c']", ["c"]),
        ("c[0]", "x"),
        ("c", ["x", "y"]),
        ("sorted(c)", ["x", "y"]),
        ("','.join(c)", "x,y"),
    ],
)
def test_what_was_said_of_a_mapping_or_a_list_goes_with_whatever_is_read_of_it(
    expression: str, value: Any
) -> None:
    given: dict[str, Any] = {"a": {"k": "v"}, "b": [], "c": ["x", "y"]}
    for each in given.values():
        annotate(each, {SAID})
    assert evaluated(expression, **given) == (value, [str(SAID)])


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
        ("a, b", UnresolvedValue("x"), {"a": "<YOUR_A>", "b": "<YOUR_B>"}),
        ("a, *b", [1], {"a": 1, "b": []}),
        ("a, *b", [], {"a": "<YOUR_A>", "b": "<YOUR_B>"}),
        ("a, *b, c", [1, 2, 3, 4], {"a": 1, "b": [2, 3], "c": 4}),
        ("*a, b", [1, 2, 3], {"a": [1, 2], "b": 3}),
        ("*a, b", UnresolvedValue("x"), {"a": "<YOUR_A>", "b": "<YOUR_B>"}),
    ],
)
def test_names_left_of_an_assignment_get_their_parts(
    target: str, given: Any, names: dict[str, Any]
) -> None:
    evaluator = Evaluator()
    evaluator.assign(target_of(target), given)
    assert plain(evaluator.scopes) == [names]


@pytest.mark.parametrize(
    ("target", "lst", "m", "said"),
    [
        ("lst[1]", ["a", "new"], {"k": "v"}, []),
        ("lst[-2]", ["new", "b"], {"k": "v"}, []),
        ("lst[2]", ["a", "b"], {"k": "v"}, ["`lst[2] = …` is not read"]),
        ("lst[-3]", ["a", "b"], {"k": "v"}, ["`lst[-3] = …` is not read"]),
        ("lst[x]", ["a", "b"], {"k": "v"}, ["`lst[x] = …` is not read"]),
        ("lst.z", ["a", "b"], {"k": "v"}, ["`lst.z = …` is not read"]),
        ("m['k']", ["a", "b"], {"k": "new"}, []),
        ("m.z", ["a", "b"], {"k": "v", "z": "new"}, []),
        ("m[3]", ["a", "b"], {"k": "v", "3": "new"}, []),
        ("m[x]", ["a", "b"], {"k": "v"}, ["`m[x] = …` is not read"]),
        ("m['k'].z", ["a", "b"], {"k": "v"}, ["`m['k'].z = …` is not read"]),
        ("x.z", ["a", "b"], {"k": "v"}, []),
    ],
)
def test_a_part_that_is_assigned_is_read_or_its_whole_says_that_it_was_not(
    target: str, lst: Any, m: Any, said: list[str]
) -> None:
    evaluator = Evaluator()
    evaluator.label = "code"
    evaluator.scopes = [{"lst": ["a", "b"], "m": {"k": "v"}}]
    evaluator.assign(target_of(target), "new")
    notes = set[Note]()
    assert plain(evaluator.scopes[0], notes) == {"lst": lst, "m": m}
    assert notes == {Note(each, "code, line 1") for each in said}


def test_a_job_of_which_a_part_is_assigned_says_so() -> None:
    job, evaluator = ClientCall("CustomJob", {}, "code, line 1"), Evaluator()
    evaluator.label, evaluator.scopes = "code", [{"job": job}]
    evaluator.assign(target_of("job.spec.z"), "new")
    assert job.notes == {Note("`job.spec.z = …` is not read", "code, line 1")}
    assert [evaluator.value(ast.parse(code, mode="eval").body) for code in
            ("job is None", "job is not None", "not job", "job and 'a'")] == [
        False, True, False, "a",
    ]  # fmt: skip
