"""``vt local secret …``: arguments, messages and exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from vertex_training_cli.local import secret_values
from vertex_training_cli.local.commands import private_files, report


def set_value(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in `secrets` of the stack file.")],
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the secret.")] = "local",
) -> None:
    """Give a secret its next value: typed at a prompt, or all of stdin, byte for byte.

    The value is in no argument, log or state. Jobs whose account may read the secret get it from
    Secret Manager of the local cloud; in the cloud: `gcloud secrets versions add`.
    """
    with private_files():
        number = secret_values.set_value(name, stack, report)
        report(f"{name} has version {number}")
