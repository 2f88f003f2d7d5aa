"""Entry point of ``pulumi up``: the stack's config -> a stack -> the program."""

from vertex_training.program import run

run(__file__)
