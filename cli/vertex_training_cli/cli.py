"""``vt``, the command beside ``pulumi``. ``failures`` has its exit codes."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

from vertex_training_cli.status import extra_hint

try:
    import typer
except ModuleNotFoundError as missing:
    sys.exit(f"vt: {missing.name} is not installed. Hint: {extra_hint('typer')}")
from typer.completion import get_completion_inspect_parameters

from vertex_training_cli.check import quick
from vertex_training_cli.help import completion
from vertex_training_cli.help.verbs import VerbGroup
from vertex_training_cli.proxies import exempt_loopback
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
    cls=VerbGroup,
    help="Train on Vertex AI: the local cloud, and what helps to write and review jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
if completion.is_asked_for():
    get_completion_inspect_parameters()  # on its way it makes the shells known


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
