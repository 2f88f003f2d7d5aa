"""Reads literals from the syntax tree of Python code, without running or importing the code.

A name has a value if one binding decides it, that is a literal, and nothing changes it later. All
else is computed by the code: a placeholder with a note, which ``vt import --run`` replaces.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import MAX_LENGTH, REQUEST_ID, Note, placeholder

#: Maximum number of expressions evaluated in one source: a few lines can multiply nested lists.
MAX_STEPS: Final = 200_000
#: Calls whose value differs in each run.
TIMES: Final = re.compile(
    r"(?:\w+\.)*(?:now|utcnow|today|uuid1|uuid4|token_hex)|(?:\w+\.)?time\.(?:time|time_ns|strftime)"
    r"|time"
)
#: Names of the client's enums, whose members become texts of the API.
ENUMS: Final = re.compile(
    r"\b(AcceleratorType|Strategy|Algorithm|GoalType|ScaleType|MeasurementSelectionType|Type)$"
)
#: Functions and methods that do not change their arguments.
HARMLESS: Final = (
    "print", "pprint", "display", "len", "str", "repr", "type", "isinstance", "dumps", "dump",
    "info", "debug", "warning", "error", "get", "keys", "values", "items", "copy", "index",
    "count", "format", "join",
)  # fmt: skip


class Placeholder(str):
    """A value that is unknown until the code runs; ``<NAME>`` in a job file."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Location of a part of the code: its position, its block and the functions around it."""

    order: int
    block: int
    functions: tuple[int, ...]
    label: str
    within: tuple[str, ...]
    """Branches, loops and functions around the code."""
    value: ast.expr | None = None
    """Value of a plain assignment."""


