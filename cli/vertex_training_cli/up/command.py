"""The command line of ``vt up``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localgcp.home import Home
from localgcp.lifecycle import end_orphaned_plugins
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.policy_levels import up_options
from vertex_training_cli.status import print_status
from vertex_training_cli.up import flow

PolicyLevels = Annotated[
    Path | None, typer.Option(help="Levels of policies (JSON), over the stack file's.")
]


def up(
    context: typer.Context,
    stack: Annotated[
        str | None,
        typer.Option("--stack", "-s", help="The stack; default: the selected one, else local."),
    ] = None,
    policy_levels: PolicyLevels = None,
) -> None:
    """Run `pulumi up`, and put in order what a killed run left behind.

    Before: a lock whose process is gone is removed; a live one, or one of another machine, is
    respected. After an `up` that ended well: pending creations that it settled are cleared, and
    jobs of the stack that run and that its state does not know are told.

    Everything else on the line goes to `pulumi up`: `vt up -s dev --yes`. A stack of the local
    cloud is taken there, and the cloud is started.

    With a refresh, it first looks whether something protected was deleted in the cloud.

    Exit code: that of pulumi; 1 if the stack is in use, 3 if what is protected would be made anew,
    empty, or a job goes from stack to stack while it runs.
    """
    ref = stacks.find(stack)
    policies = up_options(ref.root, ref.stack, context.args, policy_levels)
    pulumi = PulumiCli(ref.root, ref.environment(print_status))
    code = flow.bring_up(
        ref,
        pulumi,
        [*context.args, *policies],
        print_status,
        on_dead_lock=lambda: _end_plugins(ref),
    )
    raise typer.Exit(code)


def _end_plugins(stack: StackRef) -> None:
    """End the plugins of a killed run in the local cloud: they could act beside the next run."""
    if stack.is_local:
        end_orphaned_plugins(Home.find(cwd=stack.root))
