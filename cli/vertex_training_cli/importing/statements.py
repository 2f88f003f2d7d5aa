"""Statements of Python code: branches, loops, functions and the options that a program takes.

A branch that can be decided is read alone. Of one that cannot, both are read, and what differs
afterwards is not known.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training_cli.importing.evaluation import (
    MAX_ITEMS,
    PURE,
    Evaluator,
    called_name,
    noted_items,
)
from vertex_training_cli.importing.imported import Note
from vertex_training_cli.importing.values import (
    MAX_LENGTH,
    UnresolvedValue,
    annotate,
    bare,
    noted,
    text,
)

#: Functions that call one another, at most.
MAX_CALLS: Final = 12
#: What a branch that is read twice counts for.
FORK_STEPS: Final = 50
#: Rounds of a loop that are read.
MAX_ROUNDS: Final = 50
#: Methods that read a variable of the environment.
READS: Final = ("get", "setdefault", "pop")
#: Calls that end the program.
EXITS: Final = ("exit", "quit", "_exit", "abort")


class Parser(dict[str, Any]):
    """The options of a program by their name, with their defaults."""


class Class(dict[str, Any]):
    """A class of the code: its attributes and methods."""


@dataclass(slots=True, eq=False)
class Function:
    """A function of the code, and the names that it reads."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scopes: list[dict[str, Any]]
    label: str
    defaults: dict[str, Any]
    """Of its parameters: they are made once."""
    called: bool = False

    def __deepcopy__(self, memo: object) -> Function:
        return self


class VariableState:
    """What names stand for, and the content of every list and mapping that they lead to."""

    def __init__(self, frames: list[dict[str, Any]], names: set[str]) -> None:
        self._frames, self._names = list(frames), names
        self._bound = self.bindings(names)
        self._content: dict[int, tuple[Any, Any]] = {}
        left = [value for bound in self._bound for value in bound.values()]
        while left:
            each = bare(left.pop())
            if isinstance(each, dict | list) and id(each) not in self._content:
                self._content[id(each)] = (each, copy.copy(each))
                left += each.values() if isinstance(each, dict) else each

    @property
    def size(self) -> int:
        """About how much there is."""
        return sum(len(content) + 1 for _, content in self._content.values())

    def bindings(self, names: set[str]) -> list[dict[str, Any]]:
        """What the names stand for now, frame by frame."""
        return [{name: each[name] for name in names if name in each} for each in self._frames]

    def restore(self) -> None:
        """Put everything back, so that each list and mapping stays the one that it is."""
        for frame, bound in zip(self._frames, self._bound, strict=True):
            for name in self._names:
                frame.pop(name, None)
            frame.update(bound)
        for value, content in self._content.values():
            value.clear()
            value.extend(content) if isinstance(value, list) else value.update(content)


