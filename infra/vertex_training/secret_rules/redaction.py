"""The secrets of a text, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from vertex_training.secret_rules import forms
from vertex_training.secret_rules.names import fetches, is_secret, looks_random, strength

#: The last word of a secret's name, and what stands between the name and its value.
_NAMED: Final = re.compile(
    r"(?P<word>(?i:pass(?:w(?:or)?d|phrase|code)?|pwd|pw|secret|credentials?|token|key|auth|"
    r"cookie|bearer|pat)(?![A-Za-z])(?:[_-]?[0-9]{1,2})?)(?![\w-])"
    r"(?P<quote>\\{0,8}[\"'])?\]?"
    # `password: str = "…"` is a declaration of Python's.
    r"(?:(?P<sign>[ \t]{0,8}(?::[ \t]?[A-Za-z][\w.\[\]| ]{0,40}=(?=[ \t]?[\"'])|:=|=>|=(?!=)|"
    r":(?!:))[ \t]{0,8})|"
    r"(?P<variable>\s*[,\n]\s*\\{0,8}[\"']?value\\{0,8}[\"']?\s*:\s{0,8})|"
    r"(?P<space>[ \t]{1,4}(?![-|])|,\s{0,8}(?=\\{0,8}[\"'][^-])))"
)
#: The name up to that word, read backwards.
_NAME_BEFORE: Final = re.compile(r"[\w.-]{0,80}")
_OPENING: Final = re.compile(r"[rbfuRBFU]{0,2}(?P<slashes>\\{0,8})(?P<quote>[\"'])")
#: A mapping or list of one line, in which the value may stand: ``{value: hunter2}``.
_INSIDE: Final = re.compile(
    r"\{(?:[^{}\n]|\{[^{}\n]{0,300}+\}){1,600}+\}?|\[(?:[^\[\]\n]){1,600}+\]?"
)
#: A value without quotes. What closes a text or a list, and what parts a list, is part of it where
#: it goes on: `--password=a,b`. `\n` is a line's end in JSON, and `,name=` begins the next one.
_PLAIN_PARTS: Final = (
    r"(?:[^\s\"'`\\,;&)\]}]|[\"'`)\]}](?=[A-Za-z0-9])|\\(?![ntr\"'`\\])|"
    r"[,;&](?=[^\s\"'`\\,;&)\]}])(?![\w.-]{1,80}[\"']?\s?[=:]))"
)
_PLAIN_START: Final = re.compile(rf"{_PLAIN_PARTS}{{1,500}}+")
_PLAIN: Final = re.compile(rf"{_PLAIN_PARTS}++")
#: The rest of a line of YAML, without a comment.
_REST: Final = re.compile(r"[^\n]*?(?=\s*(?:\s#[^\n]*)?(?:\r?\n|\Z))")
_LINE_BEGIN: Final = re.compile(r"[\s+*-]*")
#: After a word of prose.
_GOES_ON: Final = re.compile(r" [A-Za-z]")


class SecretMatch(NamedTuple):
    """A part of a text that looks like a secret, and the name of the rule that found it."""

    start: int
    end: int
    rule: str


def secrets_of(text: str) -> list[SecretMatch]:
    """The secrets of a text from the left, none inside of another one."""
    found = [SecretMatch(*each) for each in forms.secrets(text)]
    found = sorted([*found, *_named_secrets(text)])
    apart: list[SecretMatch] = []
    for each in found:
        if apart and each.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = last._replace(end=max(last.end, each.end))
        elif each.end > each.start:
            apart.append(each)
    return apart


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable holds a secret, by its name or by the form of its value.

    >>> is_secret_variable("DB_PASS", "hunter2"), is_secret_variable("PAD_TOKEN", "pad")
    (True, False)
    """
    return bool(value) and (is_secret(name, value, variable=True) or contains_secret(value))


def is_secret_value(name: str, value: str) -> bool:
    """Whether a field holds a secret by its name, which need not be a variable's."""
    return bool(value) and not fetches(value) and is_secret(name, value, variable=False)


def contains_secret(text: str) -> bool:
    """Whether a text holds a secret: a well-known form, or a value after a secret's name.

    >>> contains_secret("--db-pass=hunter2"), contains_secret("--passes=3")
    (True, False)
    """
    return bool(secrets_of(text))


