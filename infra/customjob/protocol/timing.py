"""How long a submission may take at each step, and what it asks of the process it runs in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds of the protocol, in seconds."""

    lease: float = 120.0
    """How long after the fence a request may still take effect: its deadline, and as much again."""
    send_within: float = 60.0
    """How long after the fence sending may begin; with the deadline it stays inside the lease."""
    settle: float = 35.0
    """How long to look after another's lease is over, should listing lag."""
    gate: float = 45.0
    """How long to try again while refused for a missing right: the stack may have just granted it,
    and grants take time to have effect. Each refusal proves that nothing was created."""
    doubt: float = 90.0
    """How long to look for the job of a request whose answer was lost."""
    interval: float = 5.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an attempt asks of the process it runs in; replaced in tests."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    engine_is_alive: Callable[[], bool] = lambda: True
    """False once the Pulumi engine is gone: its orphaned provider must not begin to send."""