class Interpreter(Evaluator):
    """Reads statements in the order in which they would run."""

    def __init__(self) -> None:
        super().__init__()
        self.functions = list[Function]()
        self.only_if = list[Note]()
        """The conditions of the branch that is being read, which cannot be decided."""
        self._environ: dict[str, Any] = {}
        self._flags: dict[str, Any] = {}
        self._frames = [self.scopes[0], self._environ]
        self._returned = list[Any]()
        self._jump: type[ast.stmt] | None = None
        self._maybe_left = set[Note]()
        """Why rounds of the loop that is being read may end before their end."""
        self._outer = dict[str, dict[str, Any]]()
        """Names that a function assigns outside of it, and the scope that has them."""
        self._classes = set[str]()
        self.aliases: dict[str, str] = {}
        """Names of imports: as the code calls them -> as their module does."""
        self._reading = list[Function]()

    def visit(self, statements: list[ast.stmt]) -> bool:
        """Read statements; whether they leave the function, the loop or the program."""
        return any(self._visit_one(each) for each in statements)

    def _visit_one(self, node: ast.stmt) -> bool:
        handler = getattr(self, f"_visit_{type(node).__name__.lower()}", None)
        if isinstance(node, ast.Continue | ast.Break):
            self._jump = type(node)
            return True
        return bool(handler(node)) if handler else False

    def _visit_global(self, node: ast.Global) -> None:
        self._outer |= dict.fromkeys(node.names, self._frames[0])

    def _visit_nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            scopes = [each for each in self.scopes[1:-1] if name in each]
            self._outer |= dict.fromkeys([name], scopes[-1]) if scopes else {}

    def _visit_importfrom(self, node: ast.ImportFrom | ast.Import) -> None:
        for each in node.names:
            name = each.asname or each.name
            self.aliases[name] = each.name.rpartition(".")[2]
            if name in self.scopes[-1]:
                self.scopes[-1][name] = UnresolvedValue(name)

    _visit_import = _visit_importfrom

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name) and target.id in self._outer:
            self._outer[target.id][target.id] = value
        else:
            super().assign(target, value)

    def _visit_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        given = defaults_of(node.args)
        defaults = {name: self.held(each) for name, each in given if each is not None}
        function = Function(node, list(self.scopes), self.label, defaults)
        self.functions.append(function)
        self.scopes[-1][node.name] = function
        for each in reversed(node.decorator_list):
            if isinstance(each, ast.Name) and isinstance(by := self.value(each), Function):
                call = ast.copy_location(ast.Call(each, [], []), node)
                self.scopes[-1][node.name] = self.run(by, call, [self.scopes[-1][node.name]])

    _visit_asyncfunctiondef = _visit_functiondef

    def _visit_classdef(self, node: ast.ClassDef) -> None:
        found = Class()
        for base in node.bases:
            if isinstance(of := self.value(base), Class):
                found |= of
        self.scopes = [*self.scopes, found]
        self.visit(node.body)
        self.scopes = self.scopes[:-1]
        self.scopes[-1][node.name] = found
        self._classes.add(node.name)

    def _visit_assign(self, node: ast.Assign) -> None:
        value = self.held(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _visit_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.held(node.value))

    def _visit_augassign(self, node: ast.AugAssign) -> None:
        outer, self.notes = self.notes, set(self.control)
        before, more = self.value(node.target), self.value(node.value)
        if isinstance(before, list) and isinstance(node.op, ast.Add):
            before += [noted(each, self.control) for each in more] if isinstance(
                more, list) else [noted(more, self.notes)]  # fmt: skip
            if len(before) > MAX_ITEMS:
                before.clear()
        elif isinstance(before, dict) and isinstance(node.op, ast.BitOr):
            self.update(before, noted_items(more, self.control), node, ast.unparse(node.value))
        else:
            found = self.operate(node.op, before, more, node)
            long = isinstance(found, str) and len(found) > MAX_LENGTH
            self.assign(
                node.target, noted(UnresolvedValue("long value") if long else found, self.notes)
            )
        self.notes = outer

    def _visit_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                inside, key = self.value(target.value), self.value(target.slice)
                try:
                    del inside[text(key) if isinstance(inside, dict) else key]
                except (LookupError, TypeError):
                    self.tell_change(inside, target, f"`{ast.unparse(node)}` is not read")

    def _visit_expr(self, node: ast.Expr) -> bool:
        self.held(node.value)
        return isinstance(node.value, ast.Call) and called_name(node.value) in EXITS

    def _visit_return(self, node: ast.Return) -> bool:
        value = self.held(node.value)
        notes = [Note(f"{each.text}, and returns", each.place) for each in self.only_if]
        self._returned.append((value, notes[-1:]))
        return True

    def _visit_raise(self, node: ast.Raise) -> bool:
        self.held(node.exc)  # often the exit code that the whole program returns
        return True

    def _visit_with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.held(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        return self.visit(node.body)

    _visit_asyncwith = _visit_with

    def _visit_if(self, node: ast.If) -> bool:
        outer, self.notes = self.notes, set(self.control)
        test = self.decide(node.test)
        chosen, self.notes = frozenset(self.notes), outer
        makes = [self.makes_job(each) for each in (node.body, node.orelse)]
        if test is None or (chosen - self.control and makes == [not test, bool(test)]):
            why = ast.unparse(node.test)
            return self._fork(
                node, f"if {why}", lambda: self.visit(node.body), lambda: self.visit(node.orelse)
            )
        taken, skipped = (node.body, node.orelse) if test else (node.orelse, node.body)
        before, self.control = self.control, self.control | chosen
        ended = self.visit(taken)
        if new := chosen - before:
            self._note_skipped(skipped, new)
        self.control = before
        return ended

    def _note_skipped(self, skipped: list[ast.stmt], notes: frozenset[Note]) -> None:
        """What a branch would have changed, if the default that it hangs on were another."""
        self._note_changed(skipped, notes)
        self.skipped(skipped, notes)

    def _note_changed(self, statements: Sequence[ast.stmt], notes: frozenset[Note]) -> None:
        """Say something of all that statements may change."""
        for name in changed_names(statements):
            for scope in reversed(self.scopes):
                if name in scope:
                    if isinstance(found := bare(scope[name]), dict | list):
                        annotate(found, notes)
                    else:
                        scope[name] = noted(scope[name], notes)
                    break

    def makes_job(self, statements: list[ast.stmt]) -> bool:
        """Whether the only job may be among statements: then a default does not skip them."""
        del statements
        return False

    def skipped(self, statements: list[ast.stmt], notes: frozenset[Note]) -> None:
        """Statements that are not read because of a default."""

    def _fork(
        self, node: ast.AST, why: str, one: Callable[[], bool], other: Callable[[], bool]
    ) -> bool:
        """Read two branches, each from the same state, and merge what they leave."""
        merge = self.merge(node, why)
        names = self._touched(node)
        if self.is_tired():
            note = {merge.note("it is changed")}
            for name in names:
                for frame in self._frames:
                    if name in frame:
                        frame[name] = noted(frame[name], note)
            return False
        before = VariableState(self._frames, names)
        self._steps += before.size + FORK_STEPS
        self.only_if.append(Note(f"only `{merge.why}`", self.place(node)))
        ended, jump = one(), self._take_jump()
        after, content = VariableState(self._frames, names), copy.deepcopy(before.bindings(names))
        before.restore()
        self.only_if[-1] = Note(f"not `{merge.why}`", self.place(node))
        other_ended, other_jump = other(), self._take_jump()
        self.only_if.pop()
        gone, other_gone = ended and not jump, other_ended and not other_jump
        if other_gone and not gone:
            after.restore()
        elif not gone:  # what is behind a jump out of a loop's round is read for both
            for frame, first in zip(self._frames, content, strict=True):
                second = {name: frame[name] for name in names if name in frame}
                merge.names(second, first)
                frame.update(second)
        if jump is not other_jump:
            self._maybe_left.add(merge.note("a round of the loop may end early"))
        self._jump = jump if jump is other_jump else None
        return ended and other_ended and (jump is other_jump)

    def _touched(self, node: ast.AST) -> set[str]:
        """Names that a branch may change: those in it, or all if it calls the code's own."""
        inside = list(ast.walk(node))
        own = {each.node.name for each in self.functions} | self._classes
        if any(isinstance(each, ast.Call) and called_name(each) in own for each in inside):
            return {name for frame in self._frames for name in frame}
        return {each.id for each in inside if isinstance(each, ast.Name)} | {*self._environ}

    def _take_jump(self) -> type[ast.stmt] | None:
        jump, self._jump = self._jump, None
        return jump

    def _visit_for(self, node: ast.For | ast.AsyncFor) -> bool:
        items = self.items(node.iter)
        if items is None or len(items) > MAX_ROUNDS:

            def once() -> bool:
                self.assign(node.target, UnresolvedValue(ast.unparse(node.target)))
                return self._visit_round(node.body)

            why = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
            self._fork(node, why, once, lambda: False)
            return self.visit(node.orelse)
        outer, self._maybe_left = self._maybe_left, set()
        ended, jump = self._visit_rounds(node, items)
        if self._maybe_left:
            self._note_changed([node], frozenset(self._maybe_left))
        self._maybe_left = outer
        return (ended and jump is None) or (jump is None and self.visit(node.orelse))

    def _visit_rounds(
        self, node: ast.For | ast.AsyncFor, items: list[Any]
    ) -> tuple[bool, type[ast.stmt] | None]:
        """Read a loop's rounds; whether the last one ended what is around it, or left the loop."""
        for item in items:
            self.assign(node.target, item)
            ended, jump = self.visit(node.body), self._take_jump()
            if (ended and jump is None) or jump is ast.Break:
                return ended, jump
        return False, None

    def _visit_round(self, body: list[ast.stmt]) -> bool:
        """Read a loop's body once; a function that may return in it goes on."""
        outer, self._maybe_left = self._maybe_left, set()
        self.visit(body)
        self._take_jump()
        self._maybe_left = outer
        return False

    _visit_asyncfor = _visit_for

    def _visit_while(self, node: ast.While) -> bool:
        test = self.decide(node.test)
        if test is not False:
            why = f"while {ast.unparse(node.test)}"
            self._fork(node, why, lambda: self._visit_round(node.body), lambda: False)
        return False

    def _visit_try(self, node: ast.Try) -> bool:
        if ended := self.visit([*node.body, *node.orelse]):
            return self.visit(node.finalbody) or ended
        for handler in node.handlers:
            kind = ast.unparse(handler.type) if handler.type else ""
            self._fork(
                handler,
                f"except {kind}".rstrip(),
                lambda body=handler.body: self.visit(body),
                lambda: False,
            )
        return self.visit(node.finalbody)

    def _visit_match(self, node: ast.Match) -> bool:
        for case in node.cases:
            why = f"case {ast.unparse(case.pattern)}"
            self._fork(case.body[0], why, lambda body=case.body: self.visit(body), lambda: False)
        return False

    def _attribute(self, node: ast.Attribute) -> Any:
        if node.attr in ("environ", "FLAGS"):
            return self._environ if node.attr == "environ" else self._flags
        return super()._attribute(node)

    def call(self, node: ast.Call, of: Any, called: str, held: list[Any]) -> Any:
        """A function or class of the code, or an option that it takes."""
        if isinstance(node.func, ast.Attribute):
            callee = bare(of.get(called)) if isinstance(of, dict) else None
        else:
            callee = self.value(node.func) if isinstance(node.func, ast.Name) else None
        if isinstance(callee, Function):
            is_method = isinstance(of, dict) and not isinstance(of, Class)
            return self.run(callee, node, [of, *held] if is_method else held)
        if isinstance(callee, Class):
            return self._instance(callee, node, held)
        return self._option(node, of, called, [bare(each) for each in held])

    def _instance(self, of: Class, node: ast.Call, held: list[Any]) -> Any:
        found = dict(copy.deepcopy(of))
        if isinstance(maker := bare(of.get("__init__")), Function):
            self.run(maker, node, [found, *held])
            return found
        fields = [key for key, each in of.items() if not isinstance(bare(each), Function)]
        found |= dict(zip(fields, held, strict=False))
        self.update_by_keywords(found, node)
        return found

    def run(self, function: Function, node: ast.Call | None, held: list[Any]) -> Any:
        """Read the body of a function with its arguments; the value that it returns."""
        function.called = True
        if function in self._reading or len(self._reading) >= MAX_CALLS or self.is_tired():
            return UnresolvedValue(function.node.name)
        scope = self._bound(function, node, held)
        kept = (self.scopes, self.label, self._returned, self._outer)
        self.scopes, self.label = [*function.scopes, scope], function.label
        self._returned, self._outer = [], {}
        self._frames.append(scope)
        self._reading.append(function)
        ended = self.visit(function.node.body)
        if not ended and self._returned:
            self._returned.append((None, []))
        returned = self._returned
        self._reading.pop()
        self._frames.pop()
        self.scopes, self.label, self._returned, self._outer = kept
        found = None if not returned else returned[0][0]
        for index, (value, _) in enumerate(returned[1:]):
            why = returned[index][1]
            where = why[0].text.split("`")[1] if why else "return"
            found = self.merge(node or function.node, where).values(
                found, value, f"{function.node.name}()"
            )
        return self.open(found)

    def _bound(self, function: Function, node: ast.Call | None, held: list[Any]) -> dict[str, Any]:
        """The parameters of a function, by the arguments of a call or by their defaults."""
        parameters, scope = function.node.args, dict[str, Any]()
        every = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        scope |= dict(zip(every, held, strict=False))
        if parameters.vararg:
            scope[parameters.vararg.arg] = held[len(every) :]
        named, more = [*every, *(each.arg for each in parameters.kwonlyargs)], dict[str, Any]()
        for word in node.keywords if node else ():
            if word.arg in named:
                scope[word.arg] = self.held(word.value)
            elif word.arg:
                more[word.arg] = self.held(word.value)
            else:
                given = self.value(word.value)
                known = given if isinstance(given, dict) else {}
                scope |= {key: each for key, each in known.items() if key in named}
                rest = {key: each for key, each in known.items() if key not in named}
                self.update(more, rest if known else given, word.value, ast.unparse(word.value))
        if parameters.kwarg:
            scope[parameters.kwarg.arg] = more
        for name, default in defaults_of(parameters):
            if name not in scope:
                scope[name] = self._default(function, name, default, is_read=node is None)
        return scope

    def _default(
        self, function: Function, name: str, default: ast.expr | None, *, is_read: bool
    ) -> Any:
        if default is None:
            return UnresolvedValue(name)
        value = function.defaults[name]
        if not is_read:
            return value
        what = f"the default of {name} in {function.node.name}(), as nothing here calls it"
        where = f"{function.label}, line {default.lineno}"
        is_plain = bare(value) is None or isinstance(bare(value), UnresolvedValue)
        return (
            UnresolvedValue(name, optional=True)
            if is_plain
            else noted(value, {Note(what, where, True)})
        )

    def _default_of(self, node: ast.Call, name: str, words: dict[str | None, ast.expr]) -> Any:
        """The default of an option that a program takes."""
        action = self.value(words.get("action"))
        if action in ("store_true", "store_false") or "is_flag" in words:
            default: Any = words.get("default") and self.value(words["default"])
            default = default if isinstance(default, bool) else action == "store_false"
        elif "default" in words and self.value(words.get("required")) is not True:
            default = self.held(words["default"])
        else:
            required = self.value(words.get("required")) is True or not name.startswith("-")
            return UnresolvedValue(name.lstrip("-"), optional=not required)
        kind = ast.unparse(words["type"]) if "type" in words else ""
        if kind in ("int", "float") and isinstance(bare(default), str):
            try:
                default = PURE[kind](bare(default))
            except ValueError:
                return UnresolvedValue(name.lstrip("-"))
        elif kind not in ("", "str", "Path", "pathlib.Path") and isinstance(bare(default), str):
            return UnresolvedValue(name.lstrip("-"))
        if bare(default) is None:
            return UnresolvedValue(name.lstrip("-"), optional=True)
        if isinstance(bare(default), UnresolvedValue):
            return default
        if isinstance(bare(default), list):
            annotate(bare(default), {self._guess(node, f"the default of {name}")})
            return default
        return noted(default, {self._guess(node, f"{bare(default)!r} is the default of {name}")})

    def _guess(self, node: ast.AST, what: str) -> Note:
        return Note(what, self.place(node), True)

    def _option(self, node: ast.Call, of: Any, called: str, given: list[Any]) -> Any:
        words = {each.arg: each.value for each in node.keywords}
        if called in ("ArgumentParser", "ArgParser"):
            return Parser()
        if isinstance(of, Parser):
            return self._of_parser(node, of, called, given, words)
        if called == "vars" and given and isinstance(given[0], dict):
            return given[0]
        if given and (called == "getenv" or (of is self._environ and called in READS)):
            return self._variable(node, text(given[0]), given[1:], words)
        if called in ("Option", "Argument") and (given or "default" in words):
            if given and ast.unparse(node.args[0]) != "..." and "default" not in words:
                words["default"] = node.args[0]
            return self.open(self._default_of(node, "the option", words))
        if called.startswith("DEFINE_") and given:
            default = given[1] if len(given) > 1 else bare(self.held(words.get("default")))
            name, known = str(given[0]), default is not None
            value = noted(default, {self._guess(node, f"{default!r} is the default of --{name}")})
            value = default if isinstance(default, UnresolvedValue) else value
            value = value if known else UnresolvedValue(name, optional=True)
            self._flags[name] = value
            return self.open(value)
        return NotImplemented

    def _of_parser(
        self, node: ast.Call, of: Parser, called: str, given: list[Any],
        words: dict[str | None, ast.expr],
    ) -> Any:  # fmt: skip
        if called == "add_argument" and given:
            flags = [str(each) for each in given]
            name = next((each for each in flags if each.startswith("--")), flags[0])
            dest = self.value(words["dest"]) if "dest" in words else name.lstrip("-")
            of[str(dest).replace("-", "_")] = self._default_of(node, name, words)
            return None
        if called in ("parse_args", "parse_known_args"):
            found = dict(of)
            if given and given[0] is not None:
                what = f"the arguments of `{ast.unparse(node)[:60]}` are not read"
                annotate(found, {Note(what, self.place(node))})
            return found if called == "parse_args" else [found, []]
        return of if called.startswith("add_") else NotImplemented

    def _variable(
        self, node: ast.Call, name: str, default: list[Any], words: dict[str | None, ast.expr]
    ) -> Any:
        """A variable of the environment."""
        if name in self._environ:
            return self.open(self._environ[name])
        given = default[0] if default else self.value(words.get("default"))
        if given is None or isinstance(given, UnresolvedValue):
            return UnresolvedValue(name, optional=given is None)
        what = f"{given!r} is the default of the environment's {name}"
        self.notes.add(self._guess(node, what))
        return given


def defaults_of(parameters: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    """Each parameter by its name, with its default."""
    every = [*parameters.posonlyargs, *parameters.args]
    missing = [None] * (len(every) - len(parameters.defaults))
    defaults = (*missing, *parameters.defaults, *parameters.kw_defaults)
    for each, default in zip([*every, *parameters.kwonlyargs], defaults, strict=True):
        yield each.arg, default


def changed_names(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that statements assign, or whose content they may change."""
    found = set[str]()
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript):
            root: ast.expr = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if isinstance(root, ast.Name):
                found.add(root.id)
    return found
