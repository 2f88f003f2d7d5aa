"""Lists, mappings and names that code changes, and what is said where a change hangs on a guess."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.importing.test_evaluation import evaluated
from tests.unit.vt.importing.test_statements import PARSER, run
from vertex_training.errors import CommandError
from vertex_training_cli.importing import evaluation

OPEN: dict[str, tuple[Any, list[tuple[str, bool]]]] = {
    "a, *value = unknown": ("<YOUR_VALUE>", []),
    "a, b, *value = [1]": ("<YOUR_VALUE>", []),
    "(a, b), value = 1, [2, 3]": ([2, 3], []),
    "value = [1]\nvalue[1] = 2": ([1], [("`value[1] = …` is not read", False)]),
    "value = [1]\nvalue[-2] = 2": ([1], [("`value[-2] = …` is not read", False)]),
    "value = [1]\nvalue['a'] = 2": ([1], [("`value['a'] = …` is not read", False)]),
    "value = [[1]]\nvalue[0].x.y = 2": ([[1]], [("`value[0].x.y = …` is not read", False)]),
    "value = {}\nvalue.x = 2": ({"x": 2}, []),
    "value = [1]\nvalue.sort()": ([1], [("`value.sort()` is not read", False)]),
    "a = [1]\nvalue = a.sort()": ("<YOUR_SORT>", []),
    "a = {}\nvalue = a.move_to_end('b')": ("<MOVE_TO_END>", []),
    "a = {'f': unknown}\nvalue = a.f(1)": ("<YOUR_F>", []),
    "value = {'f': unknown}\nvalue.f(1)": ({"f": "<YOUR_UNKNOWN>"}, []),
    "value = {}\nvalue.update(unknown)": ({}, [("`unknown` is not read", False)]),
    "value = {}\nvalue.update(**unknown)": ({}, [("`**unknown` is not read", False)]),
    "value = {}\nvalue |= unknown": ({}, [("`unknown` is not read", False)]),
    "value = {'a': 1}\nvalue.update([('a', 4)])": (
        {"a": 1}, [("`[('a', 4)]` is not read", False)]),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = a['k']": (
        "v", [("`unknown` is not read", False)]),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = a.get('k')": (
        "v", [("`unknown` is not read", False)]),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = a.k": ("v", [("`unknown` is not read", False)]),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = {'z': 1, **a}": (
        {"z": 1, "k": "v"}, [("`unknown` is not read", False)]),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = list(a)": (["k"], []),
    "a = {'k': 'v'}\na.update(unknown)\nvalue = a.keys()": (
        ["k"], [("`unknown` is not read", False)]),
    "value = [1]\nchange(value)\nvalue = len(value)": (1, []),
    "value = []\nchange(value)": ([], [("`change(…)` gets it, and is not read", False)]),
    "a = [1]\nchange(*a)\nvalue = a": ([1], []),
    "a = [[1]]\nchange(*a)\nvalue = a": (
        [[1]], [("`change(…)` gets it, and is not read", False)]),
    "a = [unknown]\nvalue = sum(a)": ("<YOUR_SUM>", []),
    "value = list(zip([1], unknown))": ("<YOUR_LIST>", []),
    "value = list(enumerate(['a'], unknown))": ("<YOUR_LIST>", []),
    "value = sorted([2, 1], reverse=unknown)": ("<YOUR_SORTED>", []),
    "value = PurePosixPath('a')": ("a", []),
    "value = cast(str, 3)": (3, []),
    "value = [x for x in range(1001)]": ("<YOUR_VALUE>", []),
    "value = os.path.join(*['a', 'b'])": ("a/b", []),
    "value = '-'.join(unknown())": ("<YOUR_UNKNOWN>", []),
    "class Color:\n    RED = 'r'\nvalue = [Color.RED.value, Color.RED.name]": (["r", "RED"], []),
    "a = 'x'\nvalue = a.name": ("<YOUR_NAME>", []),
    "a = 'x'\nvalue = a.other": ("<YOUR_OTHER>", []),
    "a = 'x'\nvalue = 'a'.unheard()": ("<YOUR_UNHEARD>", []),
    "value = 'a'.replace('a', 'b', unknown)": ("<YOUR_REPLACE>", []),
    "value = ' ABC '.strip().lower().title().capitalize()": ("Abc", []),
    "value = [''] * 1000\nvalue = len(value)": (1000, []),
    "value = [1, 2] * 501": ("<YOUR_VALUE>", []),
    "value = 999999999 + 1": (1000000000, []),
    "value = -1000000000 - 1": ("<YOUR_VALUE>", []),
    "value = {'a': unknown} == {'a': 1}": ("<YOUR_VALUE>", []),
    "value = (1, 2) is None": (False, []),
    "value = None != [1]": (True, []),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), OPEN.items())
def test_what_cannot_be_followed_is_open_or_said_of_what_it_touches(
    code: str, expected: Any
) -> None:
    assert run(code) == expected


BIG = f"{PARSER}p.add_argument('--big', action='store_true')\na = p.parse_args()\n"
GUESS = [("False is the default of --big", True)]


@pytest.mark.parametrize(
    ("before", "change", "value"),
    [
        ("value = 1", "value += 2", 3),
        ("value = [1]", "value += [2]", [1, 2]),
        ("value = [1]", "value += unknown", [1, "<YOUR_UNKNOWN>"]),
        ("value = [1]", "value.extend([2])", [1, 2]),
        ("value = [1]", "value.insert(0, 2)", [2, 1]),
        ("value = [1]", "value[0] = 2", [2]),
        ("value = {}", "value['a'] = 2", {"a": 2}),
        ("value = {}", "value.update({'a': 2})", {"a": 2}),
        ("value = {}", "value.update(a=2)", {"a": 2}),
        ("value = {}", "value.setdefault('a', 2)", {"a": 2}),
        ("value = {}", "value |= {'a': 2}", {"a": 2}),
        ("value = ''", "value = f'{value}a'", "a"),
        ("value = [[1]]", "for x in value:\n        x.append(2)", [[1, 2]]),
    ],
)
def test_a_change_that_hangs_on_a_default_says_so(before: str, change: str, value: Any) -> None:
    assert run(f"{BIG}{before}\nif not a.big:\n    {change}") == (value, GUESS)
    assert run(f"{BIG}{before}\nif not a.big:\n    pass\n{change}") == (value, [])


@pytest.mark.parametrize(("expression", "steps"), [("1", 1), ("1 + 1", 3), ("f'{n}'", 3)])
def test_code_that_is_larger_than_the_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch, expression: str, steps: int
) -> None:
    monkeypatch.setattr(evaluation, "MAX_STEPS", steps)
    assert evaluated(expression)[1] == []
    monkeypatch.setattr(evaluation, "MAX_STEPS", steps - 1)
    with pytest.raises(CommandError) as told:
        evaluated(expression)
    assert told.value.message == "the code is larger than an import can follow."
