"""The document of ``pulumi preview --json`` -> a plan.

Without streaming, the engine prints one document at the end: pulumi/pulumi v3.259.0,
pkg/display/json.go. It keeps every step, also several of one resource.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from vertex_training.errors import PreviewParseError
from vertex_training_cli.engine.plan import (
    Diagnostic,
    Plan,
    ResourceState,
    Step,
    without_computed_labels,
)
from vertex_training_cli.engine.values import redact

#: A document has at least one of these keys.
KEYS: Final = ("config", "steps", "diagnostics", "changeSummary")


def parse(text: str, stack: str, *, succeeded: bool) -> Plan:
    """The plan for ``stack`` that the document describes. It lacks ``succeeded``.

    Raises:
        PreviewParseError: ``text`` is no such document.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.keys().isdisjoint(KEYS):
        raise PreviewParseError("pulumi printed no JSON document of a preview")
    return Plan(
        stack,
        # Both are absent where there are none: a program that fails at once has no steps.
        steps=tuple(_step(raw) for raw in document.get("steps") or ()),
        diagnostics=tuple(_diagnostic(raw) for raw in document.get("diagnostics") or ()),
        succeeded=succeeded,
    )


def _step(raw: Mapping[str, Any]) -> Step:
    old, new = raw.get("oldState") or {}, raw.get("newState") or {}
    return Step(
        op=raw["op"],
        urn=raw["urn"],
        type=(old or new).get("type", ""),
        old=ResourceState.parse(old),
        new=ResourceState.parse(new),
        paths=without_computed_labels(raw.get("detailedDiff") or ()),
    )


def _diagnostic(raw: Mapping[str, Any]) -> Diagnostic:
    message = redact(raw.get("message", "")).strip()
    return Diagnostic(raw.get("severity", "info"), message, raw.get("urn", ""))
