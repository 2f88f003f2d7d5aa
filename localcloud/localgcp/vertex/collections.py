"""Get and list resources of Vertex AI's collections, and serve their other methods.

Requests may name a project by id or number; answers have the number. Resources are rows of SQLite
in the API's JSON form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from google.protobuf import empty_pb2, json_format

from localgcp.access import gate
from localgcp.apis.server import invalid_argument, not_found, permission_denied
from localgcp.errors import FilterError
from localgcp.inventory.store import Store, connection, project_number
from localgcp.vertex import filters
from localgcp.vertex.checks import resolve_parent
from localgcp.vertex.operations import OperationTable

Body = dict[str, Any]

NAME: Final = re.compile(r"(projects/[^/]+/locations/[^/]+)((?:/[^/]+)*)")
_PAGE, _MAX_PAGE = 100, 1000
_FIELDS: Final = re.compile(
    r"name|display_name|description|state|create_time|update_time|is_default|labels\.[\w-]+"
)
#: Roles that contain the permissions of these services.
_USERS: Final = frozenset(
    {"roles/aiplatform.user", "roles/aiplatform.admin", "roles/editor", "roles/owner"}
)
# The table is named after its first resources, because existing home folders have this name.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS experiment_resources (
    name TEXT PRIMARY KEY, parent TEXT NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS experiment_parents ON experiment_resources (parent);
"""


@dataclass(frozen=True, eq=False)
class Collection:
    """One collection of a location, such as ``endpoints``."""

    message: Any
    """The client's type of the resources."""
    noun: str
    """Singular name in methods and fields: ``training_pipeline``."""
    segment: str
    """Plural name in resource names: ``trainingPipelines``."""
    requests: ModuleType
    """The client's module with the types of requests and responses."""


class ReadTable(Protocol):
    """Reads the resources of a collection."""

    def get(self, name: str) -> Body | None: ...
    def list(self, parent: str) -> list[Body]: ...


class ResourceTable:
    """Resources by name; safe across threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> Body | None:
        with connection(self._path, _SCHEMA) as db:
            query = "SELECT body FROM experiment_resources WHERE name = ?"
            row = db.execute(query, (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def list(self, parent: str) -> list[Body]:
        """Return the resources below ``parent``: their names have one more segment."""
        with connection(self._path, _SCHEMA) as db:
            query = "SELECT body FROM experiment_resources WHERE parent = ?"
            return [json.loads(row[0]) for row in db.execute(query, (parent,))]

    def put(self, body: Body) -> None:
        values = (body["name"], body["name"].rpartition("/")[0], json.dumps(body))
        with connection(self._path, _SCHEMA) as db:
            db.execute("INSERT OR REPLACE INTO experiment_resources VALUES (?, ?, ?)", values)

    def delete(self, name: str) -> None:
        """Delete a resource and its children."""
        below = (
            "name = ?1 OR (name > ?1 || '/' AND name < ?1 || '0')"  # In ASCII, 0 follows the slash.
        )
        with connection(self._path, _SCHEMA) as db:
            db.execute(f"DELETE FROM experiment_resources WHERE {below}", (name,))


class ResourceReader:
    """Serves the get and list methods of one collection."""

    #: The served collection; the decorator ``serves`` sets it.
    collection: Collection

    def __init__(self, store: Store, operations: OperationTable, table: ReadTable) -> None:
        self.store, self.operations, self.table = store, operations, table

    def canonical(self, name: str, context: Any) -> str:
        """Return the name with the project's number. Raises ApiError."""
        match = NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name!r}.")
        project, region = resolve_parent(self.store, match[1])
        guest = gate.guest_behind(context)
        if guest is not None:
            member = f"serviceAccount:{guest.account}"
            if _USERS.isdisjoint(self.store.roles(f"projects/{project}", member)):
                account = f"The job runs as {guest.account or 'no account'}."
                text = f"Permission denied on resource '{name}' (or it may not exist)."
                raise permission_denied(f"{text} {account}")
        return f"projects/{project_number(project)}/locations/{region}{match[2]}"

    def find(self, name: str, context: Any) -> Body:
        full, kind = self.canonical(name, context), self.collection.message.__name__
        if full.split("/")[4:-1] != [self.collection.segment]:
            raise invalid_argument(f"Invalid resource name: {full!r}; expected a {kind}.")
        body = self.table.get(full)
        if body is None:
            raise not_found(name, kind)
        return body

    def place(self, parent: str, context: Any) -> str:
        """Return the request's location, with the project's number. Raises ApiError."""
        place = self.canonical(parent, context)
        if place.count("/") != 3:
            raise invalid_argument(f"Invalid resource name: {parent!r}.")
        return place

    def page(self, request: Any, context: Any) -> tuple[list[Body], str]:
        """Return a page of resources, newest first, and the next page's token."""
        place = self.place(request.parent, context)
        return self.paged(self.table.list(f"{place}/{self.collection.segment}"), request)

    def paged(self, found: list[Body], request: Any) -> tuple[list[Body], str]:
        """Return a page of resources that match the filter, and the next page's token."""
        try:
            test = filters.parse(request.filter, _FIELDS)
        except FilterError as error:
            raise invalid_argument(str(error)) from error
        if not re.fullmatch(r"\d{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token!r}.")
        if getattr(request, "order_by", ""):
            raise invalid_argument("order_by: the local cloud lists resources only newest first.")
        found = [body for body in found if test(body)]
        found.sort(key=lambda body: body.get("createTime", ""), reverse=True)
        begin = int(request.page_token or 0)
        end = begin + min(max(request.page_size, 0) or _PAGE, _MAX_PAGE)
        return found[begin:end], str(end) if end < len(found) else ""


