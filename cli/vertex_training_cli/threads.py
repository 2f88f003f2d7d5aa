"""Runs functions in parallel, within a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable


def run_within(seconds: float, works: Iterable[Callable[[], object]]) -> bool:
    """Run each function in a thread; return False if some have not ended after ``seconds``.

    Those continue, and do not keep the process from its end.
    """
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
