"""Connects the clients of registries to the local cloud, for stacks that live there."""

from __future__ import annotations

import os
from collections.abc import Callable

from vt.engine.stacks import StackRef
from vt.images.registry import EMULATOR

#: Settings of buildah and podman (``localcloud.containers.builders``).
BUILDERS = ("CONTAINERS_REGISTRIES_CONF", "CONTAINERS_CONF")


def connect(ref: StackRef, log: Callable[[str], None], *, start: bool) -> None:
    """Set the address of the local cloud's registry in this process, if ``ref`` lives there.

    Raises:
        CommandError: the local cloud does not run and, with ``start``, cannot be started.
    """
    if not ref.is_local or os.environ.get(EMULATOR):
        return
    if not start:
        ref.connect_clients()
    env = ref.environment(log)
    # With the registry go the settings of builders: where base images are, what RUN may read.
    os.environ.update({name: env[name] for name in (EMULATOR, *BUILDERS) if name in env})
