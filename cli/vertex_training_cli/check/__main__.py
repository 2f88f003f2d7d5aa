"""Run ``vt check`` for the pre-commit hook: ``python -m vertex_training_cli.check``."""

import typer

from vertex_training_cli.check.command import check
from vertex_training_cli.failures import exit_codes

typer.run(exit_codes("check")(check))
