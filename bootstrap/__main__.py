"""Entry point of ``pulumi up`` in this folder: read the settings, declare the resources."""

from vertex_training.foundation.program import run

run(__file__)
