"""Parses the output of ``pulumi preview --json`` into a plan: an event stream, or one document.

The events are lines of ``PULUMI_ENABLE_STREAMING_JSON_PREVIEW=1 pulumi preview --json``, each an
``apitype.EngineEvent`` (pulumi/pulumi v3.259.0, sdk/go/common/apitype/events.go). They have what
the document (pkg/display/json.go) lacks: policy results, and everything up to a failure. The
document keeps every step, also several of one resource.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vertex_training.errors import EventParseError, PreviewParseError
from vertex_training_cli.engine.plan import (
    PARTS,
    Diagnostic,
    Plan,
    PolicyViolation,
    ResourceState,
    Step,
    without_computed_labels,
)
from vertex_training_cli.engine.values import redact, redact_config

#: The engine's last message after any failure, also of a policy. It contains no reason.
LAST_WORDS: Final = "preview failed"


def parse(lines: Iterable[str], stack: str) -> Plan:
    """Return the plan for ``stack`` in the engine's events.

    Raises:
        EventParseError: a line is not an engine event.
    """
    builder = _PlanBuilder()
    for line in lines:
        if line.strip():
            builder.add(_event(line))
    return builder.build(stack)


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        event = None
    if not isinstance(event, dict) or "sequence" not in event:
        raise EventParseError(f"line is not an engine event: {redact(line.strip())[:80]}")
    return event


class _PlanBuilder:
    """Builds a plan, one event at a time."""

    def __init__(self) -> None:
        self.config: dict[str, str] = {}
        self.steps: dict[str, Step] = {}
        self.parts: dict[str, Step] = {}
        self.refreshed: dict[str, ResourceState | None] = {}
        self.diagnostics: dict[Diagnostic, None] = {}
        self.violations: dict[PolicyViolation, None] = {}
        self.packs: dict[str, str] = {}
        self.policies: set[str] = set()
        self.succeeded = False

    def add(self, event: Mapping[str, Any]) -> None:
        if prelude := event.get("preludeEvent"):
            self.config = {key: redact_config(text) for key, text in prelude["config"].items()}
        elif diagnostic := event.get("diagnosticEvent"):
            self._add_diagnostic(diagnostic)
        elif step := event.get("resourcePreEvent"):
            self._add_step(step["metadata"])
        elif violation := event.get("policyEvent"):
            self._add_violation(violation)
        elif policies := event.get("policyAnalyzeSummaryEvent") or event.get(
            "policyAnalyzeStackSummaryEvent"
        ):
            self.packs[policies["policyPackName"]] = policies.get("policyPackVersion", "")
            self.policies |= {*(policies.get("passed") or ()), *(policies.get("failed") or ())}
        elif summary := event.get("summaryEvent"):
            # A pack of this machine is called NAME|local|FOLDER.
            for name, version in (summary.get("PolicyPacks") or {}).items():
                self.packs.setdefault(name.partition("|")[0], version)
            self.succeeded = summary.get("result", "succeeded") == "succeeded"
        elif failed := event.get("errorEvent"):
            self.diagnostics[Diagnostic("error", redact(failed["error"]).strip())] = None

    def build(self, stack: str) -> Plan:
        # A part without its whole counts as a step: an earlier run left something to delete.
        left = {urn: step for urn, step in self.parts.items() if urn not in self.steps}
        failed = any(diagnostic.severity == "error" for diagnostic in self.diagnostics)
        # A violation that stops the deployment is the reason, and has a text of its own.
        explained = any(violation.is_mandatory for violation in self.violations)
        messages = (d for d in self.diagnostics if not (explained and d.message == LAST_WORDS))
        return Plan(
            stack=stack,
            config=self.config,
            steps=(*self.steps.values(), *left.values()),
            diagnostics=tuple(messages),
            violations=tuple(self.violations),
            packs=self.packs,
            policies=frozenset(self.policies),
            succeeded=self.succeeded and not failed,
        )

    def _add_diagnostic(self, raw: Mapping[str, Any]) -> None:
        severity = raw.get("severity", "info").partition("#")[0]
        message = redact(raw.get("message", "")).strip()
        noise = severity == "debug" or not message or message.startswith("using pulumi-")
        if not noise and not raw.get("ephemeral"):
            self.diagnostics[Diagnostic(severity, message, raw.get("urn", ""))] = None

    def _add_violation(self, raw: Mapping[str, Any]) -> None:
        violation = PolicyViolation(
            policy=raw["policyName"],
            pack=raw.get("policyPackName", ""),
            level=raw.get("enforcementLevel", ""),
            message=redact(raw.get("message", "")).strip(),
            urn=raw.get("resourceUrn", ""),
            severity=raw.get("severity", ""),
        )
        self.violations[violation] = None

    def _add_step(self, metadata: Mapping[str, Any]) -> None:
        urn, old = metadata["urn"], ResourceState.parse(metadata.get("old"))
        if metadata["op"] == "refresh":
            self.refreshed[urn] = old
        before = self.refreshed.get(urn)
        step = Step(
            op=metadata["op"],
            urn=urn,
            type=metadata["type"],
            old=old,
            new=ResourceState.parse(metadata.get("new")),
            keys=tuple(metadata.get("keys") or ()),
            paths=without_computed_labels(
                metadata.get("detailedDiff") or metadata.get("diffs") or ()
            ),
            deployed=before if before and (old is None or old.inputs != before.inputs) else None,
        )
        (self.parts if step.op in PARTS else self.steps)[step.urn] = step


#: Keys of a preview document, which has at least one of these.
DOCUMENT_KEYS: Final = ("config", "steps", "diagnostics", "changeSummary")


def parse_document(text: str, stack: str, *, succeeded: bool) -> Plan:
    """Return the plan for ``stack`` in a preview document. ``succeeded``: the preview succeeded.

    Raises:
        PreviewParseError: ``text`` is no such document.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.keys().isdisjoint(DOCUMENT_KEYS):
        raise PreviewParseError("pulumi printed no JSON document for the preview")
    return Plan(
        stack,
        # Both are absent where there are none: a program that fails at once has no steps.
        steps=tuple(_document_step(raw) for raw in document.get("steps") or ()),
        diagnostics=tuple(_document_diagnostic(raw) for raw in document.get("diagnostics") or ()),
        succeeded=succeeded,
    )


def _document_step(raw: Mapping[str, Any]) -> Step:
    old, new = raw.get("oldState") or {}, raw.get("newState") or {}
    return Step(
        op=raw["op"],
        urn=raw["urn"],
        type=(old or new).get("type", ""),
        old=ResourceState.parse(old),
        new=ResourceState.parse(new),
        paths=without_computed_labels(raw.get("detailedDiff") or ()),
    )


def _document_diagnostic(raw: Mapping[str, Any]) -> Diagnostic:
    message = redact(raw.get("message", "")).strip()
    return Diagnostic(raw.get("severity", "info"), message, raw.get("urn", ""))
