"""Flag for SIGTERM, which the service sends before it stops a replica.

A training loop asks once a step, agrees with the other ranks, saves and returns.
"""

from __future__ import annotations

import signal
from types import FrameType


class StopRequest:
    """Flag that SIGTERM sets. Create it in the main thread."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
