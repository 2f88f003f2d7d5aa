"""How long each step of a submission may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Bounds of the protocol, in seconds."""

    lease: float = 120.0
    """How long after the fence a request may still take effect: twice its deadline."""
    send_within: float = 60.0
    """How long after the fence sending may begin; with the deadline it stays inside the lease."""
    settle: float = 35.0
    """How long to keep looking after another process's lease has expired, in case lists lag."""
    gate: float = 45.0
    """How long to retry while permission is denied: the stack may have granted it a moment ago,
    and grants take time to have effect. Each refusal proves that nothing was created."""
    doubt: float = 90.0
    """How long to look for the job of a request whose response was lost."""
    interval: float = 5.0
    """Pause between two attempts of any of these."""
