"""Finds secrets in files to upload: parts of images and packages, objects and data."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from vertex_training.errors import Location, Problem
from vertex_training.secret_rules.names import looks_random
from vertex_training.secret_rules.redaction import SecretMatch, secrets_of

#: Maximum number of scanned bytes of a file, and in total. A scan takes 0.2 seconds for each MiB.
#: Secrets are usually in small files, and reports list skipped files.
MAX_FILE: Final = 2**20
MAX_TOTAL: Final = 16 * 2**20
#: First bytes of compressed files: zip, gzip, bzip2, xz, zstd, 7z, RAR.
COMPRESSED: Final = (
    *(b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
    *(b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"),
)
#: Names of key files.
_KEY_FILES: Final = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.pypirc|\.git-credentials|\.vault-token|"
    r".*\.(?:p12|pfx|jks|keystore|kdbx|ppk)"
)
#: Names of settings files. Values in these files have no quotes.
_SETTINGS: Final = re.compile(
    r"\.?env(?:\..*)?|.*\.(?:env|ini|cfg|conf|toml|properties|ya?ml|sh|bash)|Dockerfile(?:\..*)?"
)
#: Printable text in a binary file, or the end of a line.
_PRINTED: Final = re.compile(rb"[\t\r\n -~]{6,}|\n")
#: Characters of a token in code.
_TOKEN: Final = re.compile(r"[\w+/=.~:@-]{8,}")
#: A line of a private key.
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{20}")
#: Placeholders that examples have instead of a secret.
_PLACEHOLDER: Final = re.compile(
    r"(?:my|your|the|some|a)[-_ ]\w*|(?:my|your|the|some)[A-Za-z]*|x{3,}.*|\.{3}|change[-_]?me|"
    r"example\w*|dummy|fake\w*|test\w*|"
    r"placeholder|to-?do|pass(?:word|wd)?|pwd?|secret|token|user(?:name)?|foo|bar|str(?:ing)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class File:
    """A file to upload."""

    name: str
    """Name of the file in messages: the path from the top of the checkout, with ``/``."""
    size: int
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of a scan of files."""

    problems: tuple[Problem, ...]
    """A problem with file and line for each secret that is not allowed."""
    unscanned: tuple[str, ...] = ()
    """Names of the skipped files, which are too large or compressed."""

    @property
    def note(self) -> str:
        """Return a line about the skipped files; empty if no file was skipped."""
        if not self.unscanned:
            return ""
        count = len(self.unscanned) - 1
        more = f" and {count} more" if count else ""
        mib, total = MAX_FILE >> 20, MAX_TOTAL >> 20
        limits = f"compressed, larger than {mib} MiB, or above {total} MiB in total"
        return f"skipped by the secret scan ({limits}): {self.unscanned[0]}{more}"


def scan(files: Iterable[File], allowed: Container[str]) -> Scan:
    """Scan files for secrets, except files and lines (``FILE:LINE``) in ``allowed``.

    Raises:
        OSError: a file cannot be read.
    """
    problems: list[Problem] = []
    unscanned: list[str] = []
    left = MAX_TOTAL
    for file in files:
        if file.name in allowed:
            continue
        if _KEY_FILES.fullmatch(PurePosixPath(file.name).name):
            problems.append(_problem(file.name, 0, "key-file"))
        elif file.size > min(MAX_FILE, left):
            unscanned.append(file.name)
        else:
            left -= file.size
            data = file.read()
            if data.startswith(COMPRESSED):
                unscanned.append(file.name)
            secrets = secret_lines(file.name, data).items()
            problems += [
                _problem(file.name, line, rule)
                for line, rule in secrets
                if f"{file.name}:{line}" not in allowed
            ]
    return Scan(tuple(problems), tuple(unscanned))


def secret_lines(name: str, data: bytes) -> dict[int, str]:
    """Return the rule of the first secret on each line, by line number."""
    lines: dict[int, str] = {}
    for text in _texts(data):
        line, place = 1, 0
        for secret in secrets_of(text):
            if _is_secret_in_file(PurePosixPath(name).name, text, secret):
                line, place = line + text.count("\n", place, secret.start), secret.start
                lines.setdefault(line, secret.rule)
    return lines


def _texts(data: bytes) -> Iterator[str]:
    """Yield the texts to scan in a file.

    Removing null bytes converts UTF-16 and UTF-32 to text. Replacing null bytes by blanks separates
    the texts of a binary file.
    """
    if b"\0" not in data:
        yield data.decode("utf-8", errors="replace")
        return
    for zero in (b"", b" "):
        left = re.sub(rb"\0+", zero, data)
        try:
            yield left.decode("utf-8")
        except UnicodeDecodeError:
            yield b" ".join(_PRINTED.findall(left)).decode("ascii")


def _is_secret_in_file(name: str, text: str, secret: SecretMatch) -> bool:
    value = text[secret.start : secret.end]
    if _PLACEHOLDER.fullmatch(value) or value.startswith(("{", "[", "%", "<")):
        return False
    if secret.rule == "private-key":  # code that reads or writes a key has only the first line
        return _KEY_BODY.search(value[:500]) is not None
    if secret.rule == "password-in-url":
        return not text.startswith(("@localhost", "@127.", "@example", "@host"), secret.end)
    if secret.rule != "secret-by-name" or _SETTINGS.fullmatch(name):
        return True
    quoted = text[secret.start - 1] in "\"'"
    random = _TOKEN.fullmatch(value) and looks_random(value)
    return quoted and (name.endswith(".json") or bool(random))


def _problem(name: str, line: int, rule: str) -> Problem:
    location = Location(name, line)
    hint = "read the secret from Secret Manager, or remove the file. If the text is not a secret, "
    hint += f'add allowedSecrets: {{"{location}": reason}} to the stack file'
    what = f"this text looks like a secret and would be uploaded ({rule})"
    return Problem(what, "", hint, (), location)
