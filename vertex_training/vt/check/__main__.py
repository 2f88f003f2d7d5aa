"""``python -m vertex_training.vt.check``: ``vt check`` without the rest of ``vt``, for the pre-commit hook."""

import typer

from vertex_training.vt.check.command import check

typer.run(check)
