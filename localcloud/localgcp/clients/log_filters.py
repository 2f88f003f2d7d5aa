"""The part of Cloud Logging's query language that clients of jobs' logs write (pure).

Comparisons, ``AND``, ``OR``, ``NOT`` and parentheses; comparisons side by side mean ``AND``.
Source: cloud.google.com/logging/docs/view/logging-query-language. Anything else is refused: a
filter that is half understood shows lines that nobody asked for.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from localgcp.errors import FilterError

#: What a comparison reads of an entry, by the field's name.
Fields = Callable[[str], str]
Test = Callable[[Fields], bool]

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<mark>[()])|(?P<op>=~|!~|!=|>=|<=|=|>|<|:)|"(?P<quoted>(?:[^"\\]|\\.)*)"|'
    r'(?P<word>[^\s()=<>!:"]+))'
)
_ORDERED: Final[dict[str, Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
#: From the least on (google/logging/type/log_severity.proto).
_SEVERITIES: Final = (
    *("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"),
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?")
_DEPTH: Final = 20


@dataclass(frozen=True)
class LogFilter:
    """A filter that was read."""

    test: Test
    """Whether an entry is asked for."""
    equal: dict[str, str]
    """What every entry that is asked for has: comparisons with ``=`` that none joins by OR."""


def parse(text: str, known: Collection[str]) -> LogFilter:
    """Read a filter over the fields ``known``. Raises FilterError."""
    reader = _Reader(_tokens(text), frozenset(known))
    if not reader.tokens:
        return LogFilter(lambda _: True, {})
    test, equal = reader.alternatives(0)
    if reader.tokens:
        raise FilterError(f"Unparseable filter: {text!r} (the local cloud knows few).")
    return LogFilter(test, equal)


#: Syntax alone; a comparison's value may be a function or a list in parentheses.
_SYNTAX: Final = re.compile(
    r"\s*(?:(?P<comment>--[^\n]*)|(?P<mark>[(),])|(?P<op>=~|!~|!=|>=|<=|=|>|<|:)|"
    r'(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s()=<>!:",])+))'
)


def check_syntax(text: str) -> None:
    """Raise FilterError for what is no filter of the Logging query language, by syntax alone.

    Any field, function and value passes; operators stand between a field and a value, and
    parentheses and quotation marks are closed.
    """
    position, depth, before, text = 0, 0, "", text.rstrip()
    while position < len(text):
        match = _SYNTAX.match(text, position)
        if match is None or match.lastgroup is None:
            raise FilterError(f"Unparseable filter: {text[position : position + 80]!r}.")
        kind, value = match.lastgroup, match[match.lastgroup]
        position = match.end()
        if kind == "comment":
            continue
        needs_value = before in ("op", "AND", "OR", "NOT", "")
        wrong = {
            "op": before != "value",
            "mark": value == ")" and (depth == 0 or needs_value),
            "value": value in ("AND", "OR") and needs_value,
        }
        if wrong[kind]:
            raise FilterError(f"Unparseable filter: unexpected {value!r} in {text[:80]!r}.")
        depth += {"(": 1, ")": -1}.get(value, 0) if kind == "mark" else 0
        before = value if value in ("AND", "OR", "NOT") else kind
        before = "value" if value == ")" else before
    if depth or before in ("op", "AND", "OR", "NOT"):
        raise FilterError(f"Unparseable filter: {text[:80]!r} ends too early.")


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise FilterError(f"Unparseable filter: {text[position:]!r}.")
        value = match[match.lastgroup]
        if match.lastgroup == "quoted":
            value = re.sub(r"\\(.)", r"\1", value)
        found.append((match.lastgroup, value))
        position = match.end()
    return found[::-1]


class _Reader:
    """Reads tokens from the end of a list."""

    def __init__(self, tokens: list[tuple[str, str]], known: frozenset[str]) -> None:
        self.tokens, self._known = tokens, known

    def alternatives(self, depth: int) -> tuple[Test, dict[str, str]]:
        if depth > _DEPTH:
            raise FilterError("Unparseable filter: too deep.")
        tests: list[Test] = []
        equal: dict[str, str] = {}
        while not tests or self._take("word", "OR"):
            test, equal = self._all(depth)
            tests.append(test)
        if len(tests) == 1:
            return tests[0], equal
        return lambda entry: any(test(entry) for test in tests), {}

    def _all(self, depth: int) -> tuple[Test, dict[str, str]]:
        tests: list[Test] = []
        equal: dict[str, str] = {}
        while not tests or self._take("word", "AND") or self._more():
            test, also = self._one(depth)
            tests.append(test)
            equal |= also
        return lambda entry: all(test(entry) for test in tests), equal

    def _more(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] not in (("mark", ")"), ("word", "OR"))

    def _one(self, depth: int) -> tuple[Test, dict[str, str]]:
        if depth > _DEPTH:
            raise FilterError("Unparseable filter: too deep.")
        if self._take("word", "NOT"):
            test, _ = self._one(depth + 1)
            return lambda entry: not test(entry), {}
        if self._take("mark", "("):
            found = self.alternatives(depth + 1)
            if not self._take("mark", ")"):
                raise FilterError("Unparseable filter: a parenthesis is open.")
            return found
        return self._comparison()

    def _comparison(self) -> tuple[Test, dict[str, str]]:
        name, sign, value = self._next("word"), self._next("op"), self._next("word", "quoted")
        if name not in self._known:
            raise FilterError(f"Unparseable filter: {name!r} (the local cloud knows few).")
        if sign in ("=~", "!~"):
            raise FilterError("Unparseable filter: the local cloud knows no regular expressions.")
        if name == "timestamp":
            return _compare_times(sign, value), {}
        if name == "severity" and sign in _ORDERED:
            return _compare_severities(sign, value), {}
        if sign == ":":
            return lambda entry: value.lower() in entry(name).lower(), {}
        if sign in _ORDERED:
            return lambda entry: bool(_ORDERED[sign](entry(name), value)), {}
        if sign == "!=":
            return lambda entry: entry(name) != value, {}
        return lambda entry: entry(name) == value, {name: value}

    def _take(self, kind: str, value: str) -> bool:
        if self.tokens and self.tokens[-1] == (kind, value):
            self.tokens.pop()
            return True
        return False

    def _next(self, *kinds: str) -> str:
        if not self.tokens or self.tokens[-1][0] not in kinds:
            raise FilterError("Unparseable filter: a comparison is FIELD SIGN VALUE.")
        return self.tokens.pop()[1]


def _compare_times(sign: str, value: str) -> Test:
    wanted = parse_time(value)
    compare = {**_ORDERED, "=": operator.eq, "!=": operator.ne}.get(sign)
    if compare is None:
        raise FilterError(f"Unparseable filter: timestamp{sign}.")
    return lambda entry: bool(compare(parse_time(entry("timestamp")), wanted))


def _compare_severities(sign: str, value: str) -> Test:
    """By their order, which is not that of the alphabet."""
    if value not in _SEVERITIES:
        raise FilterError(f"Unparseable filter: {value!r} is no severity.")
    wanted = _SEVERITIES.index(value)
    return lambda entry: bool(_ORDERED[sign](_SEVERITIES.index(entry("severity")), wanted))


def parse_time(text: str) -> datetime:
    """An RFC 3339 time; digits beyond microseconds are cut off. Raises FilterError."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise FilterError(f"Unparseable filter: {text!r} is no time.")
    try:
        return datetime.fromisoformat(text if found[1] else f"{text}Z").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FilterError(f"Unparseable filter: {text!r}: {error}.") from None
