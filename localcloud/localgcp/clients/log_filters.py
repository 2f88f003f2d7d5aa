"""Parses filters of Cloud Logging; list filters of other APIs use the same parser (pure).

Comparisons, ``AND``, ``OR``, ``NOT`` and parentheses; comparisons side by side mean ``AND``.
Source: cloud.google.com/logging/docs/view/logging-query-language. Anything else is refused: a
filter that is half understood shows lines that it should not.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from localgcp.errors import FilterError

#: Function that returns an entry's value by the name of a field.
Fields = Callable[[str], str]
Test = Callable[[Any], bool]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<op>=~|!~|!=|>=|<=|[=<>:()])|"""
    r"""(?P<word>[^\s"()=<>:!]+))"""
)
_ORDERED: Final[dict[str, Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
#: Severities in ascending order (google/logging/type/log_severity.proto).
_SEVERITIES: Final = (
    *("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"),
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?")
#: Maximum depth of parentheses and NOTs.
_DEPTH: Final = 20
#: Maximum characters of a filter in a message.
SHOWN: Final = 200


class Token(NamedTuple):
    """A ``word``, a ``string`` without its quotes, or an ``op``."""

    kind: str
    text: str


@dataclass(frozen=True)
class LogFilter:
    """A parsed filter."""

    test: Test
    """Returns whether an entry matches the filter."""
    equal: dict[str, str] = field(default_factory=dict[str, str])
    """Field -> value that every matching entry has: comparisons with ``=`` outside of OR."""


class FilterReader:
    """Parses a filter; a subclass parses comparisons. Raises FilterError."""

    #: Operators that join terms, the weakest first.
    words: tuple[str, str] = ("OR", "AND")
    #: True if terms without an operator between them mean AND.
    joins_neighbors = True
    prefix = "Unparseable filter"

    def __init__(self, text: str) -> None:
        self.text, self._next, self._depth = text[:SHOWN], 0, 0
        self._tokens = self.split(text)

    @classmethod
    def split(cls, text: str) -> list[Token]:
        """Return the tokens of a filter."""
        tokens: list[Token] = []
        position, whole = 0, text.rstrip()
        while position < len(whole):
            match = _TOKEN.match(whole, position)
            if match is None:
                shown = f"{whole[:SHOWN]!r}, at position {position}."
                raise FilterError(f"{cls.prefix}: {shown}")
            kind = match.lastgroup or ""
            token = match[kind]
            if kind == "string":
                token = re.sub(r"\\(.)", r"\1", token[1:-1])
            tokens.append(Token(kind, token))
            position = match.end()
        return tokens

    def whole(self) -> LogFilter:
        """Return the parsed filter; an empty filter matches everything."""
        if not self._tokens:
            return LogFilter(lambda _: True)
        term = self._joined(0)
        if self._peek() is not None:
            raise self.error()
        return term

    def comparison(self) -> LogFilter:
        """Parse FIELD OPERATOR VALUE."""
        raise NotImplementedError

    def error(self) -> FilterError:
        """Return an error that points to the next token."""
        token = self._peek()
        where = f"near {token.text[:SHOWN]!r}" if token else "at the end"
        return FilterError(f"{self.prefix}: {self.text!r}, {where}.")

    def accept(self, kind: str, text: str) -> bool:
        """Skip the next token if it has this kind and text; return whether it was skipped."""
        if self._peek() == (kind, text):
            self._next += 1
            return True
        return False

    def take(self, *kinds: str) -> str:
        """Return the next token, which must have one of these kinds."""
        token = self._peek()
        if token is None or token.kind not in kinds:
            raise self.error()
        self._next += 1
        return token.text

    def _peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _joined(self, level: int) -> LogFilter:
        if level == len(self.words):
            return self._term()
        word, terms = self.words[level], [self._joined(level + 1)]
        while self.accept("word", word) or (word == "AND" and self._has_neighbor()):
            terms.append(self._joined(level + 1))
        tests = [term.test for term in terms]
        if len(terms) == 1:
            return terms[0]
        if word == "OR":
            return LogFilter(lambda entry: any(test(entry) for test in tests))
        equal = {name: value for term in terms for name, value in term.equal.items()}
        return LogFilter(lambda entry: all(test(entry) for test in tests), equal)

    def _has_neighbor(self) -> bool:
        others = (None, ("op", ")"), ("word", "OR"))
        return self.joins_neighbors and self._peek() not in others

    def _term(self) -> LogFilter:
        self._depth += 1
        if self._depth > _DEPTH:
            raise FilterError(f"{self.prefix}: {self.text!r}, nested too deeply.")
        term = self._nested()
        self._depth -= 1
        return term

    def _nested(self) -> LogFilter:
        if self.accept("word", "NOT"):
            test = self._term().test
            return LogFilter(lambda entry: not test(entry))
        if self.accept("op", "("):
            term = self._joined(0)
            if not self.accept("op", ")"):
                raise self.error()
            return term
        return self.comparison()


def parse(text: str, known: Collection[str]) -> LogFilter:
    """Parse a filter whose fields must be among ``known``. Raises FilterError."""
    return _LogReader(text, known).whole()


#: Tokens of a syntax check; a comparison's value may be a function or a list in parentheses.
_SYNTAX: Final = re.compile(
    r"\s*(?:(?P<comment>--[^\n]*)|(?P<mark>[(),])|(?P<op>=~|!~|!=|>=|<=|=|>|<|:)|"
    r'(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s()=<>!:",])+))'
)


def check_syntax(text: str) -> None:
    """Raise FilterError unless the text is a valid Logging query; checks the syntax only.

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


class _LogReader(FilterReader):
    def __init__(self, text: str, known: Collection[str]) -> None:
        super().__init__(text)
        self._known = frozenset(known)

    def comparison(self) -> LogFilter:
        name, sign, value = self.take("word"), self.take("op"), self.take("word", "string")
        if name not in self._known:
            raise FilterError(
                f"Unparseable filter: the local cloud does not support the field {name!r}."
            )
        if sign in ("=~", "!~"):
            raise FilterError(
                "Unparseable filter: the local cloud does not support regular expressions."
            )
        if name == "timestamp":
            return LogFilter(_compare_times(sign, value))
        if name == "severity" and sign in _ORDERED:
            return LogFilter(_compare_severities(sign, value))
        if sign == ":":
            return LogFilter(lambda entry: value.lower() in entry(name).lower())
        if sign in _ORDERED:
            return LogFilter(lambda entry: bool(_ORDERED[sign](entry(name), value)))
        if sign == "!=":
            return LogFilter(lambda entry: entry(name) != value)
        if sign != "=":
            raise self.error()
        return LogFilter(lambda entry: entry(name) == value, {name: value})


def _compare_times(sign: str, value: str) -> Test:
    wanted = parse_time(value)
    compare = {**_ORDERED, "=": operator.eq, "!=": operator.ne}.get(sign)
    if compare is None:
        raise FilterError(f"Unparseable filter: timestamp{sign}.")
    return lambda entry: bool(compare(parse_time(entry("timestamp")), wanted))


def _compare_severities(sign: str, value: str) -> Test:
    if value not in _SEVERITIES:
        raise FilterError(f"Unparseable filter: {value!r} is not a severity.")
    wanted = _SEVERITIES.index(value)
    return lambda entry: bool(_ORDERED[sign](_SEVERITIES.index(entry("severity")), wanted))


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time; truncates to microseconds. Raises FilterError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise FilterError(f"Unparseable filter: {text!r} is not a time.")
    try:
        return datetime.fromisoformat(text if match[1] else f"{text}Z").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FilterError(f"Unparseable filter: {text!r}: {error}.") from None
