"""Command lines of ``vt models``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

import typer

from vertex_training_cli.console import console, json_document, print_status, show_facts, table
from vertex_training_cli.jobs.service import declared_elsewhere
from vertex_training_cli.options import Format, FormatOption, SelectedStack
from vertex_training_cli.review.jobs import shown_image
from vertex_training_cli.serving.service import ModelReader, connected

COLUMNS: Final = ("model", "version", "run", "job", "created", "image")
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="The model's name in the stack file.")
]


def list_(stack: SelectedStack = None, format_: FormatOption = Format.TEXT) -> None:
    """List the stack's models with their versions, newest first."""
    ref = connected(stack)
    versions = ModelReader(ref).versions()
    if format_ is Format.JSON:
        print(json_document([asdict(version) for version in versions]))
    elif not versions:
        hint = declared_elsewhere(ref, "models", "vt models list")
        print_status(f"no models in stack {ref.stack}{hint}")
    else:
        cells = [
            (
                version.model,
                version.number,
                version.run,
                version.job,
                version.created,
                shown_image(version.image),
            )
            for version in versions
        ]
        console().print(table(*map(str.upper, COLUMNS), rows=cells))


def show_(
    model: ModelArgument, stack: SelectedStack = None, format_: FormatOption = Format.TEXT
) -> None:
    """Show the versions of a model: run, image, artifacts and aliases."""
    versions = ModelReader(connected(stack)).of_model(model)
    if format_ is Format.JSON:
        print(json_document([asdict(version) for version in versions]))
        return
    for number, version in enumerate(versions):
        if number:
            console().print()
        facts = [
            ("run", f"{version.job} {version.run}".strip()),
            ("created", version.created),
            ("image", version.image),
            ("artifacts", version.artifacts),
            ("aliases", ", ".join(version.aliases)),
            ("name", version.name),
        ]
        head = ("MODEL", f"{version.model} version {version.number}")
        show_facts(console(), head, [fact for fact in facts if fact[1]])
