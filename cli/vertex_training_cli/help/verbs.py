"""The verbs of ``vt``: which function each is. Its module is imported when the verb is called.

So a command imports what it needs at the top of its file, and no other verb pays for it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.abc import InspectLoader
from types import CodeType
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from vertex_training_cli.failures import FAILED, exit_codes
from vertex_training_cli.help import completion, examples

#: Groups of verbs -> their help.
GROUPS: Final[Mapping[str, str]] = {
    "new": "New jobs from a template, shown as a diff first.",
    "jobs": "Jobs and tuning jobs of a stack, in Vertex AI or in the local cloud.",
    "images": "Images of a stack: build, pin, list, check.",
    "data": "Folders of data, to and from a bucket of the stack.",
    "github": "For workflows: comments, approvals and issues, through GitHub's command gh.",
    "local": (
        "Google Cloud on this machine: rehearse a stack with no account and no network.\n\n"
        "Files lie in VT_LOCAL_HOME (default: .vt-local in the checkout)."
    ),
    "local fault": (
        "Let something go wrong on purpose: lost answers, refusals, stock-outs, preemptions."
    ),
    "local secret": "Values of secrets in the local cloud.",
}
#: Verb -> its function, whose docstring is its help.
VERBS: Final[Mapping[str, str]] = {
    "setup": "vertex_training_cli.setup:setup",
    "check": "vertex_training_cli.check.command:check",
    "render": "vertex_training_cli.render.command:render",
    "import": "vertex_training_cli.importing.command:import_",
    "init": "vertex_training_cli.init.command:init",
    "upgrade": "vertex_training_cli.init.upgrading:upgrade",
    "catalogue": "vertex_training_cli.catalogue.command:catalogue",
    "review": "vertex_training_cli.review.command:review",
    "up": "vertex_training_cli.up.command:up",
    "run": "vertex_training_cli.run.command:run",
    "destroy": "vertex_training_cli.destroy.command:destroy",
    "promote": "vertex_training_cli.images.command:promote",
    "approval": "vertex_training_cli.deploy.command:approval",
    "deploy": "vertex_training_cli.deploy.command:deploy",
    "diff": "vertex_training_cli.diff:diff",
    "drift": "vertex_training_cli.drift.command:drift",
    "iam": "vertex_training_cli.iam:iam",
    "new job": "vertex_training_cli.new.command:job",
    "jobs list": "vertex_training_cli.jobs.command:list_",
    "jobs show": "vertex_training_cli.jobs.command:show_",
    "jobs compare": "vertex_training_cli.jobs.command:compare_",
    "jobs logs": "vertex_training_cli.jobs.command:logs",
    "jobs artifacts": "vertex_training_cli.jobs.command:artifacts",
    "jobs wait": "vertex_training_cli.jobs.command:wait",
    "jobs cancel": "vertex_training_cli.jobs.command:cancel",
    "jobs rerun": "vertex_training_cli.new.rerun:rerun",
    "images build": "vertex_training_cli.images.command:build",
    "images list": "vertex_training_cli.images.command:list_",
    "images check": "vertex_training_cli.images.command:check",
    "data push": "vertex_training_cli.data.command:push",
    "data pull": "vertex_training_cli.data.command:pull",
    "data ls": "vertex_training_cli.data.command:ls",
    "github comment": "vertex_training_cli.github.command:comment",
    "github approval": "vertex_training_cli.github.command:approval",
    "github drift": "vertex_training_cli.github.command:drift",
    "github doctor": "vertex_training_cli.github.command:doctor",
    "local up": "vertex_training_cli.local.commands:up",
    "local start": "vertex_training_cli.local.commands:start",
    "local stop": "vertex_training_cli.local.commands:stop",
    "local down": "vertex_training_cli.local.commands:down",
    "local status": "vertex_training_cli.local.commands:status",
    "local shell": "vertex_training_cli.local.commands:shell",
    "local logs": "vertex_training_cli.local.commands:logs",
    "local fault add": "vertex_training_cli.local.fault_commands:add",
    "local fault list": "vertex_training_cli.local.fault_commands:show",
    "local fault clear": "vertex_training_cli.local.fault_commands:clear",
    "local fault release": "vertex_training_cli.local.fault_commands:release",
    "local fault wait": "vertex_training_cli.local.fault_commands:wait",
    "local secret set": "vertex_training_cli.local.secret_commands:set_value",
}
#: Verbs that pass options which they do not know on to another program.
PASSING: Final = ("up", "destroy")


class Verb(TyperCommand):
    """A verb, as far as a list of verbs shows it. Its function is loaded to parse its line."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path.rpartition(" ")[2], help=_summary(VERBS[path]))

    def load(self) -> TyperCommand:
        """The whole command, with its parameters."""
        module, _, name = VERBS[self.path].partition(":")
        with exit_codes(self.path, FAILED):  # an extra may be missing
            function = getattr(importlib.import_module(module), name)
        if completion.is_asked_for():
            completion.give_names(function)
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        passing = self.path in PASSING
        app.command(
            self.name,
            epilog=examples.epilog(self.path),
            context_settings={"allow_extra_args": passing, "ignore_unknown_options": passing},
        )(exit_codes(self.path)(function))
        command = get_command(app)
        assert isinstance(command, TyperCommand)
        return command

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse a line: from here on it is the whole command."""
        return self.load().make_context(*args, **options)


class VerbGroup(TyperGroup):
    """The verbs and groups of verbs below ``path``."""

    def __init__(self, *, path: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.epilog = examples.epilog(path)
        self.commands.update({name: Verb(inner) for name, inner in _below(path, VERBS)})
        for name, inner in _below(path, GROUPS):
            self.commands[name] = VerbGroup(
                path=inner,
                name=name,
                help=GROUPS[inner],
                no_args_is_help=True,
                rich_markup_mode="markdown",
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb of a line. One that is not here is looked for in all groups."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            names = get_close_matches(args[0], {path.split()[-1] for path in VERBS})
            near = get_close_matches(args[0], self.commands)
            near = near or [path for path in VERBS if path.split()[-1] in names[:1]]
            hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


def _below(path: str, table: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(Name, path) of the entries right below a path."""
    for inner in table:
        above, _, name = inner.rpartition(" ")
        if above == path:
            yield name, inner


def _summary(function: str) -> str:
    """The first paragraph of a function's docstring, read from its compiled module.

    A list of verbs imports none of them.
    """
    module, _, name = function.partition(":")
    constants = _code(module).co_consts
    code = next(each for each in constants if isinstance(each, CodeType) and each.co_name == name)
    return inspect.cleandoc(code.co_consts[0] or "").partition("\n\n")[0]


@functools.cache
def _code(module: str) -> CodeType:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    code = spec.loader.get_code(module)
    assert code is not None
    return code
