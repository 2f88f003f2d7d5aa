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

from vt.catalogue.command import catalogue
from vt.check import quick
from vt.check.command import check
from vt.data.command import data
from vt.deploy.command import approval, deploy
from vt.destroy.command import DESTROY_CONTEXT, destroy
from vt.diff.command import diff
from vt.drift.command import drift
from vt.github.command import github
from vt.help import completion, examples
from vt.iam.command import iam
from vt.images.command import images, promote
from vt.importing.command import import_
from vt.jobs.command import jobs
from vt.local.commands import local
from vt.local.fault_commands import fault
from vt.local.secret_commands import secret
from vt.new.command import new
from vt.new.rerun import rerun
from vt.proxies import exempt_loopback
from vt.render.command import render
from vt.review.command import review
from vt.up.command import UP_CONTEXT, up
from vt.user import set_user_variables


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
app.command()(check)
app.command()(render)
app.command("import")(import_)
app.add_typer(new, name="new")
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
