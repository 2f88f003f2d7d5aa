"""What ``pulumi preview --refresh --json`` found -> what differs. Pure.

The engine's document is described in pulumi/pulumi v3.259.0, pkg/display/json.go. After the
refresh, a step's old state is what the cloud has and its new inputs are what the stack declares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from infra.errors import PreviewParseError

SECRET = "[secret]"
#: What the engine writes where a value is not known before the deployment.
UNKNOWN = re.compile(r"04da6b54-80e4-46f7-96ec-b56ff0331ba9")
#: Marks a secret in serialized state (pulumi/pulumi, sdk/go/common/resource/sig).
SECRET_KEY = "4dabf18193072939515e22adb298388d"
#: Longer values are cut: the whole of it is in the state.
MAX_SHOWN = 200
#: Of a job that nothing in the state stands for; `up` would do nothing about it.
RUNS = "runs"

_KEYS = ("config", "steps", "diagnostics", "changeSummary")
_UNCHANGED = ("same", "refresh", "read", "discard")
_PART = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')


class Outcome(IntEnum):
    """What came of it; also the exit code of ``vt drift``."""

    CLEAN = 0
    FAILED = 1
    """The cloud or the state could not be read."""
    DRIFTED = 7
    """As the engine says it: changes where none were expected."""


@dataclass(frozen=True, slots=True)
class Field:
    """A property that differs. Empty text stands for one that is not there."""

    path: str
    cloud: str
    declared: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A resource that is not as declared."""

    op: str
    """What `up` would do about it: create, update, replace, delete; or `RUNS`."""
    name: str
    type: str
    id: str
    fields: tuple[Field, ...] = ()
    note: str = ""
    """What else there is to know about it."""

    @property
    def told(self) -> str:
        """The difference in a few words."""
        return {
            "create": "is declared, and is not there",
            "delete": "is there, and is not declared",
            "update": "differs",
            RUNS: "runs, and the stack does not know it",
        }.get(self.op, f"differs; `up` would {self.op} it")


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found in one stack."""

    stack: str
    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    errors: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    """Of everything in the state."""

    def and_also(self, more: Sequence[Difference]) -> Drift:
        """This, with what the engine could not see."""
        if not more:
            return self
        return replace(self, outcome=Outcome.DRIFTED, differences=(*self.differences, *more))


def read(stack: str, exit_code: int, stdout: str, stderr: str) -> Drift:
    """What the engine's answer means.

    Raises:
        PreviewParseError: it succeeded and printed something else than a preview.
    """
    document = _document(stdout)
    if document is None:
        if exit_code == 0:
            raise PreviewParseError("pulumi printed no JSON document of a preview")
        return Drift(stack, Outcome.FAILED, errors=(stderr.strip() or stdout.strip(),))
    # Either is left out where there is none: a program that fails at once has no steps.
    steps, diagnostics = document.get("steps") or [], document.get("diagnostics") or []
    if exit_code not in (Outcome.CLEAN, Outcome.DRIFTED):
        told = [d["message"].strip() for d in diagnostics if d.get("severity") == "error"]
        return Drift(stack, Outcome.FAILED, errors=tuple(told) or (stderr.strip(),))
    found = tuple(_difference(step) for step in steps if step["op"] not in _UNCHANGED)
    ids = frozenset(old["id"] for step in steps if (old := step.get("oldState") or {}).get("id"))
    found = tuple(sorted(found, key=lambda each: each.name))
    return Drift(stack, Outcome(exit_code), found, ids=ids)


def _document(stdout: str) -> dict[str, Any] | None:
    """What the engine printed, if it is the document of a preview."""
    try:
        found = json.loads(stdout)
    except ValueError:
        return None
    return found if isinstance(found, dict) and not found.keys().isdisjoint(_KEYS) else None


def _difference(step: Mapping[str, Any]) -> Difference:
    old, new = step.get("oldState") or {}, step.get("newState") or {}
    state = old or new
    type_, name = state.get("type", ""), step["urn"].rpartition("::")[2]
    paths = step.get("detailedDiff") or {}
    cloud, declared = old.get("outputs") or {}, new.get("inputs") or {}
    if not paths and step["op"] in ("update", "replace"):
        # Dynamic resources come without: their own inputs tell.
        cloud = old.get("inputs") or {}
        keys = {*cloud, *declared} - {"__provider", "__defaults"}
        paths = [f'["{key}"]' for key in sorted(keys) if cloud.get(key) != declared.get(key)]
    fields = tuple(
        Field(_plain(path), _shown(cloud, path), _shown(declared, path)) for path in sorted(paths)
    )
    return Difference(step["op"], name, type_, state.get("id", ""), fields)


def parts(path: str) -> list[str | int]:
    """Keys and indices of a property path as the engine writes it.

    >>> parts('labels.owner'), parts('rules[0]["a.b"]')
    (['labels', 'owner'], ['rules', 0, 'a.b'])
    """
    return [
        json.loads(f'"{quoted}"') if quoted else int(index) if index else plain
        for quoted, index, plain in _PART.findall(path)
    ]


def _plain(path: str) -> str:
    found = parts(path)
    return str(found[0]) if len(found) == 1 else path


def _shown(value: Any, path: str) -> str:
    """The value at ``path`` as a line of text, without secrets; empty if there is none."""
    for part in parts(path):
        if isinstance(value, Mapping) and SECRET_KEY in value:
            return SECRET
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ""
    text = value if isinstance(value, str) else json.dumps(_public(value), sort_keys=True)
    text = UNKNOWN.sub("(known after `up`)", " ".join(text.split()))
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _public(value: Any) -> Any:
    """``value`` with every secret in it replaced by a word."""
    if isinstance(value, Mapping):
        if SECRET_KEY in value:
            return SECRET
        return {key: _public(item) for key, item in value.items()}
    return [_public(item) for item in value] if isinstance(value, list) else value
