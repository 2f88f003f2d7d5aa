"""``vt``, the command beside ``pulumi``.

Exit codes: 0 done, 1 it failed (the reason is one line on stderr), 2 wrong usage, 130 interrupted;
commands that run another program pass its exit code on. ``vt review`` has codes of its own.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from vertex_training_cli.catalogue.command import catalogue
from vertex_training_cli.check import quick
from vertex_training_cli.check.command import check
from vertex_training_cli.data.command import data
from vertex_training_cli.deploy.command import approval, deploy
from vertex_training_cli.destroy.command import DESTROY_CONTEXT, destroy
from vertex_training_cli.diff.command import diff
from vertex_training_cli.drift.command import drift
from vertex_training_cli.github.command import github
from vertex_training_cli.help import completion, examples
from vertex_training_cli.iam.command import iam
from vertex_training_cli.images.command import images, promote
from vertex_training_cli.importing.command import import_
from vertex_training_cli.init.command import init
from vertex_training_cli.init.upgrading import upgrade
from vertex_training_cli.jobs.command import jobs
from vertex_training_cli.local.commands import local
from vertex_training_cli.local.fault_commands import fault
from vertex_training_cli.local.secret_commands import secret
from vertex_training_cli.new.command import new
from vertex_training_cli.new.rerun import rerun
from vertex_training_cli.proxies import exempt_loopback
from vertex_training_cli.render.command import render
from vertex_training_cli.review.command import review
from vertex_training_cli.setup import setup
from vertex_training_cli.up.command import UP_CONTEXT, up
from vertex_training_cli.user import set_user_variables


class CommandLine(typer.Typer):
    """The commands; ``vt check FILES`` starts without their parser."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the command that this process was started with."""
        files = None if args or options else quick.files_of(sys.argv[1:])
        if files is None or completion.is_asked_for():
            return super().__call__(*args, **options)
        prepare()
        sys.exit(quick.run(files))


app = CommandLine(
    name="vt",
    help="Train on Vertex AI: the local cloud, and what helps to write and review jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(setup)
app.command()(check)
app.command()(render)
app.command("import")(import_)
app.add_typer(new, name="new")
app.command()(init)
app.command()(upgrade)
app.command()(catalogue)
app.command()(review)
local.add_typer(fault, name="fault")
local.add_typer(secret, name="secret")
app.command(context_settings=UP_CONTEXT)(up)
app.command(context_settings=DESTROY_CONTEXT)(destroy)
jobs.command()(rerun)
app.add_typer(jobs, name="jobs")
app.add_typer(images, name="images")
app.command()(promote)
app.add_typer(data, name="data")
app.command()(approval)
app.command()(deploy)
app.command()(diff)
app.command()(drift)
app.command()(iam)
app.add_typer(github, name="github")
app.add_typer(local, name="local")
examples.add_examples(app)
if completion.is_asked_for():
    completion.prepare(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"vt {version('vertex-training')}")
        except PackageNotFoundError:  # a checkout is not installed
            print("vt, of a checkout")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
) -> None:
    """Train on Vertex AI: the local cloud, and what helps to write and review jobs."""
    prepare()


def prepare() -> None:
    """Make streams and variables of this process what every command expects."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A log may have characters that this terminal cannot show: replace them.
            stream.reconfigure(errors="replace")
    exempt_loopback(os.environ)
    set_user_variables(os.environ)


if __name__ == "__main__":
    app()
