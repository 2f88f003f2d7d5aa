"""Replicas get addresses, host names where this system has them, and a view of their buckets."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from localgcp.errors import StartRefusedError
from localgcp.runner.gang import host_launcher, hosts
from localgcp.runner.gang.cluster import Replica
from localgcp.runner.gang.hosts import Host

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
        "port 2222 is taken at the loopback addresses of this machine.",
    )
    assert len(limits) == 2 * 50


def test_a_machine_without_a_hosts_file_has_localhost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **_more: object) -> str:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", refused)
        hosts.write_hosts(tmp_path / "hosts", {"a": Host("127.64.0.1", 2222, "chief")})
    assert (tmp_path / "hosts").read_text() == "127.0.0.1 localhost\n127.64.0.1 chief\n"


LAUNCH = [sys.executable, "-I", "-S", host_launcher.__file__]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], float]]:
    """The commands by which the system is asked for namespaces; all succeed."""
    asked: list[tuple[list[str], float]] = []

    def succeeds(command: list[str], seconds: float) -> bool:
        asked.append((command, seconds))
        view = json.loads(command[4]).get("gcs")
        return view is None or (
            all(
                Path(view[of], *name).is_dir()
                for of, *name in (("root",), ("folder", "a"), ("folder", "b"))
            )
            and Path(view["objects"]["b"]).is_dir()
        )

    monkeypatch.setattr(hosts, "succeeds", succeeds)
    return asked


def test_a_system_is_asked_by_the_launcher_itself(launched: list[tuple[list[str], float]]) -> None:
    assert hosts.has_namespaces.__wrapped__() is True
    view = {"host": {"name": "replica-0", "hosts": "/etc/hosts"}}
    assert launched.pop() == ([*LAUNCH, json.dumps(view), "true"], 10.0)
    assert hosts.has_mounts.__wrapped__() is True
    command, seconds = launched.pop()
    asked = json.loads(command[4])["gcs"]
    base = Path(asked["root"]).parent
    assert asked == {
        "root": f"{base}/root",
        "folder": f"{base}/gcs",
        "read_only": ["a"],
        "objects": {"b": f"{base}/objects"},
    }
    assert (command[:4], command[5:], seconds) == (LAUNCH, ["true"], 10.0)
    assert not base.exists()


def test_no_system_but_linux_has_namespaces(
    launched: list[tuple[list[str], float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: pytest.fail("a folder was made"))
    assert hosts.has_namespaces.__wrapped__() is False
    assert hosts.has_mounts.__wrapped__() is False
    assert launched == []
