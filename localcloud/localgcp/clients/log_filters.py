"""Parse filters of Cloud Logging; list filters of other APIs use the same parser."""

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
#: Maximum characters of a filter in an error.
SHOWN: Final = 200


class Token(NamedTuple):
    """A token of the kind ``word``, ``string`` (without quotes) or ``op``."""

    kind: str
    text: str


@dataclass(frozen=True)
class LogFilter:
    """A parsed filter."""

    test: Test
    """Returns whether an entry matches the filter."""
    equal: dict[str, str] = field(default_factory=dict[str, str])
    """Field -> value of all matching entries, from comparisons with ``=`` outside of OR."""


class FilterReader:
    """Parses a filter; a subclass parses comparisons. Raises FilterError."""

    #: Operators between terms, from the lowest precedence.
    words: tuple[str, str] = ("OR", "AND")
    #: True if a missing operator between two terms means AND.
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
        """Return an error that names the next token."""
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
        ends = (None, ("op", ")"), ("word", "OR"))
        while self.accept("word", word) or (
            word == "AND" and self.joins_neighbors and self._peek() not in ends
        ):
            terms.append(self._joined(level + 1))
        tests = [term.test for term in terms]
        if len(terms) == 1:
            return terms[0]
        if word == "OR":
            return LogFilter(lambda entry: any(test(entry) for test in tests))
        equal = {name: value for term in terms for name, value in term.equal.items()}
        return LogFilter(lambda entry: all(test(entry) for test in tests), equal)

    def _term(self) -> LogFilter:
        self._depth += 1
        if self._depth > 20:
            raise FilterError(f"{self.prefix}: {self.text!r}, nested too deeply.")
        if self.accept("word", "NOT"):
            test = self._term().test
            term = LogFilter(lambda entry: not test(entry))
        elif self.accept("op", "("):
            term = self._joined(0)
            if not self.accept("op", ")"):
                raise self.error()
        else:
            term = self.comparison()
        self._depth -= 1
        return term


def parse(text: str, known: Collection[str]) -> LogFilter:
    """Return a parsed filter, in which only the fields ``known`` may occur. Raises FilterError."""
    return _LogReader(text, known).whole()


#: Tokens of ``check_syntax``. A value may be a function or a list in parentheses.
_SYNTAX: Final = re.compile(
    r"\s*(?:(?P<comment>--[^\n]*)|(?P<mark>[(),])|(?P<op>=~|!~|!=|>=|<=|=|>|<|:)|"
    r'(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s()=<>!:",])+))'
)


def check_syntax(text: str) -> None:
    """Check the operators, parentheses and quotes of a Logging query. Raises FilterError."""
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
            text = f"the local cloud does not support the field {name!r}."
            raise FilterError(f"Unparseable filter: {text}")
        if sign in ("=~", "!~"):
            text = "the local cloud does not support regular expressions."
            raise FilterError(f"Unparseable filter: {text}")
        if name == "timestamp":
            time = parse_time(value)
            compare = {**_ORDERED, "=": operator.eq, "!=": operator.ne}.get(sign)
            if compare is None:
                raise FilterError(f"Unparseable filter: timestamp{sign}.")
            return LogFilter(lambda entry: bool(compare(parse_time(entry(name)), time)))
        if name == "severity" and sign in _ORDERED:
            if value not in _SEVERITIES:
                raise FilterError(f"Unparseable filter: {value!r} is not a severity.")
            rank = _SEVERITIES.index
            return LogFilter(lambda entry: bool(_ORDERED[sign](rank(entry(name)), rank(value))))
        if sign == ":":
            return LogFilter(lambda entry: value.lower() in entry(name).lower())
        if sign in _ORDERED:
            return LogFilter(lambda entry: bool(_ORDERED[sign](entry(name), value)))
        if sign == "!=":
            return LogFilter(lambda entry: entry(name) != value)
        if sign != "=":
            raise self.error()
        return LogFilter(lambda entry: entry(name) == value, {name: value})


def parse_time(text: str) -> datetime:
    """Return an RFC 3339 time, truncated to microseconds. Raises FilterError."""
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?"
    match = re.fullmatch(form, text)
    if match is None:
        raise FilterError(f"Unparseable filter: {text!r} is not a time.")
    try:
        return datetime.fromisoformat(text if match[1] else f"{text}Z").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FilterError(f"Unparseable filter: {text!r}: {error}.") from None
