"""Statements that are read without being run: what they leave in names is what Python would."""

from __future__ import annotations

import ast
import copy
from typing import Any

import pytest

from vertex_training_cli.importing.statements import Interpreter
from vertex_training_cli.importing.values import plain


def run(code: str) -> tuple[Any, list[tuple[str, bool]]]:
    """What ``value`` is afterwards, and what is said of it: words, and whether it is a guess."""
    interpreter = Interpreter()
    interpreter.label = "code"
    interpreter.visit(ast.parse(code).body)
    notes = set[Any]()
    value = plain(interpreter.scopes[0].get("value"), notes)
    return value, sorted((note.text, note.guessed) for note in notes)


KNOWN = {
    "several names": "a, b = 1, 'x'\nvalue = [b, a]",
    "names in a row": "a = value = 3",
    "a list in a list": "(a, [b, c]) = (1, [2, 3])\nvalue = [a, b, c]",
    "an annotation": "value: int = 3",
    "a name without a value": "value = 1\nvalue: int",
    "an operator": "value = 1\nvalue += 2\nvalue *= 3\nvalue -= 1",
    "a list that grows": "a = value = [1]\na += [2]",
    "a text that grows": "value = 'a'\nvalue += 'b'",
    "a mapping that grows": "a = value = {}\na['x'] = 1\na['y'] = {}\na['y']['z'] = 2",
    "an item of a list": "value = [1, 2]\nvalue[0] = 3\nvalue[-1] = 4",
    "a deletion": "value = {'a': 1, 'b': 2}\ndel value['a']",
    "a deletion in a list": "value = [1, 2, 3]\ndel value[1]",
    "a branch": "value = 1\nif value == 1:\n    value = 2\nelse:\n    value = 3",
    "no branch": "value = 1\nif value > 1:\n    value = 2",
    "branches": "n = 3\nif n < 2:\n    value = 'a'\nelif n < 4:\n    value = 'b'\nelse:\n"
    "    value = 'c'",
    "a loop": "value = []\nfor x in [1, 2]:\n    value.append(x * 2)",
    "a loop over pairs": "value = {}\nfor k, v in [('a', 1), ('b', 2)]:\n    value[k] = v",
    "a loop over a mapping": "value = []\nfor k in {'a': 1, 'b': 2}:\n    value.append(k)",
    "a break": "for value in [1, 2, 3]:\n    if value == 2:\n        break",
    "a continue": "value = []\nfor x in [1, 2, 3]:\n    if x == 2:\n        continue\n"
    "    value.append(x)",
    "an else behind a break": "for x in [1]:\n    value = 'a'\n    break\nelse:\n    value = 'b'",
    "an else of a loop": "for x in [1]:\n    value = 'a'\nelse:\n    value = 'b'",
    "a loop within a loop": "value = []\nfor x in [1, 2]:\n    for y in [3, 4]:\n"
    "        if y == 4:\n            break\n        value.append([x, y])",
    "a loop that never runs": "value = 1\nwhile False:\n    value = 2",
    "a loop over nothing": "value = 1\nfor x in []:\n    value = x",
    "a context": "with open_it() as f:\n    value = 1",
    "a function": "def f(a, b=2, *c, d=4, **e):\n    return [a, b, list(c), d, e]\n"
    "value = f(1, 3, 5, 6, d=7, g=8)",
    "defaults": "def f(a, b=2, *, c=3):\n    return [a, b, c]\nvalue = f(1)",
    "arguments by name": "def f(a, b):\n    return [a, b]\nvalue = f(b=1, a=2)",
    "arguments of a mapping": "def f(a, b, **c):\n    return [a, b, c]\n"
    "value = f(1, **{'b': 2, 'd': 3})",
    "names that are none of the function": "d = 3\ndef f(a, **c):\n    return [a, c, d]\n"
    "value = f(**{'a': 1, 'd': 2})",
    "arguments of a list": "def f(a, b):\n    return [a, b]\nvalue = f(*[1, 2])",
    "an early return": "def f(a):\n    if a > 1:\n        return 'big'\n    return 'small'\n"
    "value = [f(1), f(2)]",
    "a return in a loop": "def f():\n    for x in [1, 2, 3]:\n        if x == 2:\n"
    "            return x\nvalue = f()",
    "no return": "def f():\n    pass\nvalue = f()",
    "a default that is made once": "def f(a, l=[]):\n    l.append(a)\n    return l\nf(1)\n"
    "value = f(2)",
    "a name of the module in a function": "n = 1\ndef f():\n    return n\nn = 2\nvalue = f()",
    "a name of the function alone": "value = 1\ndef f():\n    value = 2\nf()",
    "a global name": "value = 1\ndef f():\n    global value\n    value = 2\nf()",
    "a name of the function around": "def f():\n    n = 1\n    def g():\n        nonlocal n\n"
    "        n = 2\n    g()\n    return n\nvalue = f()",
    "a function in a function": "def f(a):\n    def g(b):\n        return a + b\n    return g(2)\n"
    "value = f(1)",
    "a list that a function changes": "value = [1]\ndef f(l):\n    l.append(2)\nf(value)",
    "a list that a function gets anew": "value = [1]\ndef f(l):\n    l = [2]\nf(value)",
    "a class": "class A:\n    x = 1\n    y = 'b'\nvalue = [A.x, A().y]",
    "an object": "class A:\n    def __init__(self, x, y=2):\n        self.x = x\n"
    "        self.y = y\n    def both(self, z):\n        return [self.x, self.y, z]\n"
    "value = A(1).both(3)",
    "two objects": "class A:\n    def __init__(self, x):\n        self.x = x\na, b = A(1), A(2)\n"
    "value = [a.x, b.x]",
    "a class of a class": "class A:\n    x = 1\n    def f(self):\n        return self.x\n"
    "class B(A):\n    x = 2\nvalue = [A().f(), B().f()]",
    "an attribute that is set": "class A:\n    x = 1\na = A()\na.x = 5\nvalue = [a.x, A.x]",
    "a try": "try:\n    value = 1\nfinally:\n    other = 2",
    "an else of a try": "try:\n    value = 1\nexcept ValueError:\n    pass\nelse:\n    value = 2",
    "a list that grows by a tuple": "value = [1]\nvalue += (2, 3)",
    "a mapping that grows by another": "value = {'a': 1}\nvalue |= {'b': 2}",
    "a text of the most characters": "value = 'a' * 1000\nvalue += 'b' * 1000",
    "a name of the nearest function around": "def f():\n    n = 1\n    def g():\n"
    "        n = 2\n        def h():\n            nonlocal n\n            n = 3\n        h()\n"
    "        return n\n    return [n, g()]\nvalue = f()",
    "a global name behind one of the function": "value = n = 1\ndef f():\n    global value\n"
    "    n = 5\n    value = n + 1\nf()\nvalue = [value, n]",
    "a decorator": "def twice(f):\n    def g():\n        return [f(), f()]\n    return g\n@twice\n"
    "def f():\n    return 1\nvalue = f()",
    "two decorators": "def a(f):\n    return lambda: 0\ndef b(f):\n    return f\n@b\ndef f():\n"
    "    return 1\nvalue = f()",
    "two contexts": "with open_it() as a, open_it() as b:\n    value = 1",
    "a program that does not end": "value = 1\nif value > 1:\n    exit()\nvalue = 2",
    "a function that returns at times": "def f(a):\n    if a:\n        return 1\n"
    "value = [f(1), f(0)]",
    "all arguments": "def f(*a):\n    return list(a)\nvalue = f(1, 2)",
    "all arguments by name": "def f(a, **b):\n    return [a, b]\nvalue = f(a=1, b=2, c=3)",
    "positional names": "def f(a, /, b):\n    return [a, b]\nvalue = f(1, b=2)",
    "names alone of a mapping": "def f(*, a, b=2):\n    return [a, b]\nvalue = f(**{'a': 1})",
    "fields of a class": "from dataclasses import dataclass\n@dataclass\nclass A:\n"
    "    x: int = 1\n    y: int = 2\n    def sum(self):\n        return self.x + self.y\n"
    "value = [A(3).x, A(3).y, A(y=4).y, A(3, 4).sum()]",
    "a function of a class": "class A:\n    def f(x):\n        return x\nvalue = A.f(3)",
    "a break within a branch of a loop": "value = []\nfor x in [1, 2, 3]:\n    if x == 2:\n"
    "        value.append('end')\n        break\n    else:\n        value.append(x)\n"
    "else:\n    value = 'never'",
    "a loop that ends the function": "def f():\n    for x in [1, 2]:\n        return x\n"
    "    return 3\nvalue = f()",
    "a return in a try": "def f():\n    try:\n        return 1\n    finally:\n        pass\n"
    "    return 2\nvalue = f()",
    "a return at the end of a try": "def f():\n    try:\n        pass\n    finally:\n"
    "        return 1\n    return 2\nvalue = f()",
    "an error that is raised": "def f(a):\n    if a:\n        raise ValueError\n    return 1\n"
    "value = f(0)",
    "a walrus": "if (n := 3) > 2:\n    value = n",
}


