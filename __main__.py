"""Entry point of ``pulumi up``: the stack's config -> a stack -> the program."""

from pathlib import Path

from vertex_training.infra import engine, program, stack
from vertex_training.infra.errors import ConfigError

ROOT = Path(__file__).parent

try:
    program.deploy(stack.from_raw(engine.read_config(stack.SCHEMA, ROOT), ROOT))
except ConfigError as error:
    engine.end_with_message(error.report())
