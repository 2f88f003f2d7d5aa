"""Replicas get addresses, host names where this system has them, and a view of their buckets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localgcp.errors import StartRefusedError
from localgcp.runner import hosts
from localgcp.runner.hosts import Replica

MEMBERS = [Replica(0, 0, {}), Replica(1, 0, {}), Replica(1, 1, {})]
NAMES = ["workerpool0-0", "workerpool1-0", "workerpool1-1"]


def test_without_further_addresses_replicas_differ_by_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int]] = []

    def refused(address: str, port: int) -> bool:
        asked.append((address, port))
        return False

    monkeypatch.setattr(hosts, "_can_bind", refused)
    found = hosts.choose("42", MEMBERS, named=True)
    assert list(found) == NAMES
    assert {(each.address, each.name) for each in found.values()} == {("127.0.0.1", None)}
    assert all(each.port > 1023 for each in found.values())
    assert asked == [("127.64.0.1", 0)]


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[int]], list[int]]:
    """Lets the draws of addresses be these; returns the limits of the draws that were made."""

    def set_draws(draws: list[int]) -> list[int]:
        left, limits = [*draws], list[int]()

        def next_draw(limit: int) -> int:
            limits.append(limit)
            return left.pop(0)

        monkeypatch.setattr(hosts.secrets, "randbelow", next_draw)
        return limits

    return set_draws


def test_addresses_that_are_taken_are_passed_over_and_at_last_the_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, draw: Callable[[list[int]], list[int]]
) -> None:
    taken = "127.64.0.2"
    monkeypatch.setattr(hosts, "_can_bind", lambda address, port: (address, port) != (taken, 2222))
    draw([0, 0, 0, 1])
    found = hosts.choose("42", MEMBERS, named=False)
    assert [each.address for each in found.values()] == ["127.64.1.1", "127.64.1.2", "127.64.1.3"]
    limits = draw([0] * 1000)
    with pytest.raises(StartRefusedError) as refused:
        hosts.choose("42", MEMBERS, named=False)
    assert (refused.value.code, refused.value.message) == (
        9,
        "port 2222 is in use at the loopback addresses of this machine.",
    )
    assert len(limits) == 2 * 50
