"""Run ``pulumi preview``, and parse its output into a plan: a stream of events, or one document.

Events are defined in pulumi/pulumi v3.259.0, sdk/go/common/apitype/events.go, the document in
pkg/display/json.go. The document has no policy results, and only events precede a failure.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vertex_training.customjob.refusal_lookup import COMPARES
from vertex_training.errors import CommandError, EventParseError, PreviewError, PreviewParseError
from vertex_training.snapshots.estimate import REVIEWS
from vertex_training_cli.engine.plan import (
    PARTS,
    Diagnostic,
    Plan,
    PolicyViolation,
    ResourceState,
    Step,
    with_error,
    without_computed_labels,
)
from vertex_training_cli.engine.pulumi_cli import PulumiCli, with_hint
from vertex_training_cli.engine.values import redact, redact_config

#: The engine's last message after any failure. The message contains no reason.
LAST_WORDS: Final = "preview failed"


def parse(lines: Iterable[str], stack: str) -> Plan:
    """Return the plan for ``stack`` in the engine's events."""
    builder = _PlanBuilder()
    for line in lines:
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            event = None
        if not isinstance(event, dict) or "sequence" not in event:
            raise EventParseError(f"line is not an engine event: {redact(line.strip())[:80]}")
        builder.add(event)
    return builder.build(stack)


class _PlanBuilder:
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
            # The name of a policy pack on this machine is NAME|local|FOLDER.
            for name, version in (summary.get("PolicyPacks") or {}).items():
                self.packs.setdefault(name.partition("|")[0], version)
            self.succeeded = summary.get("result", "succeeded") == "succeeded"
        elif failed := event.get("errorEvent"):
            self.diagnostics[Diagnostic("error", redact(failed["error"]).strip())] = None

    def build(self, stack: str) -> Plan:
        # A part without a whole replacement is the rest of an interrupted run.
        left = {urn: step for urn, step in self.parts.items() if urn not in self.steps}
        failed = any(diagnostic.severity == "error" for diagnostic in self.diagnostics)
        # A mandatory violation explains the failure.
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
        is_other = before and (old is None or old.inputs != before.inputs)
        paths = metadata.get("detailedDiff") or metadata.get("diffs") or ()
        (self.parts if metadata["op"] in PARTS else self.steps)[urn] = Step(
            op=metadata["op"],
            urn=urn,
            type=metadata["type"],
            old=old,
            new=ResourceState.parse(metadata.get("new")),
            keys=tuple(metadata.get("keys") or ()),
            paths=without_computed_labels(paths),
            deployed=before if is_other else None,
        )


#: Keys of a preview document, which has at least one of these.
DOCUMENT_KEYS: Final = ("config", "steps", "diagnostics", "changeSummary")


def parse_document(text: str, stack: str, *, succeeded: bool) -> Plan:
    """Return the plan for ``stack`` in a preview document. ``succeeded``: the preview succeeded."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.keys().isdisjoint(DOCUMENT_KEYS):
        raise PreviewParseError("`pulumi preview --json` printed no valid JSON document")
    return Plan(
        stack,
        steps=tuple(_document_step(raw) for raw in document.get("steps") or ()),
        diagnostics=tuple(
            Diagnostic(
                raw.get("severity", "info"),
                redact(raw.get("message", "")).strip(),
                raw.get("urn", ""),
            )
            for raw in document.get("diagnostics") or ()
        ),
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


#: Environment variable that makes ``preview --json`` print events instead of one document
#: (pulumi/pulumi v3.259.0, pkg/cmd/pulumi/operations).
STREAMING: Final = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"


def stream_events(
    pulumi: PulumiCli,
    stack: str,
    *,
    policy_options: Sequence[str] = (),
    refresh: bool = False,
    save_plan: Path | None = None,
    on_event: Callable[[int], None] = lambda _: None,
) -> tuple[list[str], int, str]:
    """Preview ``stack``, and return the engine's events, exit code and error output.

    Calls ``on_event`` with the number of events so far.
    """
    try:
        command = pulumi.command("preview", "--stack", stack, "--json", "--non-interactive")
    except CommandError as error:
        raise PreviewError(str(error)) from None
    command += [*policy_options, "--refresh"] if refresh else [*policy_options]
    command += ["--save-plan", str(save_plan)] if save_plan else []
    # A saved plan must not contain estimates, which may change before the deployment.
    asks = {} if save_plan else {REVIEWS: "true"}
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        subprocess.Popen(
            command, cwd=pulumi.root, env={**pulumi.env, STREAMING: "true", **asks},
            stdout=subprocess.PIPE, stderr=stderr, text=True, encoding="utf-8", errors="replace",
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip():
                lines.append(line)
                on_event(len(lines))
        exit_code = process.wait()
        stderr.seek(0)
        message = with_hint(stderr.read().strip())
    if not lines:
        raise PreviewError(redact(message) or f"`pulumi preview` ended with exit code {exit_code}")
    return lines, exit_code, message


def make_plan(pulumi: PulumiCli, stack: str, **options: Any) -> Plan:
    """Preview ``stack`` as ``stream_events`` does; return a failed plan if the preview fails."""
    try:
        lines, exit_code, stderr = stream_events(pulumi, stack, **options)
        preview = parse(lines, stack)
    except (PreviewError, EventParseError) as failed:
        return with_error(Plan(stack), str(failed))
    if exit_code and not preview.errors and not preview.violations:
        preview = with_error(preview, stderr)
    return dataclasses.replace(preview, config=_whole_config(pulumi.root, stack, preview.config))


def _whole_config(root: Path, stack: str, shown: Mapping[str, str]) -> Mapping[str, str]:
    from vertex_training.errors import ConfigError, UnknownStackError
    from vertex_training.settings import stack_files
    from vertex_training.stack import SCHEMA

    try:
        whole = stack_files.shown_config(stack_files.read_raw(SCHEMA, root, stack), SCHEMA)
    except (ConfigError, UnknownStackError, OSError):
        return shown  # The preview reports the error.
    return {**shown, **{key: redact_config(text) for key, text in whole.items()}}


def compare_with_cloud(pulumi: PulumiCli, stack: str) -> subprocess.CompletedProcess[str]:
    """Preview ``stack`` after a refresh from the cloud; stdout is a preview document."""
    options = ("--refresh", "--expect-no-changes", "--show-sames", "--json", "--stack", stack)
    return pulumi.with_variables(**{COMPARES: "true"}).capture("preview", *options)