@pytest.mark.parametrize("code", KNOWN.values(), ids=KNOWN)
def test_what_is_known_is_what_python_leaves(code: str) -> None:
    from contextlib import nullcontext

    scope: dict[str, Any] = {"open_it": nullcontext}
    exec(code, scope)
    assert run(code) == (copy.deepcopy(scope["value"]), [])


WHY = "which cannot be decided"
#: ``f``, ``g`` and names that begin with ``un`` are not known.
OPEN = {
    "if unknown:\n    value = 1\nelse:\n    value = 2": (
        "<YOUR_VALUE>", [("value is 2 or 1: `if unknown` cannot be decided", False)]),
    "if unknown:\n    value = 1\nelse:\n    value = 1": (1, []),
    "value = 1\nif unknown:\n    value = 2": (
        "<YOUR_VALUE>", [("value is 1 or 2: `if unknown` cannot be decided", False)]),
    "if unknown:\n    value = 1": (1, [(f"value is only set by `if unknown`, {WHY}", False)]),
    "value = {}\nif unknown:\n    value['a'] = 1": (
        {"a": 1}, [(f"a is only there by `if unknown`, {WHY}", False)]),
    "value = [1]\nif unknown:\n    value.append(2)": (
        [1, 2], [(f"value has all 2 items only by `if unknown`, {WHY}", False)]),
    "value = [1]\nif unknown:\n    value[0] = 2": (
        ["<VALUE_0>"], [("value[0] is 1 or 2: `if unknown` cannot be decided", False)]),
    "value = 1\nif unknown:\n    raise SystemExit": (1, []),
    "value = 1\nif unknown:\n    value = 2\n    exit()": (1, []),
    "value = 1\nif unknown:\n    pass\nelse:\n    value = 2\n    quit()": (1, []),
    "def f():\n    if unknown:\n        return 1\n    return 2\nvalue = f()": (
        "<YOUR_F>", [("f() is 1 or 2: `if unknown` cannot be decided", False)]),
    "def f():\n    if unknown:\n        return 1\nvalue = f()": (
        "<YOUR_F>", [("f() is 1 or None: `if unknown` cannot be decided", False)]),
    "for x in unknown:\n    value = x": (
        "<YOUR_X>", [(f"value is only set by `for x in unknown`, {WHY}", False)]),
    "value = 1\nwhile unknown:\n    value = 2": (
        "<YOUR_VALUE>", [("value is 1 or 2: `while unknown` cannot be decided", False)]),
    "value = 1\ntry:\n    go()\nexcept OSError:\n    value = 2": (
        "<YOUR_VALUE>", [("value is 1 or 2: `except OSError` cannot be decided", False)]),
    "value = 1\nmatch unknown:\n    case 'a':\n        value = 2": (
        "<YOUR_VALUE>", [("value is 1 or 2: `case 'a'` cannot be decided", False)]),
    "value = 'a'\nfor x in [1]:\n    if unknown:\n        continue\n    else:\n        continue\n"
    "    value = 'b'": ("a", []),
    "value = 'a'\nfor x in [1]:\n    if unknown:\n        break\n    else:\n        value = 'b'": (
        "<YOUR_VALUE>", [
            (f"a round of the loop may end early by `if unknown`, {WHY}", False),
            ("value is 'b' or 'a': `if unknown` cannot be decided", False)]),
    "value = []\nclass A:\n    def __init__(self):\n        value.append(1)\n"
    "if unknown:\n    A()": (
        [1], [(f"value has all 1 items only by `if unknown`, {WHY}", False)]),
    "value = []\ndef f():\n    value.append(1)\nif unknown:\n    f()": (
        [1], [(f"value has all 1 items only by `if unknown`, {WHY}", False)]),
    "value = []\nif unknown:\n    g(1)\n    value.append(2)": (
        [2], [(f"value has all 1 items only by `if unknown`, {WHY}", False)]),
    "value = 'a' * 1000\nfor x in range(8):\n    value += value": ("<LONG_VALUE>", []),
    "value = []\nvalue += [1] * 1000\nvalue += [2]": ([], []),
    "class A(unknown):\n    x = 1\nvalue = A.x": (1, []),
    "value = [1]\ndel value[5]": ([1], [("`del value[5]` is not read", False)]),
    "value = {'a': 1}\ndel value['b']": ({"a": 1}, [("`del value['b']` is not read", False)]),
    "def f(a, b):\n    return [a, b]\nvalue = f(1)": ([1, "<YOUR_B>"], []),
    "def f(a, **b):\n    return b\nvalue = f(1, **unknown)": (
        {}, [("`unknown` is not read", False)]),
    "def f(a, **b):\n    return b\nvalue = f(**{'a': 1, **unknown})": (
        {}, [("`unknown` is not read", False)]),
    "for y in [1, 2]:\n    for x in unknown:\n        break\n    value = y": (2, []),
    "for y in [1, 2]:\n    while unknown:\n        break\n    value = y": (2, []),
    "value = 1\ntry:\n    go()\nexcept:\n    value = 2": (
        "<YOUR_VALUE>", [("value is 1 or 2: `except` cannot be decided", False)]),
    "import x\nvalue = x": ("<YOUR_X>", []),
    "value = 1\nfrom x import value": ("<YOUR_VALUE>", []),
    "value = [1]\ndel value[unknown]": ([1], [("`del value[unknown]` is not read", False)]),
    "value = [1]\nvalue[unknown] = 2": ([1], [("`value[unknown] = …` is not read", False)]),
    "value = {}\nvalue[unknown] = 2": ({}, [("`value[unknown] = …` is not read", False)]),
    "a, value = unknown": ("<YOUR_VALUE>", []),
    "a, value = 1, 2, 3": ("<YOUR_VALUE>", []),
    "def f(n):\n    return f(n - 1)\nvalue = f(3)": ("<YOUR_F>", []),
    "value = []\nvalue += unknown": (["<YOUR_UNKNOWN>"], []),
    "value = [n for n in range(60)]\nfor x in range(51):\n    value = 'x'": (
        "<YOUR_VALUE>",
        [("value is a list or 'x': `for x in range(51)` cannot be decided", False)]),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), OPEN.items())
