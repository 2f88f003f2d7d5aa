"""Options of programs, functions that nothing calls, and statements that end a branch."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.unit.vt.importing.test_statements import PARSER, run
from vertex_training_cli.importing import evaluation
from vertex_training_cli.importing.statements import Interpreter
from vertex_training_cli.importing.values import plain

Expected = tuple[Any, list[tuple[str, bool]]]


def default(shown: str, name: str) -> list[tuple[str, bool]]:
    return [(f"{shown} is the default of {name}", True)]


OPTIONS: dict[str, Expected] = {
    "value = typer.Option('a')": ("a", default("'a'", "the option")),
    "value = typer.Option(default='a')": ("a", default("'a'", "the option")),
    "value = typer.Option(...)": ("<THE_OPTION>", []),
    "value = typer.Option(..., default='a')": ("a", default("'a'", "the option")),
    "value = typer.Argument(3)": (3, default("3", "the option")),
    "value = typer.Option(None)": ("<THE_OPTION>", []),
    "value = typer.Option()": ("<YOUR_OPTION>", []),
    "value = typer.Option(get())": ("<YOUR_GET>", []),
    "value = flags.DEFINE_string('n', get())": ("<YOUR_GET>", []),
    f"{PARSER}p.add_argument('--n', default=get())\nvalue = p.parse_args().n": (
        "<YOUR_GET>", []),
    f"{PARSER}p.add_argument('--n', type=int, default=get())\nvalue = p.parse_args().n": (
        "<YOUR_GET>", []),
    "value = flags.DEFINE_string('n', 'a')": ("a", default("'a'", "--n")),
    "value = flags.DEFINE_integer('n', default=3)": (3, default("3", "--n")),
    "value = flags.DEFINE_string('n', None)": ("<YOUR_N>", []),
    "F = flags.FLAGS\nflags.DEFINE_string('n', 'a')\nvalue = F.n": ("a", default("'a'", "--n")),
    "flags.DEFINE_string('n', 'a')\nvalue = absl.flags.FLAGS.n": ("a", default("'a'", "--n")),
    "value = FLAGS.other": ("<YOUR_OTHER>", []),
    "a = {'x': 1}\nvalue = vars(a)": ({"x": 1}, []),
    f"{PARSER}p.add_argument('--n', default=1)\nvalue = vars(p.parse_args())['n']": (
        1, default("1", "--n")),
    f"{PARSER}g = p.add_mutually_exclusive_group()\ng.add_argument('-n', default=1)\n"
    "value = p.parse_args().n": (1, default("1", "-n")),
    f"{PARSER}p.add_argument('-n', '--long-name', default=1)\nvalue = p.parse_args().long_name": (
        1, default("1", "--long-name")),
    f"{PARSER}p.add_argument('--n', is_flag=True)\nvalue = p.parse_args().n": (
        False, default("False", "--n")),
    f"{PARSER}p.add_argument('--n', action='store_true', default='x')\n"
    "value = p.parse_args().n": (False, default("False", "--n")),
    f"{PARSER}p.add_argument('--n', type=float, default=2)\nvalue = p.parse_args().n": (
        2, default("2", "--n")),
    f"{PARSER}p.add_argument('--n', type=pathlib.Path, default='a')\nvalue = p.parse_args().n": (
        "a", default("'a'", "--n")),
    f"{PARSER}p.add_argument('--n', required=False, default='a')\nvalue = p.parse_args().n": (
        "a", default("'a'", "--n")),
    f"{PARSER}p.add_argument('--n', default='a')\nvalue = p.parse_args(None).n": (
        "a", default("'a'", "--n")),
    f"{PARSER}p.add_argument('--n', default=1)\np.unheard()\nvalue = p.parse_args().n": (
        1, [*default("1", "--n"), ("`p.unheard()` is not read", False)]),
    f"{PARSER}p.add_argument()\nvalue = p.parse_args().n": ("<YOUR_N>", []),
    # An option without a default is None unless somebody gives it; an argument is always given.
    f"{PARSER}p.add_argument('--n')\nvalue = 'b' if p.parse_args().n is None else 'a'": (
        "b", [("n is taken as not given", True)]),
    f"{PARSER}p.add_argument('n')\nvalue = 'a' if p.parse_args().n is None else 'a'": ("a", []),
    f"{PARSER}p.add_argument('--n', default=None)\nvalue = p.parse_args().n or 'd'": (
        "d", [("n is taken as not given", True)]),
    f"{PARSER}p.add_argument('--n', required=True)\nvalue = p.parse_args().n or 'd'": (
        "<YOUR_N>", []),
    "import os\nvalue = os.environ.get('N') or 'd'": ("d", [("N is taken as not given", True)]),
    "import os\nvalue = os.environ.pop('N', 'd')": (
        "d", default("'d'", "the environment's N")),
    "import os\nos.environ['A'] = 'x'\nvalue = os.environ['A']": ("x", []),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), OPTIONS.items())
def test_an_option_has_its_default_or_is_open(code: str, expected: Expected) -> None:
    assert run(code) == expected


ENDS: dict[str, Expected] = {
    "value = 1\ntry:\n    raise SystemExit\nexcept OSError:\n    value = 2\nvalue = 3": (1, []),
    "def f():\n    try:\n        return 1\n    finally:\n        x = 2\nvalue = f()": (1, []),
    "def f():\n    with a() as b:\n        return b\n    return 1\nvalue = f()": ("<YOUR_A>", []),
    "def f():\n    while False:\n        return 1\n    return 2\nvalue = f()": (2, []),
    "def f():\n    for x in [1]:\n        pass\n    else:\n        return 3\n    return 2\n"
    "value = f()": (3, []),
    "def f(n):\n    if n:\n        sys.exit(1)\n    return 2\nvalue = f(0)": (2, []),
    "def f():\n    raise ValueError\nf()\nvalue = 1": (1, []),
    "def f():\n    global value\n    value = 2\nvalue = 1\nraise SystemExit(f())": (2, []),
    "async def f():\n    async with a():\n        async for x in [1]:\n            return x\n"
    "value = await f()": (1, []),
    "value = 1\nif unknown:\n    os._exit(1)\nelse:\n    value = 2": (2, []),
    "value = 1\nif unknown:\n    value = 3\nelse:\n    os.abort()": (3, []),
    "def f():\n    if unknown:\n        return 1\nvalue = f()": (
        "<YOUR_F>", [("f() is 1 or None: `if unknown` cannot be decided", False)]),
    "def f():\n    if a:\n        return 1\n    if b:\n        return 1\n    return 1\n"
    "value = f()": (1, []),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), ENDS.items())
def test_what_ends_a_branch_is_followed(code: str, expected: Expected) -> None:
    assert run(code) == expected


def test_branches_are_not_read_behind_half_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "value = [1]\nother = 1\nif unknown:\n    value.append(2)\n    other = 2\nafter = 3"
    monkeypatch.setattr(evaluation, "MAX_STEPS", 6)
    interpreter = Interpreter()
    interpreter.label = "code"
    assert interpreter.visit(ast.parse(code).body) is False
    scope, notes = interpreter.scopes[0], set[Any]()
    assert [plain(scope[name], notes) for name in ("value", "other", "after")] == [[1], 1, 3]
    assert {str(note) for note in notes} == {
        "it is changed by `if unknown`, which cannot be decided (code, line 3)"
    }
