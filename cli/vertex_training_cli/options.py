"""Options and arguments that several commands share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CheckUnavailableError
from vertex_training_cli.engine.paths import root_of

SelectedStack = Annotated[
    str | None,
    typer.Option("--stack", "-s", help="Stack. Default: the selected stack, else `local`."),
]
StackOfFile = Annotated[str, typer.Option("--stack", "-s", help="Stack (file Pulumi.STACK.yaml).")]
StackOfJob = Annotated[str, typer.Option("--stack", "-s", help="Stack to add the job to.")]
Write = Annotated[bool, typer.Option("--write", help="Write the files, after showing the diff.")]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the report to FILE.md and FILE.json.", metavar="FILE"
    ),
]


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="Output format.")]

_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def matching(pattern: re.Pattern[str], value: str, option: str, example: str) -> re.Match[str]:
    """Return the match of ``pattern`` with the whole value."""
    match = pattern.fullmatch(value)
    if match is None:
        raise typer.BadParameter(
            f"{value!r} has the wrong form; write a value like {example}", param_hint=option
        )
    return match


def seconds(value: str, option: str) -> int:
    """Return the number of seconds of a duration such as ``30m``."""
    number, unit = matching(_DURATION, value, option, "30m").groups()
    return int(number) * _SECONDS[unit]


def project_root() -> Path:
    """Return the folder with ``Pulumi.yaml``: the current folder or a folder above."""
    root = root_of(Path.cwd())
    if root is None:
        raise CheckUnavailableError(
            "no Pulumi.yaml in this folder or above: a stack needs a Pulumi project"
        )
    return root


def write_reports(output: Path, **texts: str) -> None:
    """Write each text to a file whose name is ``output`` with the text's ending."""
    output.parent.mkdir(parents=True, exist_ok=True)
    for ending, text in texts.items():
        (output.parent / f"{output.name}.{ending}").write_text(text, encoding="utf-8")
