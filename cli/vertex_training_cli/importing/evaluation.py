"""Expressions of Python code, read from the syntax tree. The code is never run or imported."""

from __future__ import annotations

import ast
import builtins
import copy
import json
import operator
import re
import string
import textwrap
from collections.abc import Callable
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import REQUEST_ID, Note
from vertex_training_cli.importing.values import (
    ABOUT,
    DROPPED,
    MAX_LENGTH,
    SENDING,
    BoundMethod,
    ClientCall,
    Merge,
    Noted,
    Tuple,
    UnresolvedValue,
    annotate,
    bare,
    is_certain,
    is_known,
    jobs_of,
    noted,
    notes_of,
    plain,
    text,
    truth,
)

#: Expressions that are read of one source at most.
MAX_STEPS: Final = 1_000_000
#: Calls that make a value new with every run.
TIMES: Final = re.compile(r"\b(now|utcnow|today|strftime|time|time_ns|uuid[14]|random|token_hex)\(")
#: Methods of texts; of a text with open parts, only those of ``PARTS`` are right.
PARTS: Final = ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "replace")
CASES: Final = ("lower", "upper", "title", "capitalize")
TEXT_METHODS: Final = {
    name: getattr(str, name)
    for name in (*PARTS, *CASES, "split", "rsplit", "splitlines", "startswith", "endswith", "find",
                 "partition", "rpartition", "isdigit", "count")
}  # fmt: skip
#: Functions without an effect on what they get.
_HARMLESS: Final = (
    "print pprint display len str repr type isinstance dumps dump info debug warning error "
    "enumerate zip sorted echo log table Markdown field "
)
HARMLESS: Final = frozenset(_HARMLESS.split())
#: Attributes that say less than what they are an attribute of.
PLAIN_ATTRIBUTES: Final = ("name", "value", "uri", "id", "path", "resource_name", "append")
#: Enums of the client, whose values are the API's texts.
ENUMS: Final = re.compile(
    r"\b(AcceleratorType|Strategy|Algorithm|GoalType|ScaleType|MeasurementSelectionType|Type)$"
)
OPERATORS: Final[dict[type, Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.eq, ast.IsNot: operator.ne,
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
#: Functions that are called, if all that they get is known.
PURE: Final[dict[str, Any]] = {
    each.__name__: each
    for each in (abs, all, any, float, int, len, list, max, min, range, repr, round, sorted, sum,
                 tuple, json.dumps, json.loads, textwrap.dedent)
} | {"set": dict.fromkeys}  # fmt: skip
#: Functions of lists, whatever is in these.
OF_LISTS: Final[dict[str, Any]] = {
    each.__name__: each for each in (len, enumerate, zip, list, tuple, reversed)
}
#: Rounds of a comprehension, and items of a range or of a list that operators make.
MAX_ITEMS: Final = 1000
#: Forms of a number in a text that cannot make it long.
FORMAT: Final = re.compile(r"0?\d{0,2},?(\.\d{1,2})?[dfeg%]?")


class Evaluator:
    """Evaluates expressions over the names that were assigned so far."""

    label: str
    """The source that is being read, as notes name it."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = [{}]
        """Names, those of the module first and those of the innermost function last."""
        self.notes = set[Note]()
        """What has to be said of the expression that is being evaluated."""
        self.control = frozenset[Note]()
        """What the branch that is being read was chosen by."""
        self._steps = 0

    def place(self, node: ast.AST) -> str:
        """Where a part of the code stands."""
        return f"{self.label}, line {getattr(node, 'lineno', 1)}"

    def note(self, node: ast.AST, what: str, *, guessed: bool = False) -> None:
        """Say something of the value that is being evaluated."""
        self.notes.add(Note(what, self.place(node), guessed))

    def held(self, node: ast.expr | None) -> Any:
        """The value of an expression, with its notes, to be stored somewhere."""
        outer, self.notes = self.notes, set(self.control)
        value = self.value(node)
        inner, self.notes = self.notes, outer
        return noted(value, inner)

    def open(self, value: Any) -> Any:
        """What a name, list or mapping holds; its notes are those of the expression as well."""
        if isinstance(value, Noted):
            self.notes |= value.notes
            return value.value
        return value

    def value(self, node: ast.expr | None) -> Any:
        """The value of an expression; an UnresolvedValue if running the code would be needed."""
        if node is None:
            return None
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CommandError("the code is larger than an import can follow.")
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        found = handler(node) if handler else self._unknown(node)
        if isinstance(found, str | list) and len(found) > MAX_LENGTH:
            return UnresolvedValue("long value")
        return found

    def decide(self, node: ast.expr) -> bool | None:
        """Whether a condition holds; None if that cannot be known."""
        return truth(self.unless_given(self.value(node), node))

    def unless_given(self, value: Any, node: ast.AST) -> Any:
        """A value; None for an option that nobody gives, which is said."""
        if not isinstance(value, UnresolvedValue) or not value.optional:
            return value
        return self.note(node, f"{value.name} is taken as not given", guessed=True)

    def _constant(self, node: ast.Constant) -> Any:
        return (
            node.value
            if isinstance(node.value, str | int | float | None)
            else UnresolvedValue("value")
        )

    def _name(self, node: ast.Name) -> Any:
        for scope in reversed(self.scopes):
            if node.id in scope:
                return self.open(scope[node.id])
        return "__main__" if node.id == "__name__" else UnresolvedValue(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        of = self.value(node.value)
        if node.attr in SENDING and (jobs := jobs_of(of)):
            what = f"calls of `{ast.unparse(node)}` by another name are not read"
            unread = Note(what, self.place(node))
            for each in jobs:
                each.notes.add(unread)
            return BoundMethod(jobs, node.attr, unread)
        if isinstance(of, dict):
            self.notes |= notes_of(of.get(ABOUT))
            if node.attr in of:
                return self.open(of[node.attr])
        if ENUMS.search(ast.unparse(node.value)):  # of the client
            return node.attr
        if node.attr == "value" and is_certain(of):  # of an enum of the code
            return of
        if node.attr == "name" and is_certain(of) and isinstance(node.value, ast.Attribute):
            return node.value.attr
        if isinstance(of, UnresolvedValue) and node.attr in PLAIN_ATTRIBUTES:
            return UnresolvedValue(f"{of.name}_{node.attr}")
        return self._unknown(node)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        items = list[Any]()
        for item in node.elts:
            if isinstance(item, ast.Starred):
                more = self.value(item.value)
                if isinstance(more, str) and is_certain(more):
                    more = list(more)
                known = self.items_of(more)
                items += [more] if known is None else known
            else:
                items.append(self.held(item))
        return Tuple(items) if isinstance(node, ast.Tuple) else items

    _tuple = _set = _list

    def _dict(self, node: ast.Dict) -> Any:
        found = dict[str, Any]()
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:  # ** of another one
                self.update(found, self.value(item), node, ast.unparse(item))
            else:
                found[text(self.value(key))] = self.held(item)
        return found

    def update(self, found: dict[str, Any], more: Any, node: ast.AST, what: str) -> None:
        """Put what another mapping has into one; say so if it is not known."""
        if isinstance(more, dict):
            about = {*notes_of(found.get(ABOUT)), *notes_of(more.get(ABOUT))}
            found |= more
            if about:
                annotate(found, about)
        elif more is not None:
            annotate(found, {Note(f"`{what}` is not read", self.place(node))})

    def update_by_keywords(self, found: dict[str, Any], node: ast.Call) -> None:
        """Put the arguments of a call that have names into a mapping."""
        for word in node.keywords:
            if word.arg:
                found[word.arg] = self.held(word.value)
            else:
                self.update(found, self.value(word.value), node, f"**{ast.unparse(word.value)}")

    def _by_keywords(self, node: ast.Call) -> dict[str, Any]:
        """The arguments of a call that have names; what is not read of them is in ``ABOUT``."""
        found = dict[str, Any]()
        self.update_by_keywords(found, node)
        return found

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        joined = "".join(text(self.value(part)) for part in node.values)
        return re.sub(r"(\$\{job\.requestId\}[-_:.T]?){2,}", REQUEST_ID, joined)

    def _formattedvalue(self, node: ast.FormattedValue) -> Any:
        found = self.value(node.value)
        form = text(self.value(node.format_spec)) if node.format_spec else ""
        if not is_certain(found):
            return found
        found = repr(found) if node.conversion == ord("r") else found
        return formatted(found, form) if form else found

    def _binop(self, node: ast.BinOp) -> Any:
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def operate(self, op: ast.operator, left: Any, right: Any, node: ast.expr | ast.stmt) -> Any:
        """The result of an operator."""
        if isinstance(op, ast.Div) and isinstance(left, str):  # of paths
            return join_paths([left, right])
        if isinstance(op, ast.BitOr) and isinstance(left, dict):
            found = dict(left)
            self.update(found, right, node, "|")
            return found
        if isinstance(op, ast.Mod) and isinstance(left, str):
            return _percent(left, right)
        if isinstance(op, ast.Add) and (isinstance(left, list) or isinstance(right, list)):
            return [*_listed(left), *_listed(right)]
        if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):
            return text(left) + text(right)
        is_small = all(isinstance(x, int | float) and abs(x) < 10**9 for x in (left, right))
        if isinstance(op, ast.Mult) and isinstance(left, list | str) and isinstance(right, int):
            is_small = len(left) * right <= MAX_ITEMS
        found = applied(OPERATORS.get(type(op)), [left, right], {}) if is_small else NotImplemented
        return self._unknown(node) if found is NotImplemented else found

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            found = self.decide(node.operand)
            return UnresolvedValue("value") if found is None else not found
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        return value if isinstance(node.op, ast.UAdd) else self._unknown(node)

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other)
            found = self._compared(op, left, right, node)
            if not isinstance(found, bool):
                return self._unknown(node)
            if not found:
                return False
            left = right
        return True

    def _compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        if isinstance(op, ast.In | ast.NotIn):
            items = right if isinstance(right, str) else self.items_of(right)
            if items is None or not is_known(left) or not is_known(items):
                return None
            found = applied(operator.contains, [plain(items), plain(left)], {})
            return None if found is NotImplemented else found == isinstance(op, ast.In)
        if left is None or right is None:
            left, right = self.unless_given(left, node), self.unless_given(right, node)
            if any(isinstance(each, list | dict | ClientCall) for each in (left, right)):
                return isinstance(op, ast.IsNot | ast.NotEq)
        certain = is_certain(left) and is_certain(right)
        return applied(OPERATORS.get(type(op)), [left, right], {}) if certain else None

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.decide(node.test)
        if test is None:
            one, other = self.value(node.body), self.value(node.orelse)
            merged = self.merge(node, ast.unparse(node.test)).values(one, other, "the value")
            return self.open(merged)
        return self.value(node.body if test else node.orelse)

    def merge(self, node: ast.AST, why: str) -> Merge:
        """How values of two branches become one."""
        return Merge(why if len(why) < 80 else f"{why[:77]}...", self.place(node))

    def _boolop(self, node: ast.BoolOp) -> Any:
        is_or, found = isinstance(node.op, ast.Or), None
        for each in node.values:
            found = self.value(each)
            known = truth(self.unless_given(found, node) if is_or else found)
            if known is None:
                return (
                    found
                    if is_or and isinstance(found, UnresolvedValue)
                    else UnresolvedValue("value")
                )
            if known == is_or:
                return found
        return found

    def _subscript(self, node: ast.Subscript) -> Any:
        inside = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = [self.value(x) for x in (node.slice.lower, node.slice.upper, node.slice.step)]
            known = all(part is None or isinstance(part, int) for part in parts) and parts[2] != 0
            certain = isinstance(inside, list) or (isinstance(inside, str) and is_certain(inside))
            return inside[slice(*parts)] if certain and known else self._unknown(node)
        key = self.value(node.slice)
        if isinstance(inside, dict):
            self.notes |= notes_of(inside.get(ABOUT))
            return self.open(inside.get(text(key), UnresolvedValue(text(key))))
        if isinstance(inside, list) and isinstance(key, int) and -len(inside) <= key < len(inside):
            return self.open(inside[key])
        return UnresolvedValue(key) if isinstance(key, str) else self._unknown(node)

    def _namedexpr(self, node: ast.NamedExpr) -> Any:
        value = self.held(node.value)
        self.assign(node.target, value)
        return self.open(value)

    def _await(self, node: ast.Await) -> Any:
        return self.value(node.value)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        found = list[Any]()
        known = self._rounds(node, 0, lambda: found.append(self.held(node.elt)))
        return found if known else self._unknown(node)

    _generatorexp = _setcomp = _listcomp

    def _dictcomp(self, node: ast.DictComp) -> Any:
        found = dict[str, Any]()

        def keep() -> None:
            found[text(self.value(node.key))] = self.held(node.value)

        return found if self._rounds(node, 0, keep) else self._unknown(node)

    def _rounds(self, node: Any, level: int, keep: Callable[[], None]) -> bool:
        """Call ``keep`` for each item of a comprehension; whether all of them are known."""
        if level == len(node.generators):
            keep()
            return True
        each = node.generators[level]
        items = self.items(each.iter)
        if items is None or len(items) > MAX_ITEMS:
            return False
        scopes, self.scopes, known = self.scopes, [*self.scopes, {}], True
        for item in items:
            self.assign(each.target, item)
            tests = [self.decide(test) for test in each.ifs]
            known = known and None not in tests and not self.is_tired()
            if known and all(tests):
                known = self._rounds(node, level + 1, keep)
        self.scopes = scopes
        return known

    def items(self, node: ast.expr) -> list[Any] | None:
        """What a loop goes over; None if that is not known, or too much was read already."""
        found = self.value(node)
        return None if self.is_tired() else self.items_of(found)

    def is_tired(self) -> bool:
        """Whether so much was read that loops and calls are not followed any more."""
        return self._steps > MAX_STEPS // 2

    @staticmethod
    def items_of(found: Any) -> list[Any] | None:
        """The members of a list, or the keys of a mapping."""
        if isinstance(found, dict):
            return [key for key in found if key != ABOUT]
        return [x for x in found if bare(x) is not DROPPED] if isinstance(found, list) else None

    def _call(self, node: ast.Call) -> Any:
        called = called_name(node)
        is_method = isinstance(node.func, ast.Attribute)
        of = self.value(node.func.value) if isinstance(node.func, ast.Attribute) else None
        held = list[Any]()
        for each in node.args:
            starred = isinstance(each, ast.Starred)
            given = self.held(each.value if isinstance(each, ast.Starred) else each)
            held += bare(given) if starred and isinstance(bare(given), list) else [given]
        found = self.call(node, of, called, held)
        if found is not NotImplemented:
            return found
        arguments = [self.open(each) for each in held]
        found = self._method(node, of, called, arguments, held)
        if found is not NotImplemented:
            return found
        shadowed = is_method and hasattr(builtins, called)  # np.max is another one
        found = NotImplemented if shadowed else self._function(node, called, arguments)
        if found is NotImplemented:
            self._tell_unread(node, called, arguments)
            return self._unknown(node)
        return found

    def call(self, node: ast.Call, of: Any, called: str, held: list[Any]) -> Any:
        """A call of the code's own or of a client, to be read first; or NotImplemented."""
        del node, of, called, held
        return NotImplemented

    def _tell_unread(self, node: ast.Call, called: str, arguments: list[Any]) -> None:
        """A function that was not read may have changed the lists and mappings that it got."""
        if called in HARMLESS or called[:1].isupper() or called.startswith("_"):
            for word in node.keywords:  # a thread's target may be a method of a job
                if isinstance(word.value, ast.Attribute) and word.value.attr in SENDING:
                    self.value(word.value)
            return
        for each in [*arguments, *(self.value(word.value) for word in node.keywords)]:
            what = f"`{ast.unparse(node.func)}(…)` gets it, and is not read"
            self.tell_change(each, ast.Pass(lineno=node.lineno), what)

    def _function(self, node: ast.Call, called: str, arguments: list[Any]) -> Any:
        first = bare(arguments[0]) if arguments else None
        if called == "dict":
            found = dict[str, Any]()
            for each in arguments:
                self.update(found, dict(map(_pair, each)) if _is_pairs(each) else each, node, "it")
            self.update_by_keywords(found, node)
            return found
        if called in ("deepcopy", "copy") and arguments:
            return copy.deepcopy(first) if called == "deepcopy" else copy.copy(first)
        if called in ("str", "Path", "PurePosixPath", "cast") and arguments:
            last = arguments[-1] if called == "cast" else first
            return text(last) if called == "str" and not isinstance(last, UnresolvedValue) else last
        if called == "bool" and arguments:
            return NotImplemented if (found := truth(first)) is None else found
        if called in ("int", "float", "round") and isinstance(first, UnresolvedValue):
            return first
        return self._applied(node, called, arguments)

    def _applied(self, node: ast.Call, called: str, arguments: list[Any]) -> Any:
        """A function of the tables, whose arguments are known as far as it needs them."""
        if called not in {*PURE, *OF_LISTS}:
            return NotImplemented
        named = self._by_keywords(node)
        if ABOUT in named or not is_known(named):
            return NotImplemented
        given = [self.items_of(x) if isinstance(x, list | dict) else x for x in arguments]
        if called in OF_LISTS and given and all(isinstance(x, list | int) for x in given):
            return applied(OF_LISTS[called], given, plain(named, self.notes))
        if called not in PURE or not all(map(is_known, arguments)):
            return NotImplemented
        known = [plain(x, self.notes, tuples=True) for x in arguments]
        return applied(PURE[called], known, plain(named, self.notes, tuples=True))

    def _method(
        self, node: ast.Call, of: Any, called: str, arguments: list[Any], held: list[Any]
    ) -> Any:
        if called == "join" and isinstance(node.func, ast.Attribute):
            if isinstance(of, str) and arguments:
                parts = self.items_of(arguments[0])
                joined = None if parts is None else of.join(text(self.open(x)) for x in parts)
                return str(arguments[0]) if joined is None else joined
            if ast.unparse(node.func.value).endswith("path"):
                return join_paths(arguments)
        if isinstance(of, dict):
            return self._of_mapping(node, of, called, arguments)
        if isinstance(of, list):
            return self._of_list(node, of, called, arguments, held)
        if isinstance(of, str):
            return self._of_text(node, of, called, arguments)
        if isinstance(of, UnresolvedValue) and called in (*TEXT_METHODS, "as_posix"):
            return of
        return NotImplemented

    def _of_text(self, node: ast.Call, of: str, called: str, arguments: list[Any]) -> Any:
        if called == "format":
            named = plain(self._by_keywords(node), self.notes, tuples=True)
            return _formatted(of, arguments, named)
        if called in ("as_posix", "resolve", "expanduser", "encode") or (
            called in CASES and not is_certain(of)
        ):
            return of
        if called == "replace":
            arguments = [x if is_certain(x) else text(x) for x in arguments]
            if len(of) * (1 + max(len(text(x)) for x in ("", *arguments))) > MAX_LENGTH:
                return UnresolvedValue("long value")
        elif not all(map(is_certain, arguments)) or not (called in PARTS or is_certain(of)):
            return NotImplemented
        return applied(TEXT_METHODS.get(called), [of, *arguments], {})

    def _of_mapping(
        self, node: ast.Call, of: dict[str, Any], called: str, arguments: list[Any]
    ) -> Any:
        self.notes |= notes_of(of.get(ABOUT))
        if called == "copy":
            return dict(of)
        if called in ("keys", "values", "items"):
            inside = {key: each for key, each in of.items() if key != ABOUT}
            return [list(x) if called == "items" else x for x in getattr(inside, called)()]
        if called in ("get", "pop", "setdefault") and arguments and called not in of:
            key, default = text(arguments[0]), arguments[1] if len(arguments) > 1 else None
            if called == "setdefault":
                return self.open(of.setdefault(key, noted(default, self.control)))
            found = of.pop(key, default) if called == "pop" else of.get(key, default)
            return self.open(found)
        if called == "update":
            for each in arguments:
                self.update(of, noted_items(each, self.control), node, ast.unparse(node.args[0]))
            self.update_by_keywords(of, node)
            return None
        if called in of:
            return NotImplemented
        annotate(of, {Note(f"`{ast.unparse(node)[:80]}` is not read", self.place(node))})
        return self._unknown(node)

    def _of_list(
        self, node: ast.Call, of: list[Any], called: str, arguments: list[Any], held: list[Any]
    ) -> Any:
        found = None
        if called == "extend" and held:
            of += [noted(each, self.control) for each in _listed(bare(held[0]))]
        elif called == "append" and held:
            of.append(held[0])
        elif called in ("insert", "pop", "copy", "clear") and all(
            isinstance(each, int) for each in arguments[:1]
        ):
            try:
                found = getattr(of, called)(*arguments[:1], *held[1:])
            except (IndexError, TypeError):
                return UnresolvedValue("value")
        elif called in ("index", "count"):
            return (
                applied(getattr(of, called), arguments, {})
                if is_known(of)
                else UnresolvedValue(called)
            )
        else:
            annotate(of, {Note(f"`{ast.unparse(node)[:80]}` is not read", self.place(node))})
            return self._unknown(node)
        if len(of) > MAX_LENGTH:
            of.clear()
        return self.open(found)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind what stands left of ``=``: a name, several, or an item of a known value."""
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = value
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for each, part in zip(target.elts, _parts(bare(value), target.elts), strict=True):
                self.assign(each, part)
        else:
            assert isinstance(target, ast.Attribute | ast.Subscript)
            self._assign_part(target, value)

    def _assign_part(self, target: ast.Attribute | ast.Subscript, value: Any) -> None:
        inside = self.value(target.value)
        is_name = isinstance(target, ast.Attribute)
        key = target.attr if isinstance(target, ast.Attribute) else self.value(target.slice)
        if isinstance(inside, dict) and (is_name or is_certain(key)):
            inside[text(key)] = value
        elif (
            isinstance(inside, list) and isinstance(key, int) and -len(inside) <= key < len(inside)
        ):
            inside[key] = value
        else:
            self.tell_change(inside, target, f"`{ast.unparse(target)} = …` is not read")

    def tell_change(self, inside: Any, node: ast.AST, what: str) -> None:
        """Say of a list, a mapping or a job that it was changed in a way that is not read."""
        if isinstance(inside, list | dict):
            annotate(inside, {Note(what, self.place(node))})
        elif isinstance(inside, ClientCall):
            inside.notes.add(Note(what, self.place(node)))
        elif isinstance(node, ast.Attribute | ast.Subscript):
            self.tell_change(self.value(node.value), node.value, what)

    def _unknown(self, node: ast.AST) -> Any:
        """A time-like value is new with each run, as a request id is; any other one is unknown."""
        if TIMES.search(ast.unparse(node)) and "timedelta" not in ast.unparse(node):
            return REQUEST_ID
        last = node
        while isinstance(last, ast.Call | ast.Subscript):
            last = last.func if isinstance(last, ast.Call) else last.value
        if isinstance(last, ast.Attribute):
            return UnresolvedValue(last.attr)
        return UnresolvedValue(last.id if isinstance(last, ast.Name) else "value")


def called_name(node: ast.Call) -> str:
    """The last part of what is called: ``CustomJob`` of ``aiplatform.CustomJob(…)``."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def join_paths(parts: list[Any]) -> str:
    """A path of parts: one with a slash before it begins anew."""
    found = ""
    for part in map(text, parts):
        found = f"{found.rstrip('/')}/{part}" if found and not part.startswith("/") else part
    return found


def applied(function: Any, given: list[Any], named: dict[str, Any]) -> Any:
    """What a function of Python's returns, with lists in place of what else can be iterated."""
    try:
        found = function(*given, **named)
        if isinstance(found, tuple):
            return Tuple(found)
        if isinstance(found, str | int | float | list | None):
            return found
        if isinstance(found, dict) and function != dict.fromkeys:
            return found
        if isinstance(found, range) and len(found) > MAX_ITEMS:
            return NotImplemented
        return [Tuple(each) if isinstance(each, tuple) else each for each in found]
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return NotImplemented


def noted_items(value: Any, notes: frozenset[Note]) -> Any:
    """A mapping with notes on each item."""
    if isinstance(value, dict) and notes:
        return {key: noted(item, notes) for key, item in value.items()}
    return value


def _parts(value: Any, targets: list[ast.expr]) -> list[Any]:
    """What each of several names gets of a list; one with a star gets what the others leave."""
    stars = [index for index, each in enumerate(targets) if isinstance(each, ast.Starred)]
    if isinstance(value, list) and stars and len(value) >= len(targets) - 1:
        first, end = stars[0], len(value) - (len(targets) - 1 - stars[0])
        return [*value[:first], value[first:end], *value[end:]]
    if isinstance(value, list) and not stars and len(value) == len(targets):
        return value
    return [UnresolvedValue(ast.unparse(each).removeprefix("*")) for each in targets]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(bare(each), list) and len(bare(each)) == 2 for each in value
    )


def _pair(value: Any) -> tuple[str, Any]:
    key, item = bare(value)
    return text(bare(key)), item


def formatted(value: Any, form: str) -> Any:
    """A number with a format that cannot make it long; any other format is not read."""
    if not isinstance(value, int | float) or not FORMAT.fullmatch(form):
        return UnresolvedValue("value")
    try:
        return format(value, form)
    except ValueError:
        return UnresolvedValue("value")


#: Name of a field of ``%``, then the form and kind of a plain one, or all of any other.
_PERCENT_FIELD: Final = re.compile(
    r"%(?:\(([^()]*)\))?(?:(0?\d{0,2}(?:\.\d)?)([sdifr])|%"
    r"|([-#0 +]*[\d*]*(?:\.[\d*]*)?[hlL]?[a-zA-Z]))"
)


def _percent(template: str, right: Any) -> str:
    """The ``%`` operator for plain fields; any other field is open."""
    rest, named = iter(_listed(right)), right if isinstance(right, dict) else {}

    def field(match: re.Match[str]) -> str:
        key, form, kind, other = match.groups()
        unknown = UnresolvedValue(key or "value")
        if other:
            for _ in range(other.count("*") + 1):
                next(rest, None)
            return str(unknown)
        if not kind:
            return "%"
        value = bare(named.get(key, unknown) if key else next(rest, unknown))
        if not is_certain(value) or f"{form}{kind}" == "s":
            return text(value)
        if f"{form}{kind}" == "r":
            return repr(value)
        return text(formatted(value, form + kind.replace("i", "d")))

    return re.sub(_PERCENT_FIELD, field, template)


class _Fields(string.Formatter):
    """``str.format`` for plain fields: a width in one would make any text long."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        given = {str(index): each for index, each in enumerate(args)} | kwargs
        return bare(given.get(field_name, UnresolvedValue(field_name))), field_name

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return repr(value) if conversion == "r" and is_certain(value) else value

    def format_field(self, value: Any, format_spec: str) -> str:
        is_plain = not format_spec or not is_certain(value)
        return text(value if is_plain else formatted(value, format_spec))


def _formatted(template: str, arguments: list[Any], named: dict[Any, Any]) -> str:
    try:
        return _Fields().vformat(template, arguments, named)
    except ValueError:  # no template
        return template
