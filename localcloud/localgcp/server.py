"""The server process of the local cloud: ``python -m localgcp.server --home DIR --repo DIR``."""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from localgcp.access.callers import can_check
from localgcp.errors import LocalCloudError
from localgcp.faults.table import FaultTable
from localgcp.home import PRIVATE_UMASK, Home, open_private
from localgcp.home.servers import ServerInfo, choose_port
from localgcp.lifecycle import end_work
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from localgcp.system import processes
from localgcp.system.root_directory import delete_folder

if TYPE_CHECKING:
    from localgcp.services import Services


def run(home: Home) -> None:
    """Serve until SIGTERM or SIGINT. Raises LocalCloudError if the server cannot start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = _lock(home)
    # Delete the file first, so that commands do not read the process id of a killed server.
    before = ServerInfo.read(home.server_file)
    home.server_file.unlink(missing_ok=True)
    for child in processes.end_orphaned_children(home.children):
        print(f"ended process {child.pid} ({child.role}) of a killed server")
    end_work(home)
    for sockets in home.sockets.glob("vertex-*"):
        delete_folder(sockets)
    FaultTable(home.faults).forget_held()
    emulator = StorageEmulator(home.storage, home.storage_log, home.children, private=True)
    storage = StorageFront(emulator, FaultTable(home.faults), lambda: choose_port(0, "storage"))
    try:
        storage.start(choose_port(before.storage_port if before else 0, "storage"))
        # Importing Google's library takes more than a second, so storage starts before.
        from localgcp.services import Services

        services = Services(home, storage, before and before.ports, stop)
        try:
            port = services.start()
            _live(home, storage, services, port, lock, stop)
            services.stop()
        finally:
            services.registry.stop()
        print("stopped")
    finally:
        storage.stop()
        lock.close()


def _live(
    home: Home,
    storage: StorageFront,
    services: Services,
    port: int,
    lock: IO[Any],
    stop: threading.Event,
) -> None:
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    warnings, registry = list[str](), services.registry
    if not can_check():
        text = "this system does not report who owns a connection: other users of this machine"
        warnings.append(f"{text} can connect")
    if refusal := storage.emulator.refusal:
        text = "other users of this machine can reach the storage emulator: it has no private"
        warnings.append(f"{text} network ({refusal})")
    info = ServerInfo(os.getpid(), port, storage.port, started, registry.port, tuple(warnings))
    info.write(home.server_file)
    print(f"ready: vertex 127.0.0.1:{port}, storage {storage.url}")
    while not stop.wait(0.5) and _is_ours(lock, home):
        if ServerInfo.read(home.server_file) != info:
            info.write(home.server_file)  # repair the file
        storage.reconcile()
        registry.reconcile()
        services.containers.reconcile(registry.port)
        info = replace(info, registry_port=registry.port)
    if _is_ours(lock, home):
        home.server_file.unlink(missing_ok=True)


def _lock(home: Home) -> IO[Any]:
    lock = open_private(home.server_lock, "a")
    deadline = time.monotonic() + 3.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            # A command that checks for a running server also holds the lock for a moment.
            if time.monotonic() > deadline:
                text = f"another server is already running in {home.root}."
                raise LocalCloudError(text) from None
            time.sleep(0.02)


def _is_ours(lock: IO[Any], home: Home) -> bool:
    # False after a user removed the home folder: commands cannot find this server.
    try:
        return os.path.samestat(os.fstat(lock.fileno()), home.server_lock.stat())
    except FileNotFoundError:
        return False


def main() -> int:
    """Run the server; return 1 after a line ``error: …`` if it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m localgcp.server")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--repo", type=Path, required=True)
    options = parser.parse_args()
    os.umask(PRIVATE_UMASK)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        run(Home(options.home, options.repo))
    except LocalCloudError as error:
        print(f"error: {error}")
        return 1
    except Exception as error:
        traceback.print_exc()
        print(f"error: {type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
