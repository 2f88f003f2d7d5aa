"""The command line of `vt up`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vt.engine.stacks import Place

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def say(text: str) -> None:
    """A line about what is going on: stderr, so that stdout is `pulumi`'s."""
    print(f"vt: {text}", file=sys.stderr, flush=True)


def up(
    context: typer.Context,
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="The stack; default: the selected one, else local."),
    ] = None,
) -> None:
    """Run `pulumi up`, and put in order what a killed run left behind.

    Before: a lock whose process is gone is removed; a live one, or one of another machine, is
    respected. After an `up` that ended well: pending creations that it settled are cleared, and
    jobs of the stack that run and that its state does not know are told.

    Everything else on the line goes to `pulumi up`: `vt up -s dev --yes`. A stack of the local
    cloud is taken there, and the cloud is started.

    Exit code: that of pulumi; 1 if the stack is in use.
    """
    from infra.errors import CommandError
    from vt.engine import stacks
    from vt.up import flow

    try:
        where = stacks.place(stack)
        env = stacks.environment(where, say)
        target = flow.Target(where, env)
        code = flow.bring_up(target, context.args, say, cleared=lambda: _end_orphans(where))
    except CommandError as error:
        say(str(error))
        raise typer.Exit(1) from None
    raise typer.Exit(code)


def _end_orphans(where: Place) -> None:
    """A plugin of a killed run in the local cloud could go on beside the next one."""
    if where.is_local:
        from localcloud.home import Home
        from localcloud.orphaned_plugins import end_orphaned_plugins

        end_orphaned_plugins(Home.find(cwd=where.root))
