"""Values in Python code, read from its syntax tree. The code is never run, imported or compiled.

A value that only running the code would give is an :class:`Unknown`. In a text it stands as
``<NAME>``; what depends on the time stands for the request id, which is as new with each run.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from vertex_training_cli.importing.imported import REQUEST_ID

#: Longest text or list that is built: code may double a text line by line.
MAX_LENGTH: Final = 200_000
#: Names in an expression that make its value new with every run.
TIMES: Final = frozenset(("datetime", "dt", "time", "strftime", "now", "uuid", "uuid4", "today"))
#: Methods of texts that are applied; none of them can make a text much longer.
TEXT_METHODS: Final = (
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "removeprefix",
    "removesuffix",
)
#: Calls that give their first argument back, as far as an import is concerned.
SAME: Final = ("str", "list", "tuple", "Path", "int", "float", "bool", "deepcopy", "copy")


class Unknown:
    """A value that the syntax does not tell; ``name`` is what the code calls it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        words = re.sub(r"[^A-Za-z0-9]+", "_", self.name).strip("_").upper() or "VALUE"
        return f"<{words if '_' in words else 'YOUR_' + words}>"


class Evaluator:
    """Evaluates expressions over the names that were assigned so far."""

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = names if names is not None else {}

    def value(self, node: ast.expr | None) -> Any:
        """The value of an expression; Unknown if running the code would be needed."""
        if node is None:
            return None
        found = self._value(node)
        if isinstance(found, str | list) and len(found) > MAX_LENGTH:
            return Unknown("long value")
        return found

    def _value(self, node: ast.expr) -> Any:
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        return handler(node) if handler else _unknown(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value if isinstance(node.value, str | int | float | None) else _unknown(node)

    def _name(self, node: ast.Name) -> Any:
        return self.names.get(node.id, Unknown(node.id))

    def _attribute(self, node: ast.Attribute) -> Any:
        if node.attr.isupper():  # a value of an enum of the client
            return node.attr
        return _unknown(node)

    def _list(self, node: ast.List | ast.Tuple) -> Any:
        items = list[Any]()
        for item in node.elts:
            if isinstance(item, ast.Starred):
                more = self.value(item.value)
                items += more if isinstance(more, list) else [more]
            else:
                items.append(self.value(item))
        return items

    _tuple = _list

    def _dict(self, node: ast.Dict) -> Any:
        found = dict[str, Any]()
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            if key is None:  # ** of another one
                found |= value if isinstance(value, dict) else {}
            else:
                found[text(self.value(key))] = value
        return found

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        return "".join(text(self.value(part)) for part in node.values)

    def _formattedvalue(self, node: ast.FormattedValue) -> Any:
        return self.value(node.value)

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Div) and isinstance(left, str):  # of paths
            return f"{left}/{text(right)}"
        if not isinstance(node.op, ast.Add):
            return _arithmetic(node.op, left, right) or _unknown(node)
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, str) or isinstance(right, str):
            return text(left) + text(right)
        return _unknown(node)

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        return self.value(node.body if isinstance(test, Unknown) or test else node.orelse)

    def _boolop(self, node: ast.BoolOp) -> Any:
        values = [self.value(each) for each in node.values]
        known = [each for each in values if not isinstance(each, Unknown)]
        return next(filter(None, known), known[-1] if known else values[0])

    def _subscript(self, node: ast.Subscript) -> Any:
        inside, key = self.value(node.value), self.value(node.slice)
        if isinstance(inside, dict):
            return inside.get(text(key), Unknown(text(key)))
        if isinstance(inside, list) and isinstance(key, int) and -len(inside) <= key < len(inside):
            return inside[key]
        return Unknown(key) if isinstance(key, str) else _unknown(node)

    def _listcomp(self, node: ast.ListComp) -> Any:
        [first, *others] = node.generators
        items = self.value(first.iter)
        if others or not isinstance(items, list):
            return _unknown(node)
        found, inner = list[Any](), Evaluator(dict(self.names))
        for item in items[:1000]:
            inner.assign(first.target, item)
            found.append(inner.value(node.elt))
        return found

    def _call(self, node: ast.Call) -> Any:
        called, arguments = called_name(node), [self.value(each) for each in node.args]
        if called in ("getenv", "get") and arguments and isinstance(arguments[0], str):
            default = arguments[1] if len(arguments) > 1 else None
            return default if isinstance(default, str) else Unknown(arguments[0])
        if called == "dict":
            return {each.arg: self.value(each.value) for each in node.keywords if each.arg}
        if called in SAME and arguments:
            return arguments[0]
        if isinstance(node.func, ast.Attribute):
            return self._method(node, self.value(node.func.value), called, arguments)
        return _unknown(node)

    def _method(self, node: ast.Call, of: Any, called: str, arguments: list[Any]) -> Any:
        if called == "items" and isinstance(of, dict):
            return [[key, value] for key, value in of.items()]
        if isinstance(of, str) and called in TEXT_METHODS:
            return getattr(of, called)(*[each for each in arguments if isinstance(each, str)])
        if isinstance(of, str) and called == "format":
            named = {each.arg: self.value(each.value) for each in node.keywords if each.arg}
            return _formatted(of, arguments, named)
        if isinstance(of, str) and called == "replace" and len(arguments) == 2:
            old, new = (text(each) for each in arguments)
            return of.replace(old, new) if old and len(of) * (len(new) + 1) < MAX_LENGTH else of
        return _unknown(node)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind what stands left of ``=``: a name, several, or an item of a known value."""
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            known = isinstance(value, list) and len(value) == len(target.elts)
            for index, each in enumerate(target.elts):
                self.assign(each, value[index] if known else Unknown(ast.unparse(each)))
        elif isinstance(target, ast.Subscript):
            inside, key = self.value(target.value), self.value(target.slice)
            if isinstance(inside, dict):
                inside[text(key)] = value
            elif isinstance(inside, list) and isinstance(key, int) and 0 <= key < len(inside):
                inside[key] = value


def called_name(node: ast.Call) -> str:
    """The last part of what is called: ``CustomJob`` of ``aiplatform.CustomJob(…)``."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def text(value: Any) -> str:
    """A value within a text; what would make it too long is none of it.

    Lists in lists by name have a text that is longer than any memory: they are measured first.
    """
    if isinstance(value, list | dict) and _is_longer(value, MAX_LENGTH):
        return str(Unknown("long value"))
    return "" if value is None else str(value)


