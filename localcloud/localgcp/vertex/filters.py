"""Filters and pages of List methods: ``labels.k=v``, ``labels.k:*``, ``display_name="x"``, …

The grammar is AIP-160, as documented for jobs (T:job_service.ListCustomJobsRequest): AND, OR (binds
tighter), NOT, ``-``, parentheses, ``=``, ``!=``, ``<`` to ``>=`` for times. ``:`` tests for
presence (``*``) or a substring; ``FIELD:"a","b"`` matches either value, ``FIELD("a")`` is
``FIELD:"a"``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from localgcp.apis.field_rules import json_name
from localgcp.apis.server import invalid_argument
from localgcp.clients.log_filters import SHOWN, FilterReader, LogFilter, Test, parse_time
from localgcp.errors import FilterError

_TIMES: Final = ("create_time", "start_time", "end_time", "update_time")
_ORDER: Final = ("<", "<=", ">", ">=")
_MAX_PAGE: Final = 100
Body = dict[str, Any]


def parse(text: str, names: re.Pattern[str]) -> Test:
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
        test = parse(request.filter, names)
    except FilterError as error:
        raise invalid_argument(str(error)) from error
    if request.page_size < 0:
        raise invalid_argument(f"page_size must not be negative, got {request.page_size}.")
    query = hashlib.sha256(f"{scope}?{request.filter}".encode()).hexdigest()[:16]
    after = _read_token(request.page_token, query)
    left = [body for body in found if test(body) and (after is None or _key(body) < after)]
    page = left[: min(request.page_size or _MAX_PAGE, _MAX_PAGE)]
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