def secret_words(words: Sequence[str]) -> Iterator[int]:
    """Indices of the words of a command line that hold a secret.

    >>> list(secret_words(["--user", "me", "--password", "hunter2"]))
    [3]
    """
    found = secrets_of(" ".join(words))
    start, place = 0, 0
    for index, word in enumerate(words):
        end = start + len(word)
        while place < len(found) and found[place].end <= start:
            place += 1
        if place < len(found) and found[place].start < end:
            yield index
        start = end + 1


def redacted(text: str, replacement: str = "[secret]") -> str:
    """``text`` with every part that looks like a secret replaced.

    >>> redacted("git clone https://me:hunter2@example.com/x.git")
    'git clone https://me:[secret]@example.com/x.git'
    >>> redacted("train --password=hunter2 --passes=3")
    'train --password=[secret] --passes=3'
    """
    return _replaced(text, lambda _: replacement)


def masked(line: str) -> str:
    """``line`` of a file with what looks like a secret masked by asterisks. Keeps its length.

    >>> masked("env: [{name: DB_PASSWORD, value: hunter2}]")
    'env: [{name: DB_PASSWORD, value: *******}]'
    >>> masked("  id-token: write")
    '  id-token: write'
    """
    return _replaced(line, lambda secret: "*" * (secret.end - secret.start))


def _replaced(text: str, stands_for: Callable[[SecretMatch], str]) -> str:
    parts, place = list[str](), 0
    for secret in secrets_of(text):
        parts += [text[place : secret.start], stands_for(secret)]
        place = secret.end
    return "".join([*parts, text[place:]]) if parts else text


def _named_secrets(text: str) -> Iterator[SecretMatch]:
    """Values that stand after the name of a secret."""
    place = 0
    while match := _NAMED.search(text, place):
        place = match.end() if match["sign"] else match.start() + 1
        before = _NAME_BEFORE.match(text[max(0, match.start() - 80) : match.start()][::-1])
        assert before is not None  # it may be empty
        start = match.start() - before.end()
        name = text[start : match.end("word")].lstrip("-.")
        if (strong := strength(name)) and (found := _value(text, match, start, name, strong)):
            yield SecretMatch(*found, "secret-by-name")
            place = max(place, found[1])


def _value(
    text: str, match: re.Match[str], start: int, name: str, strong: str
) -> tuple[int, int] | None:
    """Where the value after a name begins and ends, if it is a secret."""
    option, at = text[start] == "-", match.end()
    quoted = _quoted(text, at)
    if match["space"] and not option and not (quoted and match["quote"]):
        return None
    if quoted:
        begin, end, is_plain = *quoted, False
    elif text[at : at + 1] in ("{", "["):
        certain = strong == "sure" or match["variable"]
        return _structure(text, at) if certain else None
    elif plain := _PLAIN_START.match(text, at):
        begin, end, is_plain = at, plain.end(), True
    else:
        return None
    value = text[begin:end]
    variable = bool(match["variable"]) or (match["sign"] == "=" and name.isupper())
    pair = bool(match["space"]) and not option
    if (is_plain and fetches(value)) or value.startswith(("$", "<", "`")):
        return None
    if not is_secret(name, value, variable=variable) or (pair and not looks_random(value)):
        return None
    if not is_plain:
        return begin, end
    whole = _PLAIN.match(text, at)
    end = whole.end() if whole else end
    if match["sign"] and match["sign"].strip() == ":":
        line = text[max(0, start - 200) : start].rpartition("\n")[2]
        if not _LINE_BEGIN.fullmatch(line):
            prose = value.isalpha() and value.islower() and _GOES_ON.match(text, end)
            return None if prose else (begin, end)
        if strong == "sure" and (rest := _REST.match(text, end)):
            end = rest.end()
    return begin, end


def _quoted(text: str, at: int) -> tuple[int, int] | None:
    """Begin and end of what stands between quotes of one line, however often they are escaped."""
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    slashes, begin = len(opening["slashes"]), opening.end()
    for closing in re.compile(rf"(\\*)({opening['quote']})|\n").finditer(text, begin):
        if closing[2] is None:
            return None
        count = len(closing[1])
        if max(0, count - slashes) % (2 * (slashes + 1)) == 0:
            # Of more than the quote's own, the first are escapes that belong to the value.
            return begin, closing.end() - 1 - min(count, slashes)
    return None


def _structure(text: str, at: int) -> tuple[int, int] | None:
    inside = _INSIDE.match(text, at)
    if inside is None or text.startswith(("{{", "[secret]"), at):
        return None
    return (at, inside.end()) if re.search(r"\w", inside[0]) else None
