"""Mutants of Python sources: every small change that the operators below can make.

A mutant replaces a range of bytes, so the rest of the file keeps its text and its line numbers.

Not mutated, because no behaviour depends on it: docstrings, annotations, ``assert``, imports,
``if TYPE_CHECKING``, ``if __name__ == "__main__"``, ``__all__``, the body of a ``Protocol``, what
``Literal``, ``cast`` and ``TypeVar`` are given, the options of ``@dataclass``, ``frozen`` of a
model, and how much ``lru_cache`` keeps. The wording of messages is not mutated either: a string or
f-string with white space, an argument named in ``PROSE``, and what is given to an exception or to a
function named in ``PRINTERS``. Nor what would be the same program: without a keyword that states a
default (``DEFAULTS``), without ``zip``'s ``strict=True``, an assertion, or with ``None`` for a
returned ``False`` (``True`` is tried).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Final

#: Comparison operator -> its text and the text that replaces it.
COMPARISONS: Final = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
#: Arithmetic operator -> its text and the text that replaces it.
ARITHMETIC: Final = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
#: Functions and methods that are replaced by their opposite.
OPPOSITES: Final = {
    "all": "any", "any": "all", "min": "max", "max": "min", "sorted": "list",
    "startswith": "endswith", "endswith": "startswith", "removeprefix": "removesuffix",
    "removesuffix": "removeprefix", "partition": "rpartition", "rpartition": "partition",
}  # fmt: skip
#: Keyword arguments that hold words or looks, not behaviour.
PROSE: Final = frozenset({
    "help", "hint", "message", "description", "title", "metavar", "examples", "prog", "epilog",
    "style", "border_style", "header_style", "justify", "no_wrap", "overflow", "box", "reason",
})  # fmt: skip
#: Functions whose strings are read by a person.
PRINTERS: Final = frozenset({"print", "echo", "secho", "print_exception", "debug", "warn"})
#: Functions and subscripts that only type checkers read.
TYPING: Final = frozenset({"Literal", "cast", "TypeVar", "NewType", "ParamSpec"})
#: Classes whose instances are messages; exceptions are recognised by their suffix.
MESSAGES: Final = frozenset({"Problem", "Finding", "BadParameter", "Exit"})
#: Keyword arguments that say what holds without them: of ``zip``, of ``subprocess.run``, and of
#: files that are opened where tests run.
DEFAULTS: Final = frozenset({"strict=False", "check=False", 'encoding="utf-8"'})
#: What a string becomes.
OTHER_TEXT: Final = '"mutated"'


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    column: int
    operator: str
    start: int
    """First byte that is replaced."""
    end: int
    new: str
    lines: tuple[int, int]
    """First and last line of what is replaced."""
    statement: tuple[int, int]
    """First and last line of the statement around it, without the statements inside of that."""
    at_import: bool
    """Whether it is executed when the module is imported."""

    @property
    def id(self) -> str:
        """``path:line:column:operator``, stable as long as the file is."""
        return f"{self.path}:{self.line}:{self.column}:{self.operator}"

    def apply(self, source: bytes) -> bytes:
        """The mutated source."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    unique = {mutant.id: mutant for mutant in finder.found}
    return sorted(unique.values(), key=lambda mutant: (mutant.line, mutant.column, mutant.operator))


def is_valid(mutant: Mutant, source: bytes) -> bool:
    """Whether the mutated source compiles and means something else."""
    try:
        mutated = ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return ast.dump(mutated) != ast.dump(ast.parse(source))


