"""Connects the clients of registries to the local cloud, for stacks that live there."""

from __future__ import annotations

import os
from collections.abc import Callable

from vt.engine.stacks import StackRef
from vt.images.registry import EMULATOR


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
    if address := env.get(EMULATOR):
        os.environ[EMULATOR] = address
