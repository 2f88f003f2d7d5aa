"""Finds and redacts secrets in texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from vertex_training.secret_rules.names import fetches, is_secret, looks_random, strength

#: The last word of a secret's name, and the text between name and value.
_NAMED: Final = re.compile(
    r"(?P<word>(?i:pass(?:w(?:or)?d|phrase|code)?|pwd|pw|secret|credentials?|token|key|auth|"
    r"cookie|bearer|pat)(?![A-Za-z])(?:[_-]?[0-9]{1,2})?)(?![\w-])"
    r"(?P<quote>\\{0,8}[\"'])?\]?"
    # `password: str = "…"` is a Python declaration.
    r"(?:(?P<sign>[ \t]{0,8}(?::[ \t]?[A-Za-z][\w.\[\]| ]{0,40}=(?=[ \t]?[\"'])|:=|=>|=(?!=)|"
    r":(?!:))[ \t]{0,8})|"
    r"(?P<variable>\s*[,\n]\s*\\{0,8}[\"']?value\\{0,8}[\"']?\s*:\s{0,8})|"
    r"(?P<space>[ \t]{1,4}(?![-|])|,\s{0,8}(?=\\{0,8}[\"'][^-])))"
)
#: Rest of a secret's name before its last word. The characters are in reverse order.
_NAME_BEFORE: Final = re.compile(r"[\w.-]{0,80}")
_OPENING: Final = re.compile(r"[rbfuRBFU]{0,2}(?P<slashes>\\{0,8})(?P<quote>[\"'])")
#: A mapping or a list on one line that may contain the value: ``{value: hunter2}``.
_INSIDE: Final = re.compile(
    r"\{(?:[^{}\n]|\{[^{}\n]{0,300}+\}){1,600}+\}?|\[(?:[^\[\]\n]){1,600}+\]?"
)
#: A declaration of a secret, which has a description of several words and no value.
_DECLARATION: Final = re.compile(
    r"\{\s?description: ?[\"']?[A-Za-z][\w-]*(?: [\w(][\w)-]*)+[\"']?\s?\}"
)
#: An unquoted value. Quotes, brackets and separators are part of the value if more characters
#: follow: `--password=a,b`. `\n` ends a line in JSON, and `,name=` begins the next value.
_PLAIN_PARTS: Final = (
    r"(?:[^\s\"'`\\,;&)\]}]|[\"'`)\]}](?=[A-Za-z0-9])|\\(?![ntr\"'`\\])|"
    r"[,;&](?=[^\s\"'`\\,;&)\]}])(?![\w.-]{1,80}[\"']?\s?[=:]))"
)
_PLAIN_START: Final = re.compile(rf"{_PLAIN_PARTS}{{1,500}}+")
_PLAIN: Final = re.compile(rf"{_PLAIN_PARTS}++")
#: The rest of a line of YAML, without a comment.
_REST: Final = re.compile(r"[^\n]*?(?=\s*(?:\s#[^\n]*)?(?:\r?\n|\Z))")
_LINE_BEGIN: Final = re.compile(r"[\s+*-]*")
#: The next word in prose, after a lowercase word.
_GOES_ON: Final = re.compile(r" [A-Za-z]")


class SecretMatch(NamedTuple):
    """A part of a text that looks like a secret, and the name of the rule that matched."""

    start: int
    end: int
    rule: str


def secrets_of(text: str) -> list[SecretMatch]:
    """Return the secrets in a text from left to right, without overlaps."""
    matches = [SecretMatch(*span) for span in secrets(text)]
    merged: list[SecretMatch] = []
    for match in sorted([*matches, *_named_secrets(text)]):
        if merged and match.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(end=max(last.end, match.end))
        elif match.end > match.start:
            merged.append(match)
    return merged


def is_secret_variable(name: str, value: str) -> bool:
    """Return True if an environment variable is a secret, by its name or the form of its value.

    >>> is_secret_variable("DB_PASS", "hunter2"), is_secret_variable("PAD_TOKEN", "pad")
    (True, False)
    """
    return bool(value) and (is_secret(name, value, variable=True) or contains_secret(value))


def is_secret_value(name: str, value: str) -> bool:
    """Return True if the name of a field makes its value a secret."""
    return bool(value) and not fetches(value) and is_secret(name, value, variable=False)


def contains_secret(text: str) -> bool:
    """Return True if a text has a well-known token, or a value after a secret's name.

    >>> contains_secret("--db-pass=hunter2"), contains_secret("--passes=3")
    (True, False)
    """
    return bool(secrets_of(text))


def secret_words(words: Sequence[str]) -> Iterator[int]:
    """Yield the index of each word in a command line that contains a secret.

    >>> list(secret_words(["--user", "me", "--password", "hunter2"]))
    [3]
    """
    matches = secrets_of(" ".join(words))
    start, place = 0, 0
    for index, word in enumerate(words):
        end = start + len(word)
        while place < len(matches) and matches[place].end <= start:
            place += 1
        if place < len(matches) and matches[place].start < end:
            yield index
        start = end + 1


def redacted(text: str, replacement: str = "[secret]") -> str:
    """Return ``text`` with a replacement for each part that looks like a secret.

    >>> redacted("git clone https://me:hunter2@example.com/x.git")
    'git clone https://me:[secret]@example.com/x.git'
    >>> redacted("train --password=hunter2 --passes=3")
    'train --password=[secret] --passes=3'
    """
    return _replaced(text, lambda _: replacement)


def masked(line: str) -> str:
    """Return ``line`` with an asterisk for each character of a secret.

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
    place = 0
    while match := _NAMED.search(text, place):
        place = match.end() if match["sign"] else match.start() + 1
        before = _NAME_BEFORE.match(text[max(0, match.start() - 80) : match.start()][::-1])
        assert before is not None  # the match may be empty
        start = match.start() - before.end()
        name = text[start : match.end("word")].lstrip("-.")
        if (strong := strength(name)) and (value := _value(text, match, start, name, strong)):
            yield SecretMatch(*value, "secret-by-name")
            place = max(place, value[1])


