"""``python -m vertex_training_cli.check``: ``vt check`` alone, for the pre-commit hook."""

import typer

from vertex_training_cli.check.command import check

typer.run(check)
