"""Connects the clients of registries to the local cloud, for stacks that live there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images.registry import EMULATOR

#: Settings of buildah and podman (``localgcp.containers.builders``).
BUILDERS: Final = ("CONTAINERS_REGISTRIES_CONF", "CONTAINERS_CONF")
#: How names of addresses of the local cloud end: those of the registry, Vertex AI, storage.
_ADDRESS: Final = "_EMULATOR_HOST"


def connect(ref: StackRef, log: Callable[[str], None], *, start: bool) -> None:
    """Set the addresses of the local cloud in this process, if ``ref`` lives there.

    Raises:
        CommandError: the local cloud does not run and, with ``start``, cannot be started.
    """
    if not ref.is_local or os.environ.get(EMULATOR):
        return
    env = ref.environment(log) if start else ref.running_environment()
    # With the registry go the settings of builders: where base images are, what RUN may read.
    named = [name for name in env if name.endswith(_ADDRESS) or name in BUILDERS]
    os.environ.update({name: env[name] for name in named})
