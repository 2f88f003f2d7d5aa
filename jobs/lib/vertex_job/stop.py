"""SIGTERM as a flag: the service sends it before it takes a replica away.

A training loop asks once a step, agrees with the other ranks, saves and returns.
"""

from __future__ import annotations

import signal
from types import FrameType


class StopRequest:
    """Set by SIGTERM. Made in the main thread."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
