"""Entry point of ``pulumi up`` in this folder: read the settings, declare the resources."""

from pathlib import Path

from foundation import config, program
from vertex_training.infra import engine
from vertex_training.infra.errors import ConfigError

try:
    program.deploy(config.read(Path(__file__).parent))
except ConfigError as error:
    engine.end_with_message(error.report())
