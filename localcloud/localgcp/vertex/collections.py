"""Get and list resources of Vertex AI's collections, and serve their other methods.

Requests may name a project by id or number; answers have the number. Resources are rows of SQLite
in the API's JSON form.

The grammar of filters is AIP-160, as documented for jobs (T:job_service.ListCustomJobsRequest):
AND, OR (binds tighter), NOT, ``-``, parentheses, ``=``, ``!=``, ``<`` to ``>=`` for times. ``:``
tests for presence (``*``) or a substring; ``FIELD:"a","b"`` matches either value, ``FIELD("a")`` is
``FIELD:"a"``. Examples: ``labels.k=v``, ``labels.k:*``, ``display_name="x"``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

from google.protobuf import empty_pb2, json_format

from localgcp.access import gate
from localgcp.apis.field_rules import json_name
from localgcp.apis.server import invalid_argument, not_found, permission_denied
from localgcp.clients.log_filters import SHOWN, FilterReader, LogFilter, Test, parse_time
from localgcp.errors import FilterError
from localgcp.inventory.store import Store, connection, project_number
from localgcp.vertex.checks import resolve_parent
from localgcp.vertex.operations import OperationTable

Body = dict[str, Any]

NAME: Final = re.compile(r"(projects/[^/]+/locations/[^/]+)((?:/[^/]+)*)")
_PAGE, _MAX_PAGE = 100, 1000
_FIELDS: Final = re.compile(
    r"name|display_name|description|state|create_time|update_time|is_default|labels\.[\w-]+"
)
#: Roles that contain the permissions of these services.
USERS: Final = frozenset(
    {"roles/aiplatform.user", "roles/aiplatform.admin", "roles/editor", "roles/owner"}
)
#: Roles that contain the permissions to get and list jobs.
VIEWERS: Final = USERS | {"roles/aiplatform.viewer", "roles/viewer"}
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


def resolve_place(
    store: Store, parent: str, name: str, context: Any, roles: frozenset[str] = USERS
) -> tuple[str, str]:
    """Return project and region of ``parent``, for a call about the resource ``name``.

    Raises ApiError, also if a job calls whose account has none of the roles on the project.
    """
    project, region = resolve_parent(store, parent)
    guest = gate.guest_behind(context)
    if guest is not None:
        member = f"serviceAccount:{guest.account}"
        if roles.isdisjoint(store.roles(f"projects/{project}", member)):
            account = f"The job runs as {guest.account or 'no account'}."
            text = f"Permission denied on resource '{name}' (or it may not exist)."
            raise permission_denied(f"{text} {account}")
    return project, region


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
        project, region = resolve_place(self.store, match[1], name, context)
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
            test = parse_filter(request.filter, _FIELDS)
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


_TIMES: Final = ("create_time", "start_time", "end_time", "update_time")
_ORDER: Final = ("<", "<=", ">", ">=")
#: Maximum resources of a page of jobs.
_MAX_JOBS: Final = 100


def parse_filter(text: str, names: re.Pattern[str]) -> Test:
    """Parse a filter to a predicate of resources in JSON form. Raises FilterError.

    ``names`` matches the fields that the filter may use. An empty filter matches everything.
    """
    return _ListReader(text, names).whole().test


def newest_page(
    found: Iterable[Body], names: re.Pattern[str], request: Any, scope: str
) -> tuple[list[Body], str]:
    """Return a page of the resources that match the filter, and the next page's token.

    ``found`` is in JSON form, newest first. ``scope`` is the kind and the place of the resources. A
    token stays valid if resources are created or deleted. Raises ApiError.
    """
    try:
        test = parse_filter(request.filter, names)
    except FilterError as error:
        raise invalid_argument(str(error)) from error
    if request.page_size < 0:
        raise invalid_argument(f"page_size must not be negative, got {request.page_size}.")
    query = hashlib.sha256(f"{scope}?{request.filter}".encode()).hexdigest()[:16]
    after = _read_token(request.page_token, query)
    left = [body for body in found if test(body) and (after is None or _key(body) < after)]
    page = left[: min(request.page_size or _MAX_JOBS, _MAX_JOBS)]
    if len(page) == len(left):
        return page, ""
    content = json.dumps([query, *_key(page[-1])])
    return page, base64.urlsafe_b64encode(content.encode()).decode()


def _key(body: Body) -> tuple[str, str]:
    return body["createTime"], body["name"]


def _read_token(token: str, query: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        made_for, create_time, name = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError, RecursionError) as error:
        raise invalid_argument(f"Invalid page token: {token[:80]!r}.") from error
    if made_for != query:
        text = "The page token belongs to another request: parent and filter must be equal."
        raise invalid_argument(text)
    return create_time, name


class _ListReader(FilterReader):
    words = ("AND", "OR")
    joins_neighbors = False
    prefix = "Invalid filter"

    def __init__(self, text: str, names: re.Pattern[str]) -> None:
        super().__init__(text)
        self._names = names

    def comparison(self) -> LogFilter:
        field = self.take("word")
        negate = field.startswith("-")
        field = field.removeprefix("-")
        if not self._names.fullmatch(field):
            raise FilterError(f"Invalid filter: {self.text!r}, unknown field {field[:SHOWN]!r}.")
        operator = self.take("op")
        values = [self.take("string", "word")]
        while self.accept("word", ","):
            values.append(self.take("string", "word"))
        if operator == "(" and self.accept("op", ")"):
            operator = ":"
        is_known = operator in (*_ORDER, "=", "!=", ":")
        if not is_known or (operator in _ORDER and field not in _TIMES):
            raise self.error()
        if field in _TIMES and operator != ":":
            values = [self._time(value) for value in values]
        tests = [_comparison(field, operator, value) for value in values]
        return LogFilter(lambda item: any(test(item) for test in tests) is not negate)

    def _time(self, value: str) -> str:
        """Return a time with microseconds, because "…05Z" sorts after "…05.9Z" as text."""
        try:
            return parse_time(value).isoformat(timespec="microseconds").replace("+00:00", "Z")
        except FilterError:
            text = f"Invalid filter: {self.text!r}, {value[:SHOWN]!r} is not a time."
            raise FilterError(text) from None


def _value(body: Body, field: str) -> str | None:
    name, _, key = field.partition(".")
    value = body.get(json_name(name))
    if key:
        value = (value or {}).get(key)
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _comparison(field: str, operator: str, value: str) -> Test:
    def test(body: Any) -> bool:
        actual = _value(body, field)
        if operator == "!=":
            return actual != value
        if actual is None:
            return False
        if operator == ":":
            return value == "*" or value.strip("*") in actual
        if operator == "=":
            return actual == value
        ordered = {"<": actual < value, "<=": actual <= value, ">": actual > value}
        return ordered.get(operator, actual >= value)

    return test