def _value(
    text: str, match: re.Match[str], start: int, name: str, strong: str
) -> tuple[int, int] | None:
    """Return the start and the end of the value after a name, if the value is a secret."""
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
    if text[start - 1 : start] == "/" and re.match(rf"{re.escape(name)}(?!\w)", value, re.I):
        return None  # a Pulumi type, like `gcp:storage/hmacKey:HmacKey`
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
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    slashes, begin = len(opening["slashes"]), opening.end()
    for closing in re.compile(rf"(\\*)({opening['quote']})|\n").finditer(text, begin):
        if closing[2] is None:
            return None
        count = len(closing[1])
        if max(0, count - slashes) % (2 * (slashes + 1)) == 0:
            # Additional backslashes before the quote's own are escapes in the value.
            return begin, closing.end() - 1 - min(count, slashes)
    return None


def _structure(text: str, at: int) -> tuple[int, int] | None:
    inside = _INSIDE.match(text, at)
    if inside is None or text.startswith(("{{", "[secret]"), at):
        return None
    if _DECLARATION.match(text, at) and not any(map(looks_random, inside[0].split())):
        return None
    return (at, inside.end()) if re.search(r"\w", inside[0]) else None


_FORMS: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    (resources.files("vertex_training.secret_rules") / "tokens.toml").read_text("utf-8")
)
#: Regular expressions of well-known tokens, by the name of the rule.
TOKENS: Final[dict[str, str]] = _FORMS["tokens"]
_FRAGMENTS: Final = {
    # Separators between words of a command: in a shell, or in a list in JSON or YAML.
    "<SEP>": r"[\s\"',\\]{1,8}",
    # A word of a command except options, variables and numbers.
    "<WORD>": r"(?![$<{\-]|[0-9:./]{1,40}(?![^\s\"',\\]))[^\s\"',\\]{1,200}",
}
#: Secrets that the surrounding text identifies, by the name of the rule: patterns of the text
#: before the secret and of the secret.
PLACES: Final[dict[str, list[str]]] = {
    rule: [re.sub("<SEP>|<WORD>", lambda name: _FRAGMENTS[name[0]], form) for form in forms]
    for rule, forms in _FORMS["places"].items()
}
#: Additional checks of values, for rules whose pattern is too general.
_CHECKS: Final[dict[str, Callable[[str], bool]]] = {"token-in-url": looks_random}
_KEY_LABEL: Final = r"[A-Z0-9 ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
#: Beginning of a private key.
PRIVATE_KEY: Final = rf"-----BEGIN {_KEY_LABEL}"
#: Characters after the form of a token that belong to the token.
_TAIL: Final = r"[A-Za-z0-9_.~%+/=-]*"


#: The pattern has no groups, so that `re` can exclude alternatives by their first character.
_TOKEN: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(TOKENS.values())}){_TAIL}")
_KEY: Final = re.compile(
    rf"{PRIVATE_KEY}[^\"']*?(?:-----END {_KEY_LABEL}|(?=\\?[\"'])|\Z)", re.DOTALL
)
#: Separate patterns, because `re` searches much faster for one pattern than for alternatives.
_PLACES: Final = {
    rule: re.compile(f"{before}(?P<secret>{secret}{_TAIL})")
    for rule, (before, secret) in PLACES.items()
}


def secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, rule) for each secret of a well-known form, in the order of the rules."""
    for match in _KEY.finditer(text):
        yield *match.span(), "private-key"
    for match in _TOKEN.finditer(text):
        rules = (rule for rule, form in TOKENS.items() if re.match(form, match[0]))
        yield *match.span(), next(rules, "token")
    for rule, pattern in _PLACES.items():
        for match in pattern.finditer(text):
            if rule not in _CHECKS or _CHECKS[rule](match["secret"]):
                yield *match.span("secret"), rule