def _is_longer(value: Any, most: int) -> bool:
    """Whether the text of a value has more than about ``most`` characters, in that many steps."""
    left = [value]
    while left and most >= 0:
        each = left.pop()
        if isinstance(each, dict):
            left += [*each.keys(), *each.values()][: most + 1]
        elif isinstance(each, list):
            left += each[: most + 1]
        most -= len(each) if isinstance(each, str) else 2
    return most < 0


def _unknown(node: ast.expr) -> Any:
    """A time-like value is new with each run, as a request id is; any other one is unknown."""
    names = {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    }
    if names & TIMES:
        return REQUEST_ID
    last = node
    while isinstance(last, ast.Call):
        last = last.func
    if isinstance(last, ast.Attribute):
        return Unknown(last.attr)
    return Unknown(last.id if isinstance(last, ast.Name) else "value")


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    if not all(isinstance(each, int) and abs(each) < 10**9 for each in (left, right)):
        return None
    if isinstance(op, ast.Mult):
        return left * right
    return left - right if isinstance(op, ast.Sub) else None


def _formatted(template: str, arguments: list[Any], named: dict[str, Any]) -> str:
    """``str.format`` for plain fields: a width in one would make any text long."""
    rest = iter(arguments)

    def field(match: re.Match[str]) -> str:
        name = match[1]
        if name.isdecimal():
            index = int(name) if len(name) < 4 else len(arguments)
            return text(arguments[index]) if index < len(arguments) else match[0]
        return text(named.get(name, match[0])) if name else text(next(rest, match[0]))

    return re.sub(r"\{([A-Za-z0-9_]*)\}", field, template)
