"""``vt local secret``: reads the value of a secret, and keeps it for the local cloud."""

from __future__ import annotations

import getpass
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from localgcp import secretmanager
from localgcp.home import Home
from vertex_training.errors import CommandError, did_you_mean
from vertex_training.naming import is_local
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local.commands import private_files, report

if TYPE_CHECKING:
    from vertex_training.settings.model import Settings


def add_value(name: str, stack: str) -> int:
    """Add a version to a secret of a stack; returns its number.

    Raises CommandError: there is no such stack or secret, or the value is none.
    """
    from vertex_training.settings.renames import first_key

    ref = stacks.find(stack)
    settings = stack_settings(ref)
    if name not in settings.secrets:
        text = f"stack {ref.stack} has no secret {name!r}."
        raise CommandError(text, did_you_mean(name, settings.secrets))
    path = settings.names.secret(first_key(name, settings.secrets[name]))
    project, _, secret = path.removeprefix("projects/").partition("/secrets/")
    if not is_local(project):
        hint = f"gcloud secrets versions add {secret} --project={project} --data-file=-"
        raise CommandError(f"project {project} is no project of the local cloud.", hint)
    home = Home.find()
    home.create()
    value = _read(name)
    if not value or len(value) > secretmanager.MAX_BYTES:
        raise CommandError(
            f"a value has 1 to {secretmanager.MAX_BYTES:,} bytes, got {len(value):,}."
        )
    if value.endswith(b"\n"):
        report("the value ends in a newline, which jobs get too (printf %s has none)")
    return secretmanager.add_version(home.secrets, project, secret, value)


def stack_settings(ref: StackRef) -> Settings:
    """The settings of a stack; no package is built, and no job file is read."""
    from vertex_training import stack
    from vertex_training.settings import stack_files

    return stack.read_settings(stack_files.read_raw(stack.SCHEMA, ref.root, ref.stack), ref.root)


def _read(name: str) -> bytes:
    if sys.stdin.isatty():
        return getpass.getpass(f"Value of {name}: ").encode()
    return sys.stdin.buffer.read(secretmanager.MAX_BYTES + 1)


def set_value(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in `secrets` of the stack file.")],
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the secret.")] = "local",
) -> None:
    """Give a secret its next value: typed at a prompt, or all of stdin, byte for byte.

    The value is in no argument, log or state. Jobs whose account may read the secret get it from
    Secret Manager of the local cloud; in the cloud: `gcloud secrets versions add`.
    """
    with private_files():
        number = add_value(name, stack)
        report(f"{name} has version {number}")
