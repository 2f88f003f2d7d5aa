"""Entry point of ``pulumi up`` in this folder: the environment's settings -> the program."""

from pathlib import Path

from foundation import config, program
from infra import engine
from infra.errors import ConfigError

try:
    program.deploy(config.read(Path(__file__).parent))
except ConfigError as error:
    engine.end_with_message(error.report())
