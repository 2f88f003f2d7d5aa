"""A server with a network of its own, for real: Linux namespaces, also without root's rights."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from localgcp.access import network
from localgcp.access.network import PrivateNetwork
from localgcp.errors import NoPrivateNetworkError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage import emulator as storage
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from tests.unit.localcloud.conftest import free_port, wait_until

#: Answers each connection with the uid of the process.
SERVER = """
import os, socket
with socket.create_server(("127.0.0.1", 4711)) as server:
    while True:
        connection, _ = server.accept()
        connection.sendall(str(os.getuid()).encode())
        connection.close()
"""

Started = tuple[subprocess.Popen[bytes], PrivateNetwork]


def start(*code: str) -> Started:
    with tempfile.TemporaryFile() as log:
        return network.start([sys.executable, "-I", "-S", "-c", *code], log, 0o077)


@pytest.fixture
def started() -> Iterator[Started]:
    try:
        process, made = start(SERVER)
    except NoPrivateNetworkError as error:
        pytest.skip(f"this system gives processes no network of their own: {error}")
    yield process, made
    made.close()
    process.kill()
    process.wait()


def answer(made: PrivateNetwork) -> bytes:
    with made.connect(4711, 20) as connection:
        return connection.recv(100)


def is_up(made: PrivateNetwork) -> bool:
    try:
        return bool(answer(made))
    except ConnectionRefusedError:
        return False


def test_its_port_is_reached_through_the_network_and_in_no_other_way(started: Started) -> None:
    process, made = started
    wait_until(lambda: is_up(made))
    assert [answer(made) for _ in range(5)] == [str(os.getuid()).encode()] * 5
    for host in ("127.0.0.1", "127.0.0.2", "localhost"):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, 4711), timeout=60)
    assert ":1267 " not in Path("/proc/net/tcp").read_text()  # 4711; the kernel's list for all
    assert process.poll() is None


def test_the_helper_ends_with_this_side_and_the_server_with_its_process(started: Started) -> None:
    process, made = started
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        pytest.skip("this kernel does not list children")
    wait_until(lambda: is_up(made))  # a socket was handed out: the helper runs
    (helper,) = children.read_text().split()
    made.close()
    wait_until(lambda: "\nState:\tZ" in Path(f"/proc/{helper}/status").read_text())
    with pytest.raises(OSError, match="descriptor"):
        made.connect(4711, 20)
    assert made.broken


def test_a_connection_that_is_refused_breaks_nothing(started: Started) -> None:
    _, made = started
    with pytest.raises(ConnectionRefusedError):
        made.connect(4712, 20)
    wait_until(lambda: is_up(made))
    assert not made.broken


def test_refusal_of_the_system_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "launcher.py"
    refuse = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).sendall(b'nforbidden')"
    launcher.write_text(refuse)
    monkeypatch.setattr(network, "_LAUNCHER", launcher)
    with pytest.raises(NoPrivateNetworkError, match="forbidden"):
        start(SERVER)
    launcher.write_text("raise SystemExit(1)")
    with pytest.raises(NoPrivateNetworkError, match="the launcher process ended"):
        start(SERVER)
    launcher.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(network, "_START_SECONDS", 0.05)
    with pytest.raises(NoPrivateNetworkError, match="timed out"):
        start(SERVER)
    monkeypatch.setattr(network, "sys", SimpleNamespace(platform="darwin"))
    with pytest.raises(NoPrivateNetworkError, match="only Linux"):
        start(SERVER)


@pytest.fixture
def private_front(home: Home) -> Iterator[StorageFront]:
    emulator = StorageEmulator(home.storage, home.storage_log, home.children, private=True)
    made = StorageFront(emulator, FaultTable(home.faults), free_port)
    made.start(free_port())
    if made.emulator.refusal:
        made.stop()
        pytest.skip(f"this system gives processes no network of their own: {made.emulator.refusal}")
    yield made
    made.stop()


def test_killed_emulator_or_helper_is_replaced(private_front: StorageFront, home: Home) -> None:
    client = storage_client(private_front.url)
    bucket = client.create_bucket("box")
    data = os.urandom(3 << 20)
    bucket.blob("large", chunk_size=1 << 20).upload_from_string(data)
    assert bucket.blob("large").download_as_bytes() == data
    process = private_front.emulator._process
    assert process is not None
    process.kill()
    wait_until(lambda: process.poll() is not None)
    private_front.reconcile()
    assert bucket.blob("large").exists()
    made = private_front.emulator._network
    assert made is not None
    made.close()  # as if the helper had been killed
    with pytest.raises(Exception, match="502"):
        bucket.blob("large").exists(retry=None)  # pyright: ignore[reportArgumentType]
    private_front.reconcile()
    assert bucket.blob("large").exists()
    assert (home.storage / "box").stat().st_uid == os.geteuid()


def test_emulator_without_network_is_hidden(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Started:
        raise NoPrivateNetworkError("forbidden")

    monkeypatch.setattr(storage.network, "start", refuse)
    emulator = StorageEmulator(home.storage, home.storage_log, home.children, private=True)
    made = StorageFront(emulator, FaultTable(home.faults), free_port)
    made.start(free_port())
    try:
        storage_client(made.url).create_bucket("box")
        assert made.emulator.refusal == "forbidden"
        assert emulator.host.startswith("127.")
        assert sys.platform != "linux" or emulator.host != "127.0.0.1"
    finally:
        made.stop()
