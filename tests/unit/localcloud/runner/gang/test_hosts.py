"""Replicas get addresses, host names where this system has them, and a view of their buckets."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from localgcp.errors import CommandNotFoundError, StartRefusedError
from localgcp.runner.gang import host_launcher, hosts
from localgcp.runner.gang.cluster import Replica
from localgcp.runner.gang.hosts import BucketView, Host

MEMBERS = [Replica(0, 0, {}), Replica(1, 0, {}), Replica(1, 1, {})]
NAMES = ["workerpool0-0", "workerpool1-0", "workerpool1-1"]
TAG = hashlib.sha256(b"42").hexdigest()[:10]


def test_an_entry_of_cluster_spec_has_the_name_or_the_address() -> None:
    assert Host("127.64.0.1", 2222).entry == "127.64.0.1:2222"
    assert Host("127.64.0.1", 2222, "chief").entry == "chief:2222"


def test_a_single_replica_is_localhost() -> None:
    only = {"workerpool0-0": Host("127.0.0.1", 2222, "localhost")}
    assert hosts.choose("42", MEMBERS[:1], named=True) == only
    assert hosts.choose("42", MEMBERS[:1], named=False) == only


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


@pytest.mark.parametrize(
    ("named", "spaces", "has_names"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_replicas_have_an_address_each_and_a_name_where_the_system_gives_one(
    monkeypatch: pytest.MonkeyPatch,
    draw: Callable[[list[int]], list[int]],
    named: bool,
    spaces: bool,
    has_names: bool,
) -> None:
    limits = draw([3, 7])
    monkeypatch.setattr(hosts, "_can_bind", lambda _address, _port: True)
    monkeypatch.setattr(hosts, "has_namespaces", lambda: spaces)
    form = "cmle-training-workerpool{0}-" + TAG + "-{1}"
    assert hosts.choose("42", MEMBERS, named=named) == {
        name: Host(f"127.67.7.{number}", 2222, form.format(*place) if has_names else None)
        for number, (name, place) in enumerate(
            zip(NAMES, [(0, 0), (1, 0), (1, 1)], strict=True), start=1
        )
    }
    assert limits == [64, 256]


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


@pytest.mark.usefixtures("server_umask")
def test_the_hosts_file_has_this_machines_lines_and_those_of_replicas(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    hosts.write_hosts(
        file,
        {"a": Host("127.64.0.1", 2222, "chief"), "b": Host("127.64.0.2", 2222),
         "c": Host("127.64.0.3", 2222, "worker")},
    )  # fmt: skip
    own = Path("/etc/hosts").read_text()
    assert file.read_text() == own.rstrip("\n") + "\n127.64.0.1 chief\n127.64.0.3 worker\n"
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_machine_without_a_hosts_file_has_localhost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **_more: object) -> str:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", refused)
        hosts.write_hosts(tmp_path / "hosts", {"a": Host("127.64.0.1", 2222, "chief")})
    assert (tmp_path / "hosts").read_text() == "127.0.0.1 localhost\n127.64.0.1 chief\n"


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/gcs/copied/a/b", "/j/gcs/copied/a/b"),
        ("/gcs/shown/a/b", "/storage/shown/a/b"),
        ("/gcs", "/j/gcs"),
        ("/gcs/shown", "/storage/shown"),
        ("/other/shown/a", "/other/shown/a"),
        ("gcs/shown/a", "gcs/shown/a"),
    ],
)
def test_a_path_of_a_program_lies_in_its_folder_or_in_the_shown_bucket(
    path: str, real: str
) -> None:
    view = BucketView(Path("/j/gcs"), ["copied"], {"shown": Path("/storage/shown")})
    assert view.real_path(Path(path)) == Path(real)


LAUNCH = [sys.executable, "-I", "-S", host_launcher.__file__]
ENV = {"PATH": os.defpath}


def test_a_program_with_nothing_of_its_own_is_started_as_it_is(tmp_path: Path) -> None:
    for host in (Host("127.0.0.1", 2222, "localhost"), Host("127.64.0.1", 2222)):
        line = hosts.command_on(host, tmp_path / "hosts", ["none", "x"], ENV, work=tmp_path)
        assert line == ["none", "x"]


def test_a_program_gets_its_host_and_its_buckets_by_the_launcher(tmp_path: Path) -> None:
    work, file = tmp_path / "work", tmp_path / "hosts"
    view = BucketView(tmp_path / "gcs", ["ro"], {"shown": tmp_path / "storage" / "shown"})
    host = {"name": "chief", "hosts": str(file)}
    gcs = {
        "root": str(tmp_path / "root"),
        "folder": str(tmp_path / "gcs"),
        "read_only": ["ro"],
        "objects": {"shown": str(tmp_path / "storage" / "shown")},
    }
    chief, local = Host("127.64.0.1", 2222, "chief"), Host("127.0.0.1", 2222, "localhost")
    argv = ["sh", "-c", "true"]

    def line(on: Host, buckets: BucketView | None) -> list[str]:
        return hosts.command_on(on, file, argv, ENV, work=work, buckets=buckets)

    assert line(chief, None) == [*LAUNCH, json.dumps({"host": host}), *argv]
    assert not (tmp_path / "root").exists()
    for _ in range(2):  # the folder may be there from an attempt before
        assert line(local, view) == [*LAUNCH, json.dumps({"gcs": gcs}), *argv]
    assert (tmp_path / "root").is_dir()
    assert line(chief, view) == [*LAUNCH, json.dumps({"host": host, "gcs": gcs}), *argv]


@pytest.fixture
def start(tmp_path: Path) -> Callable[[str], str]:
    """Why a program cannot be started in a folder with ``run``, ``text`` and ``folder``."""
    work = tmp_path / "work"
    for folder in (work / "folder", tmp_path / "bin", tmp_path / "shown"):
        folder.mkdir(parents=True)
    for file in (work / "run", tmp_path / "bin" / "tool", tmp_path / "shown" / "run"):
        file.touch(0o755)
    (work / "text").touch(0o644)
    view = BucketView(tmp_path / "gcs", [], {"shown": tmp_path / "shown"})

    def why(name: str) -> str:
        host, env = Host("127.64.0.1", 2222, "chief"), {"PATH": str(tmp_path / "bin")}
        try:
            hosts.command_on(host, work, [name], env, work=work, buckets=view)
        except CommandNotFoundError as error:
            return str(error)
        return ""

    return why


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("./run", ""),
        ("tool", ""),
        ("/gcs/shown/run", ""),
        ("./none", "./none: No such file or directory"),
        ("/gcs/shown/none", "/gcs/shown/none: No such file or directory"),
        ("./folder", "./folder: Permission denied"),
        ("./text", "./text: Permission denied"),
        ("run", "run: No such file or directory"),
    ],
)
def test_a_program_that_cannot_be_started_is_known_before(
    start: Callable[[str], str], name: str, why: str
) -> None:
    assert start(name) == why


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


def test_a_port_that_is_taken_cannot_be_bound() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not hosts._can_bind("127.0.0.1", port)
    assert hosts._can_bind("127.0.0.1", port)
