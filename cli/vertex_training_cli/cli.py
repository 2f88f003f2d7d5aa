"""``vt``, the command beside ``pulumi``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

from vertex_training_cli.console import extra_hint

try:
    import typer
except ModuleNotFoundError as missing:
    sys.exit(f"vt: {missing.name} is not installed. Hint: {extra_hint('typer')}")
from typer.completion import get_completion_inspect_parameters

from vertex_training_cli.failures import exit_codes
from vertex_training_cli.help import completion
from vertex_training_cli.help.verbs import MARKUP, WIDTH, VerbGroup
from vertex_training_cli.process import prepare


class CommandLine(typer.Typer):
    """The commands. ``vt check FILES`` starts without the slow parser of the other commands."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the command of this process."""
        files = None if args or options else checked_files(sys.argv[1:])
        if files is None or completion.is_asked_for():
            return super().__call__(*args, **options)
        prepare()
        sys.exit(run_check(files))


_SUMMARY: Final = (
    "Write, run, review and deploy training jobs on Vertex AI, or test them in a local cloud."
)
app = CommandLine(
    name="vt",
    cls=VerbGroup,
    help=_SUMMARY,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH},
)
if completion.is_asked_for():
    get_completion_inspect_parameters()  # This call also registers the shells.


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"vt {version('vertex-training')}")
        except PackageNotFoundError:  # A checkout is not an installed package.
            print("vt, from a checkout")
        raise typer.Exit


@app.callback(help=_SUMMARY)
def main(
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
) -> None:
    prepare()


def checked_files(words: Sequence[str]) -> list[str] | None:
    """Return the files of ``check FILES`` without options; None for another command line."""
    command, *files = words or [""]
    plain = all(word and (word == "-" or not word.startswith("-")) for word in files)
    return files if command == "check" and files and plain else None


def run_check(files: list[str]) -> int:
    """Return the exit code of ``vt check FILES``."""
    from vertex_training_cli.check.command import check

    try:
        with exit_codes("check"):
            check(files)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `vt check jobs | head` closes the pipe.
        sys.stdout = None
        return 1
    return 0


if __name__ == "__main__":
    app()
