"""Daemon threads, which end with their process."""

from __future__ import annotations

import threading
from collections.abc import Callable


def make_thread(target: Callable[..., object], *args: object) -> threading.Thread:
    """Create a daemon thread that calls ``target`` after its start."""
    return threading.Thread(target=target, args=args, daemon=True)
