"""Create, get, list, update and delete, as each collection of experiments has them.

Names, ids and defaults are those of the API's reference; messages are the client's. A name may have
a project's id or number; those that are returned have the number.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar

import grpc
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2, json_format

from localgcp.access import gate
from localgcp.apis.messages import operation
from localgcp.apis.refusals import invalid_argument, not_found, permission_denied
from localgcp.errors import ApiError, FilterError
from localgcp.experiments.records import Body, ExperimentTable
from localgcp.inventory.store import project_number
from localgcp.vertex import filters
from localgcp.vertex.checks import resolve_parent
from localgcp.vertex.records import new_id, now
from localgcp.vertex.service import JobService

_NAME: Final = re.compile(r"(projects/[^/]+/locations/[^/]+)((?:/[^/]+)*)")
_PAGE, _MAX_PAGE = 100, 1000
_FIELDS: Final = re.compile(
    r"name|display_name|description|uri|state|schema_title|create_time|update_time|is_default"
    r"|value_type|labels\.[\w-]+|in_context|parent_contexts|child_contexts"
)
_ORDER: Final = re.compile(r"(\w+)(?: (asc|desc))?")
#: Roles that contain the permissions of both services.
_USERS: Final = frozenset(
    {"roles/aiplatform.user", "roles/aiplatform.admin", "roles/editor", "roles/owner"}
)
_OUTPUT_ONLY: Final = ("name", "createTime", "updateTime", "etag")


@dataclass(frozen=True, eq=False)
class Collection:
    """One collection of a service: ``tensorboards/*/experiments``, say."""

    message: Any
    """The client's type of its resources."""
    noun: str
    """What methods and fields call one of them: ``tensorboard_experiment``."""
    plural: str
    path: str
    """Its name below the location, ``*`` for ids."""
    requests: ModuleType
    """The client's types of requests and responses."""
    id: str = r"[a-z0-9-]{1,128}"
    """Which ids a client may choose."""
    operations: Mapping[str, Any] = field(default_factory=dict)
    """Methods that return an operation, with the type of its metadata."""
    defaults: Callable[[], Body] = dict
    """What the service sets of a new one."""

    @property
    def parent(self) -> str:
        return "/" + self.path.rpartition("/")[0] if "/" in self.path else ""

    def names(self, path: str) -> bool:
        """Whether a name below the location is one of its resources."""
        return bool(re.fullmatch(_pattern(f"/{self.path}/*"), path))


class Table(Protocol):
    """Where resources of a collection are kept."""

    def get(self, name: str) -> Body | None: ...
    def list(self, parent: str) -> list[Body]: ...
    def put(self, body: Body) -> None: ...
    def delete(self, name: str) -> None: ...


class ResourceService:
    """What the two services have in common."""

    def __init__(self, jobs: JobService, table: ExperimentTable) -> None:
        """``jobs`` has the inventory, and keeps operations."""
        self._jobs, self._table = jobs, table
        self._lock = threading.RLock()  # for what is read and then written

    def table_of(self, collection: Collection) -> Table:
        """Where resources of ``collection`` are."""
        return self._table

    def before_create(self, collection: Collection, parent: str, body: Body) -> None:
        """Raise ApiError if there is more against a new resource."""

    def read_field(self, body: Body, field: str) -> filters.Value:
        """The value that a resource has in a filter's field."""
        value: Any = body
        for part in field.split("."):
            value = value.get(json_name(part)) if isinstance(value, dict) else None
        return value if value is None or isinstance(value, str) else json.dumps(value)

    def canonical(self, name: str, context: grpc.ServicerContext) -> str:
        """The name with the project's number. Raises ApiError: bad form, or the job may not."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name!r}.")
        project, region = resolve_parent(self._jobs.store, match[1])
        guest = gate.guest_behind(context)
        if guest is not None:
            member = f"serviceAccount:{guest.account}"
            if _USERS.isdisjoint(self._jobs.store.roles(f"projects/{project}", member)):
                text = f"Permission denied on resource '{name}' (or it may not exist)."
                raise permission_denied(f"{text} The job runs as {guest.account or 'no account'}.")
        return f"projects/{project_number(project)}/locations/{region}{match[2]}"

    def find(self, collection: Collection, name: str, context: grpc.ServicerContext) -> Body:
        """The resource. Raises ApiError."""
        found = self._look_up(collection, self.canonical(name, context))
        if found is None:
            raise not_found(name, collection.message.__name__)
        return found

    def _look_up(self, collection: Collection, name: str) -> Body | None:
        if not collection.names(_NAME.fullmatch(name)[2]):  # pyright: ignore[reportOptionalSubscript]
            kind = collection.message.__name__
            raise invalid_argument(f"Invalid resource name: {name!r}; expected a {kind}.")
        return self.table_of(collection).get(name)

    def create(
        self, collection: Collection, parent: str, sent: Any, id_: str, context: Any
    ) -> Body:
        """A new resource. Raises ApiError."""
        place = self.canonical(parent, context)
        self._check_parent(collection, place, parent)
        if id_ and not re.fullmatch(collection.id, id_):
            form = f"valid ids are {collection.id}"
            raise invalid_argument(f"Invalid {collection.noun}_id: {id_!r}; {form}.")
        if not id_:
            numbered = collection.path.startswith(("tensorboards", "endpoints"))
            id_ = new_id() if numbered else str(uuid.uuid4())
        name, time = f"{place}/{collection.path.rpartition('/')[2]}/{id_}", now()
        body = to_body(collection, sent)
        with self._lock:
            if self.table_of(collection).get(name) is not None:
                text = f"{collection.message.__name__} {name} already exists."
                raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
            self.before_create(collection, place, body)
            body |= {**collection.defaults(), "name": name, "createTime": time}
            return self._write(collection, body, time)

    def _check_parent(self, collection: Collection, place: str, given: str) -> None:
        below = _NAME.fullmatch(place)[2]  # pyright: ignore[reportOptionalSubscript]
        if not re.fullmatch(_pattern(collection.parent), below):
            raise invalid_argument(f"Invalid resource name: {given!r}.")
        holder = next((c for c in collections_of(self) if below and c.names(below)), None)
        if holder is not None and self.table_of(holder).get(place) is None:
            raise not_found(given, holder.message.__name__)

    def _write(self, collection: Collection, body: Body, time: str) -> Body:
        body |= {"updateTime": time, "etag": re.sub(r"\D", "", time)}
        self.table_of(collection).put(body)
        return body

    def update(self, collection: Collection, sent: Any, mask: Sequence[str], context: Any) -> Body:
        """Change the fields of the mask, or all that a client may set. Raises ApiError."""
        new = to_body(collection, sent)
        with self._lock:
            found = self.find(collection, sent.name, context)
            if new.get("etag", found.get("etag")) != found.get("etag"):
                text = f"The etag of {sent.name} is not the current one: it was changed meanwhile."
                raise ApiError(grpc.StatusCode.ABORTED, text)
            fields = {json_name(path.partition(".")[0]) for path in mask} - {"*"}
            fields = (fields or {*found, *new}) - {*_OUTPUT_ONLY}
            kept = {key: value for key, value in found.items() if key not in fields}
            return self._write(
                collection, kept | {k: v for k, v in new.items() if k in fields}, now()
            )

    def delete(self, collection: Collection, name: str, context: Any) -> operations_pb2.Operation:
        """Remove a resource and what lies below it. Raises ApiError."""
        found = self.find(collection, name, context)
        self.table_of(collection).delete(found["name"])
        self._table.delete(found["name"])
        metadata = operation.DeleteOperationMetadata()
        return self._jobs.finish(found["name"], empty_pb2.Empty(), metadata)

    def page(self, collection: Collection, request: Any, context: Any) -> tuple[list[Body], str]:
        """Resources of a page, newest first or as asked, and the token of the next one."""
        place = self.canonical(request.parent, context)
        self._check_parent(collection, place, request.parent)
        segment = collection.path.rpartition("/")[2]
        return self.paged(self.table_of(collection).list(f"{place}/{segment}"), request)

    def paged(self, found: list[Body], request: Any) -> tuple[list[Body], str]:
        """Those of a page that fit the request's filter, and the token of the next one."""
        try:
            wanted = getattr(request, "filter", "")  # stores have neither a filter nor an order
            test = filters.parse(wanted, filters.Fields(_FIELDS, self.read_field))
        except FilterError as error:
            raise invalid_argument(str(error)) from error
        if not re.fullmatch(r"\d{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token!r}.")
        found = _ordered([each for each in found if test(each)], getattr(request, "order_by", ""))
        begin = int(request.page_token or 0)
        end = begin + min(max(request.page_size, 0) or _PAGE, _MAX_PAGE)
        return found[begin:end], str(end) if end < len(found) else ""

    def answer(self, collection: Collection, verb: str, body: Body) -> Any:
        """The resource, or the finished operation of a method that returns one."""
        message = to_message(collection, body)
        if metadata := collection.operations.get(verb):
            return self._jobs.finish(body["name"], message, metadata())
        return message


def to_body(collection: Collection, message: Any) -> Body:
    """A resource in the API's JSON form."""
    return json_format.MessageToDict(collection.message.pb(message))


def to_message(collection: Collection, body: Body) -> Any:
    """A resource as the client's message; what only the plugin notes of it is left out."""
    message = collection.message()
    json_format.ParseDict(body, collection.message.pb(message), ignore_unknown_fields=True)
    return message


_S = TypeVar("_S", bound=type)


def serves(*collections: Collection) -> Callable[[_S], _S]:
    """Give a class the five methods of each collection, by the names that the client has."""

    def add(service: _S) -> _S:
        service.collections = collections
        for each in collections:
            for name, method in _methods(each).items():
                setattr(service, name, method)
        return service

    return add


def collections_of(service: ResourceService) -> Sequence[Collection]:
    """The collections that a service has."""
    return getattr(service, "collections", ())


def _methods(each: Collection) -> dict[str, Callable[..., Any]]:
    def create(service: ResourceService, request: Any, context: Any) -> Any:
        id_ = getattr(request, f"{each.noun}_id", "")
        body = service.create(each, request.parent, getattr(request, each.noun), id_, context)
        return service.answer(each, "create", body)

    def get(service: ResourceService, request: Any, context: Any) -> Any:
        return to_message(each, service.find(each, request.name, context))

    def list_(service: ResourceService, request: Any, context: Any) -> Any:
        found, token = service.page(each, request, context)
        words = "".join(map(str.title, each.plural.split("_")))
        response = getattr(each.requests, f"List{words}Response")(next_page_token=token)
        setattr(response, each.plural, [to_message(each, body) for body in found])
        return response

    def update(service: ResourceService, request: Any, context: Any) -> Any:
        sent, mask = getattr(request, each.noun), request.update_mask.paths
        return service.answer(each, "update", service.update(each, sent, mask, context))

    def delete(service: ResourceService, request: Any, context: Any) -> Any:
        return service.delete(each, request.name, context)

    one = {"create": create, "get": get, "update": update, "delete": delete}
    found = {f"{verb}_{each.noun}": method for verb, method in one.items()}
    return {**found, f"list_{each.plural}": list_}


def _ordered(found: list[Body], order: str) -> list[Body]:
    found.sort(key=lambda body: body["createTime"], reverse=True)
    for term in reversed([part.strip() for part in order.split(",") if part.strip()]):
        match = _ORDER.fullmatch(term)
        if match is None:
            raise invalid_argument(f"Invalid order_by: {order!r}.")
        field = json_name(match[1])
        found.sort(key=lambda body: str(body.get(field, "")), reverse=match[2] == "desc")
    return found


def json_name(field: str) -> str:
    """A field's name in the API's JSON form."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), field)


def _pattern(path: str) -> str:
    return re.escape(path).replace(r"\*", "[^/]+")
