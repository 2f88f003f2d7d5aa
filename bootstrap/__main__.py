"""Entry point of ``pulumi up`` in this folder: the environment's settings -> the program."""

import sys
from pathlib import Path

import pulumi

from foundation import config, program
from infra.errors import ConfigError

_MESSAGE_SHOWN = 32
"""By this exit code the SDK's executor tells the language host that the user has seen the error."""

try:
    program.deploy(config.read(Path(__file__).parent))
except ConfigError as error:
    pulumi.log.error(error.report())
    sys.exit(_MESSAGE_SHOWN)