def to_body(collection: Collection, message: Any) -> Body:
    return json_format.MessageToDict(collection.message.pb(message))


def to_message(collection: Collection, body: Body) -> Any:
    """Convert a resource to the client's message, without the plugin's own fields."""
    message = collection.message()
    json_format.ParseDict(body, collection.message.pb(message), ignore_unknown_fields=True)
    return message


_S = TypeVar("_S", bound=type)


def serves(collection: Collection) -> Callable[[_S], _S]:
    """Add the methods of a collection to a class, with the client's method names."""

    def add(service: _S) -> _S:
        service.collection = collection
        for name, method in _methods(collection, service).items():
            setattr(service, name, method)
        return service

    return add


def _methods(collection: Collection, kind: Any) -> dict[str, Callable[..., Any]]:
    def create(service: Any, request: Any, context: Any) -> Any:
        id_, sent = getattr(request, f"{collection.noun}_id", ""), getattr(request, collection.noun)
        return to_message(collection, service.create(request.parent, sent, id_, context))

    def get(service: Any, request: Any, context: Any) -> Any:
        return to_message(collection, service.find(request.name, context))

    def list_(service: Any, request: Any, context: Any) -> Any:
        bodies, token = service.page(request, context)
        words = "".join(map(str.title, collection.noun.split("_")))
        response = getattr(collection.requests, f"List{words}sResponse")(next_page_token=token)
        setattr(response, f"{collection.noun}s", [to_message(collection, body) for body in bodies])
        return response

    def update(service: Any, request: Any, context: Any) -> Any:
        sent, mask = getattr(request, collection.noun), request.update_mask.paths
        return to_message(collection, service.update(sent, mask, context))

    def delete(service: Any, request: Any, context: Any) -> Any:
        return service.delete(request.name, context)

    def cancel(service: Any, request: Any, context: Any) -> empty_pb2.Empty:
        service.cancel(request.name, context)
        return empty_pb2.Empty()

    methods = {f"get_{collection.noun}": get, f"list_{collection.noun}s": list_}
    changing = {"create": create, "update": update, "delete": delete, "cancel": cancel}
    return methods | {f"{v}_{collection.noun}": m for v, m in changing.items() if hasattr(kind, v)}
