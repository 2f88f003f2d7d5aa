"""Threads that end with their process."""

from __future__ import annotations

import threading
from collections.abc import Callable


def make_thread(target: Callable[..., object], *args: object) -> threading.Thread:
    """A thread that calls ``target`` once it is started, and keeps no process alive."""
    return threading.Thread(target=target, args=args, daemon=True)
