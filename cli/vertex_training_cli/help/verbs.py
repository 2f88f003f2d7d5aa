"""The commands of ``vt``. A module is imported when one of its commands is called.

Modules of commands can therefore import slow libraries at the top.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.abc import InspectLoader
from types import CodeType
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from vertex_training_cli.console import PLAIN_WIDTH
from vertex_training_cli.failures import FAILED, exit_codes
from vertex_training_cli.help import completion
from vertex_training_cli.help.table import GROUPS, PANELS, VERBS

#: Commands that pass unknown options to another program.
PASSING: Final = ("up", "destroy")
#: Options of commands that are valid without a number, with the default number.
DEFAULT_VALUES: Final = {"run": {"--gpu": "1"}}
#: Markup of help texts: panels on a terminal, else plain text.
MARKUP: Final = "markdown" if sys.stdout and sys.stdout.isatty() else None
#: Width of plain text in columns. At this width, no line is wrapped.
WIDTH: Final = None if MARKUP else PLAIN_WIDTH


class Verb(TyperCommand):
    """A command in a list of commands. Its function is imported only to parse arguments."""

    def __init__(self, path: str) -> None:
        self.path = path
        module, _, self.function = VERBS[path].partition(":")
        self.module = f"vertex_training_cli.{module}"
        name = path.rpartition(" ")[2]
        super().__init__(
            name,
            help=_summary(self.module, self.function),
            rich_markup_mode=MARKUP,
            rich_help_panel=_panel(path),
        )

    def load(self) -> TyperCommand:
        """Import the function and return the complete command, with its parameters."""
        with exit_codes(self.path, FAILED):  # A package of an extra may be missing.
            function = getattr(importlib.import_module(self.module), self.function)
        if completion.is_asked_for():
            completion.give_names(function)
        app = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
        passing = self.path in PASSING
        app.command(
            self.name,
            context_settings={"allow_extra_args": passing, "ignore_unknown_options": passing},
        )(exit_codes(self.path)(function))
        command = get_command(app)
        assert isinstance(command, TyperCommand)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], *more: Any, **options: Any
    ) -> Any:
        """Parse the arguments with the complete command."""
        args = [*_with_values(args, DEFAULT_VALUES.get(self.path, {}))]
        return self.load().make_context(info_name, args, *more, **options)


class VerbGroup(TyperGroup):
    """The commands and groups below ``path``."""

    def __init__(self, *, path: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({name: Verb(inner) for name, inner in _below(path, VERBS)})
        for name, inner in _below(path, GROUPS):
            self.commands[name] = VerbGroup(
                path=inner,
                name=name,
                help=GROUPS[inner],
                no_args_is_help=True,
                rich_markup_mode=MARKUP,
                rich_help_panel=_panel(inner),
            )
        if not path:
            order = [name for names in PANELS.values() for name in names]
            self.commands = {name: self.commands[name] for name in order}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands as plain text, under the titles of their panels."""
        panels = dict[str, list[tuple[str, str]]]()
        for name in self.list_commands(ctx):
            command = self.commands[name]
            summary = " ".join((command.help or "").partition("\n\n")[0].split())
            title: Any = getattr(command, "rich_help_panel", None) or "Commands"
            panels.setdefault(title, []).append((name, summary))
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a line; for an unknown command, suggest commands of all groups."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            names = get_close_matches(args[0], {path.split()[-1] for path in VERBS})
            near = get_close_matches(args[0], self.commands)
            near = near or [path for path in VERBS if path.split()[-1] in names[:1]]
            hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


def _with_values(words: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments, with a default number after each option without a number.

    >>> [*_with_values(["--gpu", "a.py", "--gpu", "2", "--", "--gpu"], {"--gpu": "1"})]
    ['--gpu', '1', 'a.py', '--gpu', '2', '--', '--gpu']
    """
    missing, is_option = "", True
    for word in words:
        if missing and not word.isdecimal():
            yield missing
        is_option = is_option and word != "--"
        missing = values.get(word, "") if is_option else ""
        yield word
    if missing:
        yield missing


def _panel(path: str) -> str | None:
    return next((title for title, names in PANELS.items() if path in names), None)


def _below(path: str, table: Iterable[str]) -> Iterator[tuple[str, str]]:
    for inner in table:
        above, _, name = inner.rpartition(" ")
        if inner and above == path:
            yield name, inner


def _summary(module: str, name: str) -> str:
    """Return the first paragraph of a function's docstring without importing its module."""
    constants = _code(module).co_consts
    code = next(
        constant
        for constant in constants
        if isinstance(constant, CodeType) and constant.co_name == name
    )
    return inspect.cleandoc(code.co_consts[0] or "").partition("\n\n")[0]


@functools.cache
def _code(module: str) -> CodeType:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    code = spec.loader.get_code(module)
    assert code is not None
    return code
