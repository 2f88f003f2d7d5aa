"""The engine's events -> a plan: what happens to each resource, what was said, what policies found.

The events are lines of ``PULUMI_ENABLE_STREAMING_JSON_PREVIEW=1 pulumi preview --json``, each an
``apitype.EngineEvent`` (pulumi/pulumi v3.259.0, sdk/go/common/apitype/events.go). They carry what
the one document at the end leaves out: policy results, and everything up to a failure.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.errors import EventParseError
from vt.engine import values

#: Steps that only show a part of a replacement, of which the engine also sends the whole.
PARTS = ("create-replacement", "delete-replaced")
#: Steps that change nothing.
UNCHANGED = ("same", "read", "refresh")
#: What is no resource of the cloud: it groups others.
PROVIDER = "pulumi:providers:"
STACK = "pulumi:pulumi:Stack"
JOB = "pulumi-python:dynamic/vertex:CustomJob"


@dataclass(frozen=True, slots=True)
class State:
    """A resource before or after a step, with values as they may be shown."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    protect: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one resource."""

    op: str
    """create, update, replace, delete, same; rarely others of the engine's."""
    urn: str
    type: str
    old: State | None
    new: State | None
    keys: tuple[str, ...] = ()
    """Inputs that force the replacement, as far as the provider says."""
    paths: tuple[str, ...] = ()
    """Properties that the provider says will change."""

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return self.urn.rpartition("::")[2]

    @property
    def changes(self) -> bool:
        """Whether the resource is not the same afterwards."""
        return self.op not in UNCHANGED

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its inputs after the step, or before it if it is deleted."""
        state = self.new or self.old
        return state.inputs if state else {}

    @property
    def custom(self) -> bool:
        """Whether it is a thing in the cloud, not a component, a provider or the stack."""
        component = self.type.startswith("vertextraining:")
        return not (component or self.type == STACK or self.type.startswith(PROVIDER))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that was said to the user."""

    severity: str
    """error, warning or info."""
    message: str
    urn: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """What a policy found."""

    policy: str
    pack: str
    level: str
    """mandatory (nothing may be deployed), advisory, remediate."""
    message: str
    urn: str = ""
    severity: str = ""

    @property
    def forbids(self) -> bool:
        """Whether nothing is deployed because of it."""
        return self.level == "mandatory"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one preview told."""

    stack: str
    config: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    violations: tuple[Violation, ...] = ()
    packs: Mapping[str, str] = field(default_factory=dict)
    """Policy packs that looked at the plan, with their versions."""
    policies: frozenset[str] = frozenset()
    """Names of the policies that looked at a resource."""
    succeeded: bool = False
    """Whether the preview came to its end without an error."""

    @property
    def changed(self) -> tuple[Step, ...]:
        """Steps that change a resource of the cloud."""
        return tuple(step for step in self.steps if step.changes and step.custom)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """What went wrong."""
        return tuple(each for each in self.diagnostics if each.severity == "error")


def parse(lines: Iterable[str], stack: str) -> Plan:
    """The plan for ``stack`` that the events tell.

    Raises:
        EventParseError: a line is not an engine event.
    """
    reader = _Reader()
    for line in lines:
        if line.strip():
            reader.read(_event(line))
    return reader.plan(stack)


def failed(stack: str, reason: str) -> Plan:
    """The plan of a preview that told nothing but ``reason``."""
    return Plan(stack, diagnostics=(Diagnostic("error", values.shown(reason)),))


def with_error(plan: Plan, reason: str) -> Plan:
    """The plan of a preview that failed for a ``reason`` none of its events tells."""
    error = Diagnostic("error", values.shown(reason))
    return dataclasses.replace(plan, diagnostics=(*plan.diagnostics, error), succeeded=False)


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        event = None
    if not isinstance(event, dict) or "sequence" not in event:
        raise EventParseError(f"not an engine event: {line.strip()[:80]}")
    return event


class _Reader:
    """Collects events, one at a time."""

    def __init__(self) -> None:
        self.config: dict[str, str] = {}
        self.steps: dict[str, Step] = {}
        self.parts: dict[str, Step] = {}
        self.diagnostics: dict[Diagnostic, None] = {}
        self.violations: dict[Violation, None] = {}
        self.packs: dict[str, str] = {}
        self.policies: set[str] = set()
        self.succeeded = False

    def read(self, event: Mapping[str, Any]) -> None:
        if prelude := event.get("preludeEvent"):
            self.config = {key: values.shown(text) for key, text in prelude["config"].items()}
        elif said := event.get("diagnosticEvent"):
            self._diagnostic(said)
        elif before := event.get("resourcePreEvent"):
            self._step(before["metadata"])
        elif found := event.get("policyEvent"):
            self._violation(found)
        elif looked := event.get("policyAnalyzeSummaryEvent") or event.get(
            "policyAnalyzeStackSummaryEvent"
        ):
            self.packs[looked["policyPackName"]] = looked.get("policyPackVersion", "")
            self.policies |= {*(looked.get("passed") or ()), *(looked.get("failed") or ())}
        elif summary := event.get("summaryEvent"):
            # A pack of this machine is called NAME|local|FOLDER.
            for name, version in (summary.get("PolicyPacks") or {}).items():
                self.packs.setdefault(name.partition("|")[0], version)
            self.succeeded = summary.get("result", "succeeded") == "succeeded"
        elif failed := event.get("errorEvent"):
            self.diagnostics[Diagnostic("error", values.shown(failed["error"]).strip())] = None

    def plan(self, stack: str) -> Plan:
        # A part stands for itself where the whole is missing: what an earlier run left to delete.
        left = {urn: step for urn, step in self.parts.items() if urn not in self.steps}
        failed = any(each.severity == "error" for each in self.diagnostics)
        return Plan(
            stack=stack,
            config=self.config,
            steps=(*self.steps.values(), *left.values()),
            diagnostics=tuple(self.diagnostics),
            violations=tuple(self.violations),
            packs=self.packs,
            policies=frozenset(self.policies),
            succeeded=self.succeeded and not failed,
        )

    def _diagnostic(self, said: Mapping[str, Any]) -> None:
        severity = said.get("severity", "info").partition("#")[0]
        message = values.shown(said.get("message", "")).strip()
        noise = severity == "debug" or not message or message.startswith("using pulumi-")
        if not noise and not said.get("ephemeral"):
            self.diagnostics[Diagnostic(severity, message, said.get("urn", ""))] = None

    def _violation(self, found: Mapping[str, Any]) -> None:
        violation = Violation(
            policy=found["policyName"],
            pack=found.get("policyPackName", ""),
            level=found.get("enforcementLevel", ""),
            message=values.shown(found.get("message", "")).strip(),
            urn=found.get("resourceUrn", ""),
            severity=found.get("severity", ""),
        )
        self.violations[violation] = None

    def _step(self, metadata: Mapping[str, Any]) -> None:
        step = Step(
            op=metadata["op"],
            urn=metadata["urn"],
            type=metadata["type"],
            old=_state(metadata.get("old")),
            new=_state(metadata.get("new")),
            keys=tuple(metadata.get("keys") or ()),
            paths=tuple(metadata.get("detailedDiff") or metadata.get("diffs") or ()),
        )
        (self.parts if step.op in PARTS else self.steps)[step.urn] = step


def _state(raw: Mapping[str, Any] | None) -> State | None:
    if not raw:
        return None
    return State(
        inputs=values.shown(raw.get("inputs") or {}),
        outputs=values.shown(raw.get("outputs") or {}),
        protect=bool(raw.get("protect")),
    )