@dataclass
class _Finder(ast.NodeVisitor):
    path: str
    source: bytes
    found: list[Mutant] = field(default_factory=list)
    functions: int = 0
    prose: int = 0
    statement: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        lines = self.source.splitlines(keepends=True)
        self.offsets = [0]
        for line in lines:
            self.offsets.append(self.offsets[-1] + len(line))

    # Places

    def _start(self, node: ast.AST) -> int:
        return self.offsets[node.lineno - 1] + node.col_offset  # pyright: ignore

    def _end(self, node: ast.AST) -> int:
        return self.offsets[node.end_lineno - 1] + node.end_col_offset  # pyright: ignore

    def _text(self, node: ast.AST) -> str:
        return self.source[self._start(node) : self._end(node)].decode()

    def _line(self, offset: int) -> int:
        return self.source.count(b"\n", 0, offset) + 1

    def _add(self, operator: str, start: int, end: int, new: str) -> None:
        first, last = self._line(start), self._line(end)
        column = start - self.offsets[first - 1]
        place = (first, column, operator, start, end, new, (first, last))
        self.found.append(Mutant(self.path, *place, self.statement, not self.functions))

    def _replace(self, operator: str, node: ast.AST, new: str) -> None:
        self._add(operator, self._start(node), self._end(node), new)

    def _between(
        self, operator: str, left: ast.AST, right: ast.AST, texts: tuple[str, str]
    ) -> None:
        """Replace an operator that stands between two nodes."""
        start, end = self._end(left), self._start(right)
        pattern = re.escape(texts[0]).replace(r"\ ", r"\s+")
        if found := re.search(pattern, self.source[start:end].decode()):
            self._add(operator, start + found.start(), start + found.end(), texts[1])

    # What is left out

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            around, self.statement = self.statement, _header(node)
            super().visit(node)
            self.statement = around
        else:
            super().visit(node)

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call) and self.functions:
            self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and _name(node.annotation) != "TypeAlias":
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _name(node.value) not in TYPING:
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(_name(target) == "__all__" for target in node.targets):
            return
        if self.functions and not any(isinstance(t, ast.Name | ast.Tuple) for t in node.targets):
            self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace("statement", node, "pass")
        self.generic_visit(node)

    # Definitions

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any(_name(decorator) == "overload" for decorator in node.decorator_list):
            return
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.functions += 1
        for statement in node.body:
            self.visit(statement)
        self.functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.functions += 1
        self.visit(node.body)
        self.functions -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(_name(base) == "Protocol" for base in node.bases):
            return
        for statement in node.body:
            self.visit(statement)

    # Control flow

    def visit_If(self, node: ast.If) -> None:
        if _name(node.test) == "TYPE_CHECKING" or "__name__" in self._text(node.test):
            return
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._replace("condition-false", node.test, f"(({self._text(node.test)}) and False)")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test)
        self.generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        """The condition is still evaluated, so what it assigns is still assigned."""
        self._replace("condition-true", test, f"(({self._text(test)}) or True)")
        self._replace("condition-false", test, f"(({self._text(test)}) and False)")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and self._text(node.value) not in ("None", "False"):
            self._replace("return-none", node.value, "None")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("statement", node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("statement", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("statement", node, "pass")

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, node.comparators, strict=False):
            self._between("comparison", left, right, COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        texts = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("boolean", left, right, texts)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace("not", node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if texts := ARITHMETIC.get(type(node.op)):
            self._between("arithmetic", node.left, node.right, texts)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace("constant", node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._replace("constant", node, repr(node.value + 1))
        elif isinstance(node.value, str) and not self.prose and not re.search(r"\s", node.value):
            self._replace("string", node, OTHER_TEXT)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        # Places inside of an f-string are not reliable before Python 3.12: all of it or nothing.
        words = "".join(v.value for v in node.values if isinstance(v, ast.Constant))
        if not self.prose and not re.search(r"\s", words):
            self._replace("string", node, OTHER_TEXT)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key)
            self.visit(value)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name in TYPING or name in ("dataclass", "lru_cache"):
            return
        if name in OPPOSITES:
            end = self._end(node.func)
            self._add("opposite", end - len(name), end, OPPOSITES[name])
        message = name.endswith("Error") or name in PRINTERS or name in MESSAGES
        self.visit(node.func)
        for argument in node.args:
            self._visit_prose(argument, message)
        for keyword in node.keywords:
            text = self._text(keyword)
            if (name, text) in (("zip", "strict=True"), ("ConfigDict", "frozen=True")):
                continue
            if keyword.arg is not None and keyword.arg not in PROSE and text not in DEFAULTS:
                after = re.match(rb"\s*,", self.source[self._end(keyword) :])
                end = self._end(keyword) + (after.end() if after else 0)
                self._add("keyword", self._start(keyword), end, "")
            self._visit_prose(keyword.value, message or keyword.arg in PROSE)

    def _visit_prose(self, node: ast.expr, prose: bool) -> None:
        self.prose += prose
        self.visit(node)
        self.prose -= prose


def _header(node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement without the statements inside of it."""
    last = node.end_lineno or node.lineno
    for block in ("body", "handlers", "cases"):
        for inner in getattr(node, block, [])[:1]:
            last = max(node.lineno, (getattr(inner, "lineno", None) or last + 1) - 1)
    return node.lineno, last


def _name(node: ast.AST) -> str:
    """The last name of a dotted one, also of what is called or subscripted."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.id if isinstance(node, ast.Name) else ""
