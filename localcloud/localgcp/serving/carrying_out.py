"""Carries long-running operations out: each in a thread, begun anew by the next server."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from localgcp.errors import ApiError, ServerStoppingError
from localgcp.system.threads import make_thread
from localgcp.vertex.operations import Operation, OperationTable

#: Carries one out, by its name and request; returns the response. Raises ApiError, and
#: ServerStoppingError where it was left half-way. It may have been begun before.
Work = Callable[[str, Mapping[str, Any]], Any]
#: Called before and after, with the method and the request; may wait, and raises as ``Work`` does.
Around = Callable[[str, str, Mapping[str, Any]], None]


class OperationRunner:
    """Runs the operations of one server."""

    def __init__(
        self,
        operations: OperationTable,
        make_around: Callable[[threading.Event], Around] = lambda _: lambda *_: None,
    ) -> None:
        """``make_around`` gets what is set when the server stops."""
        self.operations = operations
        self.stopping = threading.Event()
        self._around = make_around(self.stopping)
        self._work: dict[str, Work] = {}
        self._threads: list[threading.Thread] = []

    def register(self, method: str, work: Work) -> None:
        """``work`` carries out operations of this method."""
        self._work[method] = work

    def begin(
        self, target: str, method: str, request: Mapping[str, Any], metadata: Any
    ) -> Operation:
        """A new operation, which is on its way."""
        made = self.operations.begin(target, method, request, metadata)
        self._start(made.name, method, request)
        return made

    def recover(self) -> None:
        """Take up what an earlier server did not end."""
        for name, method, request in self.operations.unfinished():
            self._start(name, method, request)

    def stop(self) -> None:
        """Leave operations as they are, for the next server."""
        self.stopping.set()
        for each in self._threads:
            each.join()

    def _start(self, name: str, method: str, request: Mapping[str, Any]) -> None:
        thread = make_thread(self._run, name, method, request)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def _run(self, name: str, method: str, request: Mapping[str, Any]) -> None:
        try:
            self._around("before", method, request)
            outcome = self._work[method](name, request)
            self._around("after", method, request)
        except ApiError as error:
            outcome = error
        except ServerStoppingError:
            return
        except Exception as error:
            traceback.print_exc()  # to server.log; the caller gets one line
            text = f"Internal error encountered: {type(error).__name__}."
            outcome = ApiError(grpc.StatusCode.INTERNAL, text)
        self.operations.end(name, outcome)
