"""The single server process of the local cloud: object storage, job service and runner.

``python -m localgcp.server --home DIR --repo DIR`` runs until SIGTERM. Its lock
file is held as long as it lives, and ``server.json`` is there while it is ready.
"""

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
from typing import IO, TYPE_CHECKING, Any, Final

from localgcp.access.callers import can_check
from localgcp.errors import LocalCloudError
from localgcp.faults.table import FaultTable
from localgcp.home import PRIVATE_UMASK, Home, open_private
from localgcp.home.servers import ServerInfo
from localgcp.lifecycle import end_work
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from localgcp.system import processes
from localgcp.system.ports import choose_port
from localgcp.system.root_directory import delete_folder

if TYPE_CHECKING:
    from localgcp.services import Services

_LOCK_SECONDS: Final = 3.0
_WATCH_SECONDS: Final = 0.5


def run(home: Home) -> None:
    """Serve until SIGTERM or SIGINT. Raises LocalCloudError if the server cannot start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = _lock(home)
    # First of all: a command that finds the lock held would take the dead server's id for ours.
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
        # Google's library takes more than a second to import: only here, after storage began.
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
    warnings, registry = _warnings(storage), services.registry
    info = ServerInfo(os.getpid(), port, storage.port, started, registry.port, warnings)
    info.write(home.server_file)
    print(f"ready: vertex 127.0.0.1:{port}, storage {storage.url}")
    while not stop.wait(_WATCH_SECONDS) and _is_ours(lock, home):
        if ServerInfo.read(home.server_file) != info:
            info.write(home.server_file)  # damaged by hand: only this process knows its contents
        storage.reconcile()
        registry.reconcile()
        services.containers.reconcile(registry.port)
        info = replace(info, registry_port=registry.port)
    if _is_ours(lock, home):
        home.server_file.unlink(missing_ok=True)


def _warnings(storage: StorageFront) -> tuple[str, ...]:
    warnings: list[str] = []
    if not can_check():
        warnings.append(
            "this system does not report who owns a connection: other users of this machine can "
            "connect"
        )
    if storage.refusal:
        warnings.append(
            "other users of this machine can reach the storage emulator: it has no private network "
            f"({storage.refusal})"
        )
    return tuple(warnings)


def _lock(home: Home) -> IO[Any]:
    lock = open_private(home.server_lock, "a")
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            # A command that asks whether a server runs holds the lock for an instant.
            if time.monotonic() > deadline:
                raise LocalCloudError(
                    f"another server is already running in {home.root}."
                ) from None
            time.sleep(0.02)


def _is_ours(lock: IO[Any], home: Home) -> bool:
    """Return whether this server's lock file still exists in the folder.

    If not, the folder was removed (``rm -rf``, ``git clean``) with all state.

    Nobody could find this server any more, and another may already run in a folder of that name.
    """
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
