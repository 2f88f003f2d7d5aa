"""Read literals from the syntax tree of Python code, without running or importing the code.

Statements are read in order. A name has a value if its last assignment is a literal that no other
statement changes. Computed values become placeholders, which ``vt import --run`` can replace.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import MAX_LENGTH, REQUEST_ID, Note, placeholder

MAX_ITEMS: Final = 200_000
#: Start of an expression with a different value in each run: a time or a random name.
TIMES: Final = re.compile(
    r"(?:str\(|int\()*(?:(?:\w+\.)*(?:now|utcnow|today|uuid1|uuid4|token_hex)"
    r"|(?:\w+\.)?time\.(?:time|time_ns|strftime)|time)\("
)
#: Names of the client's enums, whose members become texts of the API.
ENUMS: Final = re.compile(
    r"\b(AcceleratorType|Strategy|Algorithm|GoalType|ScaleType|MeasurementSelectionType|Type)$"
)
#: Functions and methods that do not change their arguments or return parts of their arguments.
HARMLESS: Final = (
    "print", "pprint", "display", "len", "str", "repr", "type", "isinstance", "dumps", "dump",
    "info", "debug", "warning", "error", "format", "join",
)  # fmt: skip
#: Expressions whose value contains the values in them.
CONTAINERS: Final = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.keyword, ast.BinOp, ast.BoolOp,
    ast.IfExp, ast.Attribute, ast.Subscript,
)  # fmt: skip
#: Expressions and statements that only read the values that they contain.
READERS: Final = (
    ast.JoinedStr, ast.FormattedValue, ast.Compare, ast.UnaryOp, ast.Expr, ast.If, ast.While,
)  # fmt: skip
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Parts of statements that contain a separate block.
BLOCKS: Final = (ast.ExceptHandler, ast.match_case)
#: Statements that decide if and how often their blocks run.
CONDITIONS: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.ExceptHandler)
#: Statements that run each block at most once, and assign names only in blocks.
KEEPING: Final = (ast.If, ast.Try)


class Placeholder(str):
    """A value that is unknown until the code runs: ``<NAME>`` in a job file."""

    __slots__ = ()


class Literals:
    """Reads the statements of a source. Computed values become placeholders with notes."""

    def __init__(
        self,
        trees: Sequence[tuple[str, ast.Module]],
        harmless: Iterable[str],
        containers: Iterable[str],
    ) -> None:
        self.trees, self.label = trees, ""
        nodes = [node for _, tree in trees for node in ast.walk(tree)]
        self.aliases = {
            alias.asname or alias.name.partition(".")[0]: alias.name.rpartition(".")[2]
            for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }  # fmt: skip
        self.called = Counter(self.name_of(node) for node in nodes if isinstance(node, ast.Call))
        self.notes = defaultdict[str, set[Note]](set)
        """Notes on computed values, by their placeholders."""
        self.condition = ""
        """The innermost branch or loop around the statement that is read."""
        self._bindings = Counter(name for _, tree in trees for name in _bound(tree))
        own = self._bindings.keys() - self.aliases.keys()
        self._harmless, self._containers = {*HARMLESS, *harmless} - own, {*containers} - own
        self._open = self._changed()
        """Names of lists and mappings that the code may change."""
        self._declared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal)
                          for name in node.names}  # fmt: skip
        self._classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        self._is_certain = not {"exec", "globals", "setattr"} & self.called.keys()
        self._values = dict[str, Any]()
        self._functions = list[tuple[str, str, ast.AST]]()
        """Functions to read after the code outside of functions."""

    def _changed(self) -> set[str]:
        """Return the names whose lists or mappings the code may change, also by another name."""
        changed, parts = set[str](), defaultdict[str, set[str]](set)
        left: list[tuple[ast.AST, str | None]] = [(tree, None) for _, tree in self.trees]
        while left:
            node, use = left.pop()  # use: name of the variable that gets the value, "" if only read
            children = list(ast.iter_child_nodes(node))
            if isinstance(node, ast.Name):
                changed |= {node.id} if use is None else set()
                parts[use or ""].add(node.id)
            elif isinstance(node, ast.ClassDef):
                changed |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            elif isinstance(node, ast.Call):
                name = self.name_of(node)
                is_known = name in self._harmless or name in self._containers
                use = "" if name in self._harmless else use if is_known else None
                if is_known:
                    children = [*node.args, *node.keywords]
                    left.append((node.func, ""))
            elif isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                use = None
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.comprehension):
                use = _target(node)
            elif not isinstance(node, CONTAINERS):
                use = "" if isinstance(node, READERS) else None
            left += [(child, use) for child in children]
        left_names = list(changed)
        while left_names:  # A value may have several names.
            new = parts.pop(left_names.pop(), set()) - changed
            changed |= new
            left_names += new
        return changed

    def read(self) -> None:
        """Read all statements, first those outside of functions."""
        for label, tree in self.trees:
            self.label = label
            self._block(tree.body)
        self._values = {k: value for k, value in self._values.items() if self._bindings[k] == 1}
        for label, condition, function in self._functions:  # The loop adds functions.
            self.label, self.condition = label, condition
            self._branches(function)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, FUNCTIONS):
                self._values.pop(statement.name, None)
                self._functions.append((self.label, self.condition, statement))
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and (_target(statement)):
                if (node := statement.value) is not None:
                    name = _target(statement) or ""
                    self._forget(_bound(node))
                    value = self.value(node, name)
                    self._read_calls(node)
                    self._values[name] = value
            else:
                self._branches(statement)

    def _branches(self, node: ast.AST) -> None:
        """Read a statement. Names that one of its blocks assigns have no value afterwards."""
        names = [name for name in _bound(node) if name == "*" or self._bindings[name] > 1]
        own = {*_bound(node.test)} if isinstance(node, ast.If) else set[str]()
        before = {n: self._values[n] for n in names if n in self._values and n not in own}
        self._forget(names)
        self._read_calls(node)
        outside = self.condition
        test = getattr(node, "test", None)
        is_main = isinstance(test, ast.Compare) and dotted_name(test.left) == "__name__"
        if isinstance(node, CONDITIONS) and not is_main:
            self.condition = f"`{type(node).__name__.lower()}` at line {node.lineno}"
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                self._values |= before if isinstance(node, KEEPING) else {}
                self._block(block)
                self._forget(names)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, BLOCKS):
                self._branches(child)
        self.condition = outside

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._values.pop(name, None)
            if name == "*":
                self._values.clear()

    def _read_calls(self, node: ast.AST) -> None:
        left = [node]
        while left:
            current = left.pop()
            if isinstance(current, ast.Call):
                self.call(current)
            left += [child for child in ast.iter_child_nodes(current)
                     if not isinstance(child, (ast.stmt, *BLOCKS))]  # fmt: skip

    def name_of(self, node: ast.AST) -> str:
        """Return the original name of a function or class, or of the function that a call calls."""
        function = node.func if isinstance(node, ast.Call) else node
        name = getattr(function, "attr", getattr(function, "id", ""))
        return self.aliases.get(name, name)

    def place(self, node: ast.AST) -> str:
        """Return the location of a part of the code."""
        return f"{self.label}, line {getattr(node, 'lineno', 1)}"

    def open(self, node: ast.AST, name: str = "", key: str = "") -> Placeholder:
        """Return a placeholder for a computed value, and add a note with its expression."""
        open_value = Placeholder(placeholder(name or _name_of(node, key or "value")))
        code = ast.unparse(node)
        shown = code if len(code) < 80 else f"{code[:77]}..."
        note = Note(f"{open_value} is computed: `{shown}`", self.place(node))
        self.notes[open_value].add(note)
        return open_value

    def value(self, node: ast.expr, name: str = "", key: str = "") -> Any:
        """Return the value of an expression; ``name`` or ``key`` names a placeholder."""
        result: Any = NotImplemented
        match node:
            case ast.Constant(value=str() | int() | float() | None):
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Call():
                result = self.call(node)
            case ast.Name():
                result = self._name(node.id)
            case ast.Attribute() if ENUMS.search(owner := dotted_name(node.value)):
                is_own = owner.partition(".")[0] in self._classes
                result = NotImplemented if is_own else node.attr
            case ast.List() | ast.Tuple() | ast.Set():
                result = self._list(node.elts)
            case ast.Dict():
                result = self._dict(node)
            case ast.JoinedStr():
                result = self._text(node)
            case ast.BinOp(op=ast.Add()):
                result = self._sum(self.value(node.left), self.value(node.right))
        if isinstance(result, list) and len(result) > MAX_ITEMS:
            raise CommandError("The code contains a value that is too large for a job.")
        if result is NotImplemented:
            return REQUEST_ID if self._is_new(node) else self.open(node, name, key)
        return result

    def call(self, node: ast.Call) -> Any:
        """Return the result of a client call; NotImplemented for any other call."""
        del node
        return NotImplemented

    def _name(self, name: str) -> Any:
        value = self._values.get(name, NotImplemented)
        is_changed = isinstance(value, list | dict) and name in self._open
        is_known = self._is_certain and not is_changed and name not in self._declared
        return value if is_known else NotImplemented

    def _list(self, nodes: Sequence[ast.expr]) -> Any:
        items = list[Any]()
        for item in nodes:
            is_spread = isinstance(item, ast.Starred)
            value = self.value(item.value if is_spread else item)
            if is_spread and not isinstance(value, list | Placeholder):
                return NotImplemented
            items += value if is_spread and isinstance(value, list) else [value]
        return items

    def _dict(self, node: ast.Dict) -> Any:
        entries = dict[str, Any]()
        for key, item in zip(node.keys, node.values, strict=True):
            named = key.value if isinstance(key, ast.Constant) else ""
            value = self.value(item, key=str(named))
            if key is None and not isinstance(value, dict):
                return NotImplemented  # The unknown mapping may replace any other entry.
            entries |= value if key is None else {str(self._within_text(key)): value}
        return entries

    def _text(self, node: ast.JoinedStr) -> Any:
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

    def _sum(self, left: Any, right: Any) -> Any:
        if isinstance(left, list) or isinstance(right, list):
            return [item for side in (left, right)
                    for item in (side if isinstance(side, list) else [side])]  # fmt: skip
        if isinstance(left, str) and isinstance(right, str):
            is_text = not (isinstance(left, Placeholder) and isinstance(right, Placeholder))
            is_short = len(left) + len(right) <= MAX_LENGTH
            return f"{left}{right}" if is_text and is_short else NotImplemented
        return NotImplemented

    def _is_new(self, node: ast.AST) -> bool:
        root = node
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        is_chain, of_name = root is not node, isinstance(root, ast.Name) and self._name(root.id)
        return is_chain and (of_name == REQUEST_ID or bool(TIMES.match(ast.unparse(node))))


def dotted_name(node: ast.AST) -> str:
    """Return a name with its attributes, like ``a.b``; empty for other expressions."""
    parts = list[str]()
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _target(node: ast.AST) -> str | None:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield each name that a part of the code assigns; ``*`` for ``from module import *``."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=str(name), ctx=ast.Store() | ast.Del()) | ast.arg(arg=str(name)):
                yield name
            case ast.alias():
                yield part.asname or part.name.partition(".")[0]
            case (
                ast.FunctionDef(name=str(name)) | ast.AsyncFunctionDef(name=str(name))
                | ast.ClassDef(name=str(name)) | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name))
            ):  # fmt: skip
                yield name


def _name_of(node: ast.AST, default: str) -> str:
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and dotted_name(node.func).endswith(("get", "getenv")):
        key = node.args[0] if node.args else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    while isinstance(node, ast.Call | ast.Subscript | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else default
