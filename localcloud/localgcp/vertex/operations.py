"""Long-running operations as rows of SQLite, which persist across restarts of the server.

An unfinished operation has its method and request, so the next server can resume it.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
from google.longrunning import operations_pb2
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.message import Message
from google.rpc import status_pb2

from localgcp.apis.client import operation
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.inventory.store import connection
from localgcp.system.processes import make_thread
from localgcp.vertex.records import new_id

Operation = operations_pb2.Operation

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS operations (
    name TEXT PRIMARY KEY, target TEXT NOT NULL, method TEXT NOT NULL, request TEXT NOT NULL,
    done INTEGER NOT NULL, message BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS operation_targets ON operations (target);
"""


class OperationTable:
    """All long-running operations; safe across threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def finish(self, target: str, response: Any, metadata: Any) -> Operation:
        """Write a completed operation on a resource."""
        place = "/".join(target.split("/")[:4])
        made = self.begin(place, "", {}, metadata)
        made.response.CopyFrom(packed(response))
        made.done = True
        self._write(made)
        return made

    def deleted(self, target: str) -> Operation:
        """Write a completed deletion of a resource."""
        return self.finish(target, empty_pb2.Empty(), operation.DeleteOperationMetadata())

    def begin(
        self, target: str, method: str, request: Mapping[str, Any], metadata: Any
    ) -> Operation:
        """Write a new operation on ``target``; ``request`` has the data of its work."""
        made = Operation(name=f"{target}/operations/{new_id()}", metadata=packed(metadata))
        with connection(self._path, _SCHEMA) as db:
            row = (made.name, target, method, json.dumps(request), made.SerializeToString())
            db.execute("INSERT INTO operations VALUES (?, ?, ?, ?, 0, ?)", row)
        return made

    def end(self, name: str, outcome: Any) -> None:
        """End an operation with a response or an ApiError."""
        made = self.get(name)
        if made is None or made.done:
            return
        if isinstance(outcome, ApiError):
            code: int = outcome.code.value[0]  # pyright: ignore[reportIndexIssue]
            made.error.CopyFrom(status_pb2.Status(code=code, message=outcome.message))
        else:
            made.response.CopyFrom(packed(outcome))
        made.done = True
        self._write(made)

    def _write(self, made: Operation) -> None:
        with connection(self._path, _SCHEMA) as db:
            row = (made.done, made.SerializeToString(), made.name)
            db.execute("UPDATE operations SET done = ?, message = ? WHERE name = ?", row)

    def get(self, name: str) -> Operation | None:
        with connection(self._path, _SCHEMA) as db:
            query = "SELECT message FROM operations WHERE name = ?"
            row = db.execute(query, (name,)).fetchone()
        return Operation.FromString(row[0]) if row else None

    def list(self, target: str) -> list[Operation]:
        """Return operations on a resource, or on all resources of a location, oldest first."""
        with connection(self._path, _SCHEMA) as db:
            below = "target = ?1 OR (target > ?1 || '/' AND target < ?1 || '0')"
            query = f"SELECT message FROM operations WHERE {below} ORDER BY name"
            return [Operation.FromString(row[0]) for row in db.execute(query, (target,))]

    def unfinished(self, target: str = "") -> list[tuple[str, str, dict[str, Any]]]:
        """Return name, method and request of unfinished operations on ``target`` (default: any)."""
        query = (
            "SELECT name, method, request FROM operations"
            " WHERE done = 0 AND method <> '' AND (?1 = '' OR target = ?1)"
        )
        with connection(self._path, _SCHEMA) as db:
            rows = db.execute(query, (target,)).fetchall()
        return [(row[0], row[1], json.loads(row[2])) for row in rows]


def packed(message: Any) -> any_pb2.Any:
    """Pack a message of the client or of protobuf as ``Any``."""
    made = any_pb2.Any()
    made.Pack(message if isinstance(message, Message) else type(message).pb(message))
    return made


#: Function that executes an operation (name, request) and returns the response. Raises ApiError, or
#: ServerStoppingError if the operation is unfinished. An earlier server may have begun the work.
Work = Callable[[str, Mapping[str, Any]], Any]
#: Function that is called before and after the work ("before" or "after", method, request). It may
#: wait, and it raises the same errors as ``Work``.
Around = Callable[[str, str, Mapping[str, Any]], None]


class OperationRunner:
    """Executes the long-running operations of one server."""

    def __init__(
        self,
        operations: OperationTable,
        make_around: Callable[[threading.Event], Around] = lambda _: lambda *_: None,
    ) -> None:
        """``make_around`` receives an event that is set when the server stops."""
        self.operations = operations
        self.stopping = threading.Event()
        self._around = make_around(self.stopping)
        self._work: dict[str, Work] = {}
        self._threads: list[threading.Thread] = []

    def register(self, method: str, work: Work) -> None:
        self._work[method] = work

    def begin(
        self, target: str, method: str, request: Mapping[str, Any], metadata: Any
    ) -> Operation:
        """Write a new operation and start its work."""
        made = self.operations.begin(target, method, request, metadata)
        self._start(made.name, method, request)
        return made

    def recover(self) -> None:
        """Resume the unfinished operations of an earlier server."""
        for name, method, request in self.operations.unfinished():
            self._start(name, method, request)

    def stop(self) -> None:
        """Stop all work; the next server resumes unfinished operations."""
        self.stopping.set()
        for thread in self._threads:
            thread.join()

    def _start(self, name: str, method: str, request: Mapping[str, Any]) -> None:
        thread = make_thread(self._run, name, method, request)
        self._threads = [other for other in self._threads if other.is_alive()] + [thread]
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
            traceback.print_exc()  # The traceback is in server.log.
            text = f"Internal error encountered: {type(error).__name__}."
            outcome = ApiError(grpc.StatusCode.INTERNAL, text)
        self.operations.end(name, outcome)
