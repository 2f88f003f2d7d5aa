"""``python -m vt.check``: ``vt check`` without the rest of ``vt``, for the pre-commit hook."""

import typer

from vt.check.command import check

typer.run(check)
