"""What a run showed, without what is a project's own: states, shapes, codes, seconds. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from vertex_training_cli.engine.plan import PROVIDER, STACK, UNCHANGED
from vertex_training_cli.engine.values import redact

#: Of a subject: aspect -> states, shapes or texts, or a number.
Aspects = dict[str, Any]
#: Step -> subject -> aspects.
Observations = dict[str, dict[str, Aspects]]
#: Replaces what is a project's own in a text.
Normalise = Callable[[str], str]

#: Maps whose keys are the user's, and what stands for all of them.
_OWN_KEYS: Final = re.compile(r"labels|annotations|metadata", re.IGNORECASE)
#: Deeper fields are not told apart.
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


def normaliser(own: Mapping[str, str]) -> Normalise:
    """Replaces each key of ``own`` (a project's id) by its value, and all ids by ``N``."""
    words = sorted(filter(None, own), key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])" for word in words))

    def normalise(text: str) -> str:
        return _IDS.sub("N", pattern.sub(lambda match: own[match[0]], text))

    return normalise


def shape(value: Any, path: str = "", depth: int = 0) -> set[str]:
    """The fields of a document with the kinds of their values; empty ones are left out.

    >>> sorted(shape({"name": "x", "pools": [{"count": 1}, {"size": 2.5}], "labels": {"a": "b"}}))
    ['labels: map', 'name: text', 'pools[].count: number', 'pools[].size: number']
    """
    if value in (None, "", [], {}):
        return set()
    if isinstance(value, Mapping) and not _OWN_KEYS.search(path.rpartition(".")[2]):
        if depth < _MAX_DEPTH:
            found = (
                shape(item, f"{path}.{key}" if path else str(key), depth + 1)
                for key, item in value.items()
                if not str(key).startswith("__")
            )
            return set().union(*found)
    elif isinstance(value, list):
        return set().union(*(shape(item, f"{path}[]", depth + 1) for item in value))
    return {f"{path}: {_kind(value)}"}


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "map"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "text"


def error_text(text: str, normalise: Normalise) -> str:
    """One line about an error: its codes, then its first words."""
    codes = {code for match in _CODES.finditer(text) for code in match.groups() if code}
    line = " ".join(normalise(text).split())
    shown = line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
    return f"{', '.join(sorted(codes))}: {shown}" if codes else shown


class EventReader:
    """Collects the observations of one ``pulumi`` command from its events."""

    def __init__(self, normalise: Normalise) -> None:
        self._normalise = normalise
        self.resources: dict[str, Aspects] = {}
        """By type."""
        self.messages: dict[str, list[str]] = {"errors": [], "warnings": []}
        self.changes: set[str] = set()
        """What was not left alone: ``create TYPE``."""

    def add(self, event: Mapping[str, Any]) -> None:
        """Take one engine event."""
        if done := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
            self._add_resource(done["metadata"], failed="resOpFailedEvent" in event)
        elif said := event.get("diagnosticEvent"):
            self._add_message(said)
        elif failed := event.get("errorEvent"):
            self._add_message({"severity": "error", "message": failed["error"]})

    def _add_resource(self, metadata: Mapping[str, Any], *, failed: bool) -> None:
        op, type_ = metadata["op"], metadata["type"]
        if type_ == STACK or type_.startswith((PROVIDER, "vertextraining:")):
            return
        if op not in UNCHANGED:
            self.changes.add(f"{op} {type_}")
        aspects = self.resources.setdefault(type_, {"operations": [], "outputs": []})
        words = f"{op} failed" if failed else op
        aspects["operations"] = sorted({*aspects["operations"], words})
        outputs = (metadata.get("new") or {}).get("outputs") or {}
        aspects["outputs"] = sorted({*aspects["outputs"], *shape(redact(outputs))})

    def _add_message(self, said: Mapping[str, Any]) -> None:
        found = self.messages.get(f"{said.get('severity', '').partition('#')[0]}s")
        text = error_text(said.get("message", ""), self._normalise)
        if found is None or said.get("ephemeral") or not text or text.startswith("using pulumi-"):
            return
        if text not in found:
            found.append(text)


def job_aspects(documents: Iterable[Mapping[str, Any]], normalise: Normalise) -> Aspects:
    """What the polled documents of one job show: states in their order, fields, error, seconds."""
    states: list[str] = []
    fields: set[str] = set()
    last: Mapping[str, Any] = {}
    for last in documents:
        state = str(last.get("state", "")).removeprefix("JOB_STATE_")
        states += [state] if states[-1:] != [state] else []
        fields |= shape(last)
    created, started, ended = (
        _seconds(last.get(f"{key}Time")) for key in ("create", "start", "end")
    )
    if started is not None and states[0] not in ("PENDING", "QUEUED"):
        states.insert(0, "PENDING")  # no poll was as quick
    found: Aspects = {"states": states, "fields": sorted(fields)}
    if message := (last.get("error") or {}).get("message"):
        found["errors"] = [error_text(message, normalise)]
    if created is not None and started is not None:
        found["seconds until it ran"] = round(started - created, 1)
    if started is not None and ended is not None:
        found["seconds that it ran"] = round(ended - started, 1)
    return found


def _seconds(timestamp: object) -> float | None:
    from datetime import datetime

    return datetime.fromisoformat(str(timestamp)).timestamp() if timestamp else None
