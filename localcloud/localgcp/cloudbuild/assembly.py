"""The parts of the stand-in, put together for a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from google.cloud.logging_v2 import types

from localgcp.cloudbuild import logs
from localgcp.cloudbuild.records import BuildTable
from localgcp.cloudbuild.runner import SLOTS, BuildRunner
from localgcp.cloudbuild.service import BuildService
from localgcp.home import Home
from localgcp.inventory.store import Store


class CloudBuild:
    """Cloud Build of one server."""

    def __init__(
        self,
        home: Home,
        store: Store,
        storage_url: str,
        environment: Callable[[], Mapping[str, str]],
        *,
        slots: int = SLOTS,
        program: tuple[str, ...] = (),
    ) -> None:
        """Ends the builds of a killed server. ``environment``: what engines need to push."""
        self.builds = BuildTable(home.builds)
        self._runner = BuildRunner(
            self.builds, home.children, storage_url, environment, slots=slots, program=program
        )
        self._runner.recover()
        self.service = BuildService(store, self.builds, self._runner)

    def entries(self) -> dict[str, Callable[[str, dict[str, str]], Iterator[types.LogEntry]]]:
        """What Cloud Logging reads of builds, by type of resource."""
        return {logs.RESOURCE: logs.entries_of(self.builds)}

    def stop(self) -> None:
        """End all builds."""
        self._runner.stop()