class Names(ast.NodeVisitor):
    """Records the bindings and changes of all names, and the calls in order."""

    def __init__(self, harmless: Iterable[str]) -> None:
        self.uses = dict[int, Place]()
        """Locations of names and calls, by the id of their node."""
        self.calls = list[ast.Call]()
        self.called = Counter[str]()
        self.loads = list[ast.Attribute | ast.Name]()
        """Names and attributes that are read, except called ones."""
        self.aliases = dict[str, str]()
        """Imported names: name in the code -> name in its module."""
        self.classes = set[str]()
        self.changed = set[str]()
        """Names whose lists or mappings the code may change."""
        self._harmless = {*HARMLESS, *harmless}
        self._bindings = dict[str, list[Place]]()
        self._declared = set[str]()
        self._defined, self._given = set[str](), list[tuple[str, str]]()
        """Names that the code defines, and arguments of functions without side effects."""
        self._certain_from = 0
        self._parts = dict[str, set[str]]()
        self._here = Place(0, 0, (), "", ())
        self._callees = set[int]()

    def read(self, trees: Sequence[tuple[str, ast.Module]]) -> None:
        """Read the parts of a source, each with its label."""
        for label, tree in trees:
            self._here = replace(self._here, label=label)
            for statement in tree.body:
                self.visit(statement)
        self.changed |= {name for called, name in self._given if called in self._defined}
        left = list(self.changed)
        while left:  # what is changed by one name is changed by all that it has parts of
            new = self._parts.pop(left.pop(), set()) - self.changed
            self.changed |= new
            left += new

    def _place(self, value: ast.expr | None = None) -> Place:
        self._here = replace(self._here, order=self._here.order + 1)
        return replace(self._here, value=value)

    def _bind(self, name: str | None, value: ast.expr | None = None) -> None:
        if name:
            self._bindings.setdefault(name, []).append(self._place(value))
            self._defined |= {name} if value is not None else set()

    def generic_visit(self, node: ast.AST) -> None:
        self._note_changes(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._visit_block(node, name, value)
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    self.visit(item)

    def _visit_block(self, node: ast.AST, name: str, statements: Sequence[ast.stmt]) -> None:
        before, why = self._here, _header(node, name)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        self._here = replace(
            before, block=id(statements),
            functions=(*before.functions, id(node)) if is_function else before.functions,
            within=(*before.within, why) if why else before.within,
        )  # fmt: skip
        for statement in statements:
            self.visit(statement)
        self._here = replace(before, order=self._here.order)

    def _note_changes(self, node: ast.AST) -> None:
        """Record names that a node may change, or bind to other names."""
        changed, target = list[ast.AST | None](), getattr(node, "target", None)
        if isinstance(node, ast.AugAssign):
            changed = [node.target, node.value]
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed = [_root(node)]
        elif isinstance(node, ast.Call):
            changed = [*node.args, *(word.value for word in node.keywords)]
            changed += [_root(node.func)] if isinstance(node.func, ast.Attribute) else []
            if self.name_of(node) in self._harmless:
                self._given += [(called_name(node), name) for x in changed for name in _names(x)]
                changed = []
        elif isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Lambda | ast.arguments):
            changed = [node]
        elif isinstance(node, ast.Match):
            changed = [node.subject]
        elif isinstance(node, ast.ClassDef):
            changed = [getattr(statement, "value", None) for statement in node.body]
        elif isinstance(node, ast.Assign):
            is_name = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            target = node.targets[0] if is_name else None
            changed = [] if is_name else [node.value]
        self.changed |= {name for expression in changed for name in _names(expression)}
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        if isinstance(node, ast.withitem):
            target, value = node.optional_vars, node.context_expr
        for name in _names(target) if isinstance(target, ast.AST) else ():
            self._parts.setdefault(name, set()).update(_names(value))

    def visit_Name(self, node: ast.Name) -> None:
        self.uses[id(node)] = self._place()
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id)
        elif id(node) not in self._callees:
            self.loads.append(node)

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        [target, *more] = node.targets if isinstance(node, ast.Assign) else [node.target]
        if more or not isinstance(target, ast.Name):
            self.generic_visit(node)
            return
        self._note_changes(node)
        if node.value is not None:
            self.visit(node.value)
            self._bind(target.id, node.value)

    visit_AnnAssign = visit_Assign

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.uses[id(node)] = self._place()
        if id(node) not in self._callees:
            self.loads.append(node)
        self._callees.add(id(node.value))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.called[self.name_of(node)] += 1
        self.uses[id(node)] = self._place()
        self.calls.append(node)
        self._callees.add(id(node.func))
        if called_name(node) in ("exec", "globals", "setattr"):
            self._certain_from = 1 << 62
        if called_name(node) == "isinstance":
            self._callees |= {
                id(descendant) for arg in node.args[1:] for descendant in ast.walk(arg)
            }
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name == "*":
                self._certain_from = max(self._here.order + 1, self._certain_from)
                continue
            name = alias.asname or alias.name.partition(".")[0]
            self.aliases[name] = alias.name.rpartition(".")[2]
            self._bind(name)

    visit_Import = visit_ImportFrom

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name)
        self._defined.add(node.name)
        self._callees |= {id(descendant) for descendant in ast.walk(node.returns or ast.Pass())}
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name)
        self.classes.add(node.name)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self._bind(node.arg)

    def visit_ExceptHandler(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_ExceptHandler

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._declared |= {*node.names}

    visit_Nonlocal = visit_Global

    def name_of(self, node: ast.Call) -> str:
        """Return the called function's name in its module."""
        return self.aliases.get(called_name(node), called_name(node))

    def binding(self, node: ast.Name) -> Place | None:
        """Return the binding that sets a name at this location.

        It is the only one of that name, or the last one before, in the same block.
        """
        use, every = self.uses.get(id(node)), self._bindings.get(node.id, [])
        if use is None or not every:
            return None
        place = every[0]
        if len(every) > 1:
            before = bisect_left(every, use.order, key=lambda item: item.order)
            place = every[before - 1]
            if not before or place.block != use.block or node.id in self._declared:
                return None
        is_visible = use.functions[: len(place.functions)] == place.functions
        return place if is_visible and place.order >= self._certain_from else None


class Literals:
    """Evaluates literals. Computed values become placeholders with notes."""

    def __init__(self, names: Names) -> None:
        self.names, self.label = names, ""
        self.notes = set[Note]()
        """Notes on the values that were read."""
        self._steps = 0
        self._reading = set[int]()

    def place(self, node: ast.AST) -> str:
        """Return the location of a part of the code."""
        use = self.names.uses.get(id(node))
        return f"{use.label if use else self.label}, line {getattr(node, 'lineno', 1)}"

    def open(self, node: ast.AST, name: str = "", key: str = "") -> Placeholder:
        """Return a placeholder for a computed value, and add a note with its expression."""
        open_value = Placeholder(placeholder(name or _name_of(node, key or "value")))
        code = ast.unparse(node)
        self._steps += len(code) // 50
        self.notes.add(Note(f"{open_value} is computed: `{_cut(code)}`", self.place(node)))
        return open_value

    def value(self, node: ast.expr, name: str = "", key: str = "") -> Any:
        """Return the value of an expression.

        ``name`` is that of the name it was bound to, ``key`` that of the field it is for.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CommandError("a value in the code is larger than any job can be.")
        if isinstance(node, ast.Call):
            return self._call(node, name, key)
        reader = {
            ast.Constant: self._constant, ast.Name: self._name, ast.Attribute: self._attribute,
            ast.List: self._list, ast.Tuple: self._list, ast.Set: self._list,
            ast.Dict: self._dict, ast.JoinedStr: self._text, ast.BinOp: self._sum,
            ast.UnaryOp: self._negative,
        }.get(type(node))  # fmt: skip
        result = reader(node) if reader else NotImplemented
        if result is NotImplemented:
            return REQUEST_ID if self._is_new(node) else self.open(node, name, key)
        return result

    def call(self, node: ast.Call) -> Any:
        """Return the result of a client call; NotImplemented for any other call."""
        del node
        return NotImplemented

    def _call(self, node: ast.Call, name: str, key: str) -> Any:
        result = self.call(node)
        if result is NotImplemented:
            return REQUEST_ID if self._is_new(node) else self.open(node, name, key)
        return result

    def _constant(self, node: Any) -> Any:
        is_plain = isinstance(node.value, str | int | float | None)
        return node.value if is_plain else NotImplemented

    def _name(self, node: Any) -> Any:
        binding = self.names.binding(node)
        if binding is None or binding.value is None or id(binding) in self._reading:
            return NotImplemented
        self._reading.add(id(binding))
        label, self.label = self.label, binding.label
        before = set(self.notes)
        value = self.value(binding.value, node.id)
        self.label = label
        self._reading.discard(id(binding))
        if isinstance(value, list | dict) and node.id in self.names.changed:
            self.notes = before
            return NotImplemented
        return value

    def _attribute(self, node: Any) -> Any:
        owner = dotted_name(node.value)
        is_own = owner.partition(".")[0] in self.names.classes
        return node.attr if ENUMS.search(owner) and not is_own else NotImplemented

    def _list(self, node: Any) -> Any:
        items = list[Any]()
        for item in node.elts:
            is_spread = isinstance(item, ast.Starred)
            value = self.value(item.value if is_spread else item)
            if is_spread and not isinstance(value, list | Placeholder):
                return NotImplemented
            items += value if is_spread and isinstance(value, list) else [value]
        return items

    def _dict(self, node: Any) -> Any:
        entries = dict[str, Any]()
        for key, item in zip(node.keys, node.values, strict=True):
            named = key.value if isinstance(key, ast.Constant) else ""
            value = self.value(item, key=str(named))
            if key is None and not isinstance(value, dict):
                return NotImplemented  # it may replace any of the others
            entries |= value if key is None else {str(self._within_text(key)): value}
        return entries

    def _text(self, node: Any) -> Any:
        text = ""
        for part in node.values:
            plain = part.value if isinstance(part, ast.FormattedValue) else part
            value = self._within_text(plain)
            changes = isinstance(part, ast.FormattedValue) and (
                part.conversion != -1 or part.format_spec is not None)  # fmt: skip
            if changes and not isinstance(value, Placeholder) and value != REQUEST_ID:
                value = self.open(plain)
            text += str(value)
            if len(text) > MAX_LENGTH:
                return NotImplemented
        return re.sub(r"(\$\{job\.requestId\}[-_:.T]?){2,}", REQUEST_ID, text)

    def _within_text(self, node: ast.expr) -> Any:
        value = self.value(node)
        return value if isinstance(value, str | int | float | None) else self.open(node)

    def _sum(self, node: Any) -> Any:
        if not isinstance(node.op, ast.Add):
            return NotImplemented
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, list) or isinstance(right, list):
            return [item for side in (left, right)
                    for item in (side if isinstance(side, list) else [side])]  # fmt: skip
        if isinstance(left, str) and isinstance(right, str):
            is_text = not (isinstance(left, Placeholder) and isinstance(right, Placeholder))
            is_short = len(left) + len(right) <= MAX_LENGTH
            return f"{left}{right}" if is_text and is_short else NotImplemented
        return NotImplemented

    def _negative(self, node: Any) -> Any:
        value = node.operand.value if isinstance(node.operand, ast.Constant) else None
        is_number = isinstance(value, int | float) and isinstance(node.op, ast.USub)
        return -value if is_number else NotImplemented  # type: ignore[operator]

    def _is_new(self, node: ast.AST) -> bool:
        """Return True if a value differs in each run: a time or a random name."""
        if isinstance(node, ast.Name):
            binding = self.names.binding(node)
            return bool(
                binding and binding.value and not isinstance(binding.value, ast.Name)
                and self._is_new(binding.value)
            )  # fmt: skip
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self._is_new(node.value)
        if not isinstance(node, ast.Call):
            return False
        if called_name(node) in ("str", "int") and len(node.args) == 1:
            return self._is_new(node.args[0])
        if TIMES.fullmatch(dotted_name(node.func)):
            return True
        return isinstance(node.func, ast.Attribute) and self._is_new(node.func.value)


def called_name(node: ast.Call) -> str:
    """Return the last part of a called name: ``CustomJob`` of ``aiplatform.CustomJob(…)``."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _names(node: ast.AST | None) -> list[str]:
    """Return names through which an expression can change lists; not names inside texts."""
    names, left = list[str](), [node] if node else []
    while left:
        target = left.pop()
        if isinstance(target, ast.Name):
            names.append(target.id)
        elif not isinstance(target, ast.JoinedStr):
            left += ast.iter_child_nodes(target)
    return names


def _root(node: ast.AST) -> ast.AST:
    """Return the first part of a chain of attributes, items and calls."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _name_of(node: ast.AST, default: str) -> str:
    """Return the name of a value in the code."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    if isinstance(node, ast.Call) and called_name(node) in ("get", "getenv", "pop", "setdefault"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return first.value
    while isinstance(node, ast.Call | ast.Subscript | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else default


def _header(node: ast.AST, name: str) -> str:
    """Return the branch, loop or function that contains a block."""
    if isinstance(node, ast.If):
        why = f"if {_short(node.test)}"
        is_main = why == "if __name__ == '__main__'" and name == "body"
        return "" if is_main else why if name == "body" else f"else of {why}"
    if isinstance(node, ast.For | ast.AsyncFor):
        return f"for {_short(node.target)} in {_short(node.iter)}"
    if isinstance(node, ast.While):
        return f"while {_short(node.test)}"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"def {node.name}"
    if isinstance(node, ast.ExceptHandler | ast.match_case):
        return "except" if isinstance(node, ast.ExceptHandler) else f"case {_short(node.pattern)}"
    return ""


def _short(node: ast.AST) -> str:
    return _cut(ast.unparse(node))


def _cut(code: str) -> str:
    return code if len(code) < 80 else f"{code[:77]}..."


def dotted_name(node: ast.AST) -> str:
    """Return a name with its attributes; empty for other expressions."""
    parts = list[str]()
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
