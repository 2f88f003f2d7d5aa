"""The storage emulator's place in the server: alone, or behind the proxy while there are faults.

Both times clients see the same address. Objects are files, so the emulator is simply started again
on another port when the proxy takes its place, and on its own again when the last fault is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from localcloud.faults.model import Service
from localcloud.faults.proxy import FaultProxy
from localcloud.faults.table import FaultTable
from localcloud.storage import StorageEmulator


class StorageFront:
    """Cloud Storage at one port. Not safe across threads: the server's main thread tends it."""

    def __init__(
        self, emulator: StorageEmulator, table: FaultTable, free_port: Callable[[], int]
    ) -> None:
        self._emulator, self._table, self._free_port = emulator, table, free_port
        self._proxy: FaultProxy | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where clients find it, whatever stands there."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, port: int) -> None:
        """Serve at ``port``. Raises LocalCloudError if the emulator does not start."""
        self.port = port
        if self._wanted():
            self._put_in_front()
        else:
            self._emulator.start(port)
            self._note(0)

    def reconcile(self) -> None:
        """Put the proxy there or take it away, and start an emulator that ended again."""
        if self._wanted() != (self._proxy is not None):
            self.stop()
            self.start(self.port)
        elif not self._emulator.alive():
            print("the object storage emulator ended; starting it again")
            self._emulator.stop()
            self._emulator.start(self._emulator.port, self.port)

    def stop(self) -> None:
        """End both. Repeatable."""
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        self._emulator.stop()

    def _put_in_front(self) -> None:
        self._emulator.start(self._free_port(), self.port)
        self._proxy = FaultProxy(self.port, lambda: self._emulator.port, self._table)
        self._note(self._emulator.port)

    def _note(self, port: int) -> None:
        if self._table.any():
            self._table.set_front(port)

    def _wanted(self) -> bool:
        return self._table.any() and any(
            entry.fault.service is Service.STORAGE for entry in self._table.entries()
        )
