"""Which uv makes the policy pack's environment, what it has of ours, and waits for the cache."""

from __future__ import annotations

import fcntl
from typing import Any

import pytest

from vertex_training_cli.toolchain import cache
from vertex_training_cli.toolchain.console import SetupError


class Clock:
    """The time, which goes on where somebody sleeps, and who holds the lock until when."""

    def __init__(self, held_until: float) -> None:
        self.now, self.held_until = 0.0, held_until
        self.said: list[object] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def flock(self, _: int, how: int) -> None:
        assert how == fcntl.LOCK_EX | fcntl.LOCK_NB
        if self.now < self.held_until:
            raise BlockingIOError


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch):
    """Waits for a lock that is held so long, with a beat each second."""

    def wait(held: float, limit: float) -> list[object]:
        clock = Clock(held)

        class Heartbeat:
            period = 1.0

            def __init__(self, what: str) -> None:
                clock.said.append(what)

            def beat(self, seconds: float) -> None:
                clock.said.append(seconds)

            def clear(self) -> None:
                clock.said.append("clear")

        monkeypatch.setattr(cache, "Heartbeat", Heartbeat)
        monkeypatch.setattr(cache, "POLL_SECONDS", 0.5)  # adds up exactly
        monkeypatch.setattr(cache.time, "monotonic", lambda: clock.now)
        monkeypatch.setattr(cache.time, "sleep", clock.sleep)
        monkeypatch.setattr(cache.fcntl, "flock", clock.flock)
        cache._wait_for(3, limit)
        return clock.said

    return wait


def test_a_setup_does_not_wait_for_ever(waits: Any) -> None:
    with pytest.raises(SetupError) as failed:
        waits(9, 2.5)
    assert str(failed.value) == (
        "setup: another setup has held the cache for 2 s\n  Hint: end it, then run this again"
    )
