"""Finds the method of a request, and applies its faults."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from localgcp.access.gate import guest_at, named_connection, reset_connection
from localgcp.apis import discovery, field_rules
from localgcp.bigquery import service as bigquery
from localgcp.bigquery.service import BigQuery, Call
from localgcp.errors import (
    BigQueryError,
    ExchangeEndedError,
    InvalidRequestError,
    RefusedRequestError,
)
from localgcp.faults.model import Kind, Service
from localgcp.faults.table import Entry, FaultTable
from localgcp.inventory.machines import is_region
from localgcp.inventory.store import Store
from localgcp.reads import compute, projects, resources, time_series
from localgcp.reads.methods import ReadMethod, Request, refused


def _of_bigquery(answer: Callable[[BigQuery, Call], dict[str, Any]]) -> ReadMethod:
    def answered(request: Request) -> dict[str, Any]:
        assert request.bigquery is not None
        call = Call(request.variables, request.body, request.query, request.guest, request.content)
        return answer(request.bigquery, call)

    return ReadMethod(answered)


#: Method id (``localgcp.apis.discovery``) -> handler.
METHODS: Final[Mapping[str, ReadMethod]] = {
    **resources.POLICIES,
    **compute.METHODS,
    **projects.METHODS,
    **time_series.METHODS,
    **{f"bigquery.v2.{name}": _of_bigquery(answer) for name, answer in bigquery.METHODS.items()},
}


class Reads:
    """Serves the methods of ``METHODS``."""

    def __init__(
        self,
        store: Store,
        faults: FaultTable,
        stopping: threading.Event,
        warehouse: BigQuery | None = None,
    ) -> None:
        self._store, self._faults, self._stopping = store, faults, stopping
        self._bigquery = warehouse

    def answer(self, verb: str, target: str, body: bytes, connection: str = "") -> bytes | None:
        """Return the answer as JSON; None for an unknown method. Raises RefusedRequestError.

        A method is one of Google's: what its description does not have is refused, and left out.
        """
        content = None
        if target.startswith(bigquery.UPLOAD):
            target, body, content = bigquery.parse_upload(target, body)
        path, _, query = target.partition("?")
        called = discovery.find(verb, path)
        if called is None:
            return None
        document = _document(body)
        if called.id.startswith("bigquery."):
            document = bigquery.with_texts(document)
        called.check_query(query, bigquery.UNDESCRIBED.get(called.id, ()))
        called.check_body(document)
        if called.id.endswith((".insert", ".create")):
            _check_fields(called, path, document)
        request = Request(
            self._store,
            called,
            *called.parts(path),
            called.variables(path),
            document,
            parse_qs(query),
            content=content,
        )
        read = METHODS.get(called.id)
        if read is None:
            answer = resources.METHODS[called.id](request)
        else:
            answer = self._answer(read, request, unquote(path), connection)
        return json.dumps(called.fit(answer)).encode()

    def _answer(
        self, read: ReadMethod, request: Request, path: str, connection: str
    ) -> dict[str, Any]:
        """Apply faults and return the method's answer. Raises RefusedRequestError."""
        id_ = request.method.id
        service, method = read.fault_of(id_)
        if service is Service.BIGQUERY:
            peer = named_connection(connection)
            guest = None if peer is None else guest_at(peer)
            request = dataclasses.replace(request, guest=guest, bigquery=self._bigquery)
        subjects = [path, *request.permissions]
        if id_ == time_series.METHOD:
            subjects += [text for job in time_series.asked(request) for text in job.subjects]
        if reference := request.body.get("jobReference"):
            subjects.append(str(reference.get("jobId")))
        taken = self._faults.count_call(service, method, lambda _: subjects, lambda _: True)
        self._meet(taken, "before", path, connection)
        faults = [entry.fault for entry in taken]
        denied = tuple(fault.match for fault in faults if fault.kind is Kind.DENY)
        permission = read.permission_of(id_)
        if denied and permission:
            raise refused(permission, path)
        patches = [fault.patch for fault in faults if fault.kind is Kind.PATCH]
        used = tuple(fault for fault in faults if fault.kind is Kind.UTILIZATION)
        request = dataclasses.replace(request, denied=denied, utilization=used)
        try:
            answer = read.answer(request)
        except RefusedRequestError as error:
            if error.status != 404 or not patches:
                raise
            answer = {}
        self._meet(taken, "after", path, connection)
        for patch in patches:
            answer = merged(answer, patch)
        return answer

    def _meet(self, taken: list[Entry], when: str, path: str, connection: str) -> None:
        """Apply faults before or after a call.

        Raises RefusedRequestError for an error, ExchangeEndedError where no answer comes.
        """
        for entry in taken:
            if entry.fault.when != when:
                continue
            if entry.fault.kind is Kind.RESET:
                if peer := named_connection(connection):
                    reset_connection(peer)
                raise ExchangeEndedError
            self._faults.meet(
                entry, path, self._stopping, lambda code, text: RefusedRequestError(int(code), text)
            )


def _check_fields(
    called: discovery.DescribedMethod, path: str, document: Mapping[str, Any]
) -> None:
    """Raise RefusedRequestError for a new resource with invalid fields or an unknown region."""
    of_compute = called.id.startswith("compute.")
    errors = list(field_rules.errors(called.request, document, "resource" if of_compute else ""))
    # The checks of BigQuery's own jobs word what is required.
    words = "" if called.id == "bigquery.v2.jobs.insert" else "Required parameter is missing: "
    for field, text in errors if called.id.startswith("bigquery.") else ():
        name = field_rules.json_name(field)
        if text != field_rules.REQUIRED:
            raise BigQueryError("invalid", f"Invalid value for {name}: {text}")
        if words:
            raise BigQueryError("required", f"{words}{name}")
    nameless = ("resource.name", field_rules.REQUIRED)
    if of_compute and not document.get("name") and nameless not in errors:
        errors.append(nameless)
    region = re.search("/regions/([^/]+)", path)
    if region and not is_region(region[1]):
        errors.append(("region", f"Unknown region {region[1][:80]!r}."))
    if errors and not called.id.startswith("bigquery."):
        missing = "Required field '{}' not specified"
        raise InvalidRequestError(
            [(at, missing.format(at) if t == field_rules.REQUIRED else t) for at, t in errors]
        )


def merged(value: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``value`` with a merge patch (https://www.rfc-editor.org/rfc/rfc7396) applied.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    document = dict(value) if isinstance(value, dict) else {}
    for name, new in patch.items():
        if new is None:
            document.pop(name, None)
        else:
            document[name] = merged(document.get(name), new) if isinstance(new, dict) else new
    return document


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RefusedRequestError(400, "the body is not a JSON object.")
    return _without_nulls(document)


def _without_nulls(value: Any) -> Any:
    """Drop fields that are null, which means unset
    (https://protobuf.dev/programming-guides/json).
    """
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    if isinstance(value, dict):
        return {
            key: _without_nulls(element) for key, element in value.items() if element is not None
        }
    return value