def test_what_cannot_be_decided_is_open_and_said(code: str, expected: Any) -> None:
    assert run(code) == expected


PARSER = "import argparse\np = argparse.ArgumentParser()\n"


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("'--n', type=int, default='4'", 4, "4 is the default of --n"),
        ("'--n', type=int, default='x'", "<YOUR_N>", ""),
        ("'--n', type=parse, default='x'", "<YOUR_N>", ""),
        ("'--n', action='store_true'", False, "False is the default of --n"),
        ("'n'", "<YOUR_N>", ""),
        ("'--n', default=None", "<YOUR_N>", ""),
        ("'--n', default=[1, 2]", [1, 2], "the default of --n"),
    ],
)
def test_an_option_has_its_default_and_that_is_a_guess(
    argument: str, value: Any, said: str
) -> None:
    found = run(f"{PARSER}p.add_argument({argument})\nvalue = p.parse_args().n")
    assert found == (value, [(said, True)] if said else [])


@pytest.mark.parametrize(
    ("code", "value", "said"),
    [
        ("os.environ.get('N', 'd')", "d", "'d' is the default of the environment's N"),
        ("os.getenv('N', 'd')", "d", "'d' is the default of the environment's N"),
        ("os.getenv('N', default='d')", "d", "'d' is the default of the environment's N"),
        ("os.environ.setdefault('N', 'd')", "d", "'d' is the default of the environment's N"),
        ("os.environ['N']", "<YOUR_N>", ""),
        ("os.environ.get('N')", "<YOUR_N>", ""),
    ],
)
def test_a_variable_of_the_environment_has_its_default(code: str, value: Any, said: str) -> None:
    assert run(f"value = {code}") == (value, [(said, True)] if said else [])
    assert run(f"os.environ['N'] = 'set'\nvalue = {code}") == ("set", [])


def test_arguments_that_are_given_to_a_parser_are_not_read() -> None:
    code = f"{PARSER}p.add_argument('--n', default=3)\nvalue = p.parse_args(['--n', '4'])"
    value, notes = run(code)
    assert value == {"n": 3}
    assert ("the arguments of `p.parse_args(['--n', '4'])` are not read", False) in notes
    assert run(f"{PARSER}p.add_argument('--n', default=3)\nvalue, _ = p.parse_known_args()") == (
        {"n": 3}, [("3 is the default of --n", True)],
    )  # fmt: skip
