"""``python -m vertex_training.vt.check``: ``vt check`` alone, for the pre-commit hook."""

import typer

from vertex_training.vt.check.command import check

typer.run(check)
