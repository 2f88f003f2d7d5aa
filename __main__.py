"""Entry point of ``pulumi up``: the stack's settings -> the program."""

import sys
from pathlib import Path

import pulumi

from infra import program
from infra.errors import ConfigError
from infra.settings import stack_file

ROOT = Path(__file__).parent

_MESSAGE_SHOWN = 32
"""By this exit code the SDK's executor tells the language host that the user has seen the error."""

try:
    program.deploy(stack_file.read(ROOT), ROOT)
except ConfigError as error:
    # The text alone: RunError would add "an unhandled error occurred" to a mistake in a file.
    pulumi.log.error(error.report())
    sys.exit(_MESSAGE_SHOWN)
