"""Entry point of ``pulumi up``: the stack's settings -> the program."""

from pathlib import Path

import pulumi

from infra import program, stack_file
from infra.errors import ConfigError

ROOT = Path(__file__).parent

try:
    program.deploy(stack_file.read(ROOT), ROOT)
except ConfigError as error:
    # RunError prints the text alone; any other exception would come with a traceback.
    raise pulumi.RunError(error.report()) from None
