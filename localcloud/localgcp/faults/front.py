"""Cloud Storage of the server: the proxy that every request passes, and the emulator behind it."""

from __future__ import annotations

from collections.abc import Callable

from localgcp.faults.proxy import StorageProxy
from localgcp.faults.table import FaultTable
from localgcp.storage import StorageEmulator


class StorageFront:
    """Cloud Storage at one port. Not safe across threads: the server's main thread tends it."""

    def __init__(
        self, emulator: StorageEmulator, table: FaultTable, free_port: Callable[[], int]
    ) -> None:
        self._emulator, self._table, self._free_port = emulator, table, free_port
        self._proxy: StorageProxy | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def refusal(self) -> str | None:
        """Why the emulator is within reach of other users; None: it is not."""
        return self._emulator.refusal

    def start(self, port: int) -> None:
        """Serve at ``port``. Raises LocalCloudError if the emulator does not start."""
        self.port = port
        self._emulator.start(self._free_port(), port)
        self._proxy = StorageProxy(port, self._emulator, self._table)

    def reconcile(self) -> None:
        """Start an emulator that ended again."""
        if not self._emulator.alive():
            print("the object storage emulator ended; starting it again")
            self._emulator.stop()
            self._emulator.start(self._emulator.port, self.port)

    def stop(self) -> None:
        """End both. Repeatable."""
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        self._emulator.stop()
