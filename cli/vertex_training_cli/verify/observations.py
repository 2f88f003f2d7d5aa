"""Observations of a run as lines without names of the project: fields, states, codes. Pure."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from vertex_training_cli.engine.values import redact

#: Maps whose keys are the user's, and what stands for all of them.
_OWN_KEYS: Final = re.compile(r"labels|annotations|metadata", re.IGNORECASE)
#: Deeper fields are not distinguished.
_MAX_DEPTH: Final = 6
#: Ids, digests and numbers that no two runs share.
_IDS: Final = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b|\d{4,}")
#: How errors name themselves: HTTP statuses of Google's libraries, and gRPC's codes.
_CODES: Final = re.compile(
    r"\bError (?:code )?([45]\d\d)\b|\b([45]\d\d) (?=[A-Z])|\b(CANCELLED|UNKNOWN|INVALID_ARGUMENT|"
    r"DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|RESOURCE_EXHAUSTED|"
    r"FAILED_PRECONDITION|ABORTED|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|UNAUTHENTICATED)\b"
)
_SHOWN: Final = 160
_MAIL: Final = re.compile(
    r"[A-Za-z0-9._%+'-]{1,64}@(?![A-Za-z0-9.-]{0,200}gserviceaccount\.com)"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}"
)
_DOMAIN: Final = re.compile(r"\bdomain:[A-Za-z0-9.-]{1,253}")
_BILLING: Final = re.compile(r"\b[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}\b")
#: Where a project is named, by its id or number; a project of Google's own is no
#: secret, and ``gcp:projects/service:Service`` is a type of resources.
_PROJECT: Final = re.compile(
    r"(?:(?<!gcp:)\bprojects/|\bdocker\.pkg\.dev/)"
    r"((?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|[0-9]{6,19})(?=[/\"'\s:]|$)"
    r"|@((?!gcp-sa-)[a-z][a-z0-9-]{4,28}[a-z0-9])\.iam\.gserviceaccount\.com"
)
_GOOGLES: Final = "vertex-ai"
#: What stands for an e-mail address and the like.
ACCOUNT: Final = "[account]"


def normaliser(own: Mapping[str, str]) -> Callable[[str], str]:
    """Return what takes secrets, people, ids and names of projects out of a text.

    Each key of ``own`` becomes its value. Other projects are ``PROJECT-2`` and so on, also where
    they are named alone after that.
    """
    known = {word: stands for word, stands in own.items() if word}
    others = itertools.count(2)

    def normalise(text: str) -> str:
        text = _DOMAIN.sub(f"domain:{ACCOUNT}", str(redact(text)))
        for pattern in (_MAIL, _BILLING):
            text = pattern.sub(ACCOUNT, text)
        for match in _PROJECT.finditer(text):
            name = match[1] or match[2]
            if name != _GOOGLES and name not in known:
                known[name] = f"PROJECT-{next(others)}"
        words = sorted(known, key=len, reverse=True)
        names = "|".join(rf"(?<![a-z0-9]){re.escape(word)}(?![A-Za-z0-9])" for word in words)
        text = re.sub(names, lambda match: known[match[0]], text) if words else text
        return _IDS.sub("N", text)

    return normalise


def shape(value: Any, path: str = "", depth: int = 0) -> set[str]:
    """Return the fields of a document with the kinds of their values, without empty ones.

    >>> sorted(shape({"name": "x", "pools": [{"count": 1}, {"size": 2.5}], "labels": {"a": "b"}}))
    ['labels: map', 'name: text', 'pools[].count: number', 'pools[].size: number']
    """
    if value in (None, "", [], {}):
        return set()
    if isinstance(value, Mapping) and not _OWN_KEYS.search(path.rpartition(".")[2]):
        if depth < _MAX_DEPTH:
            shapes = (
                shape(item, f"{path}.{key}" if path else str(key), depth + 1)
                for key, item in value.items()
                if not str(key).startswith("__")
            )
            return set().union(*shapes)
    elif isinstance(value, list):
        return set().union(*(shape(item, f"{path}[]", depth + 1) for item in value))
    return {f"{path}: {_kind(value)}"}


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "map"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "text"


def error_text(text: str, normalise: Callable[[str], str]) -> str:
    """Return one line about an error: its codes, then its first words."""
    codes = {code for match in _CODES.finditer(text) for code in match.groups() if code}
    line = " ".join(normalise(text).split())
    shown = line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
    return f"{', '.join(sorted(codes))}: {shown}" if codes else shown


def differences(rehearsed: Iterable[str], observed: Iterable[str]) -> Iterator[str]:
    """Yield the lines that one of both has alone: ``-`` rehearsed, ``+`` observed.

    Steps that were not reached are left out.
    """
    now = sorted(observed)
    reached = {line.partition(" | ")[0] for line in now}
    before = sorted(line for line in rehearsed if line.partition(" | ")[0] in reached)
    yield from (line for line in difflib.ndiff(before, now) if line.startswith(("- ", "+ ")))
