"""Runs ``pulumi preview``: as an event stream for reviews, as one document for drift."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vertex_training.customjob.refusal_lookup import COMPARES
from vertex_training.errors import CommandError, EventParseError, PreviewError
from vertex_training.snapshots.estimate import REVIEWS
from vertex_training_cli.engine import events, plan
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.engine.pulumi_cli import PulumiCli, with_hint
from vertex_training_cli.engine.values import redact, redact_config

#: Variable with which ``preview --json`` prints events at once, including policy results. Without
#: it, the engine prints one document at the end, without policy results (pulumi/pulumi v3.259.0,
#: pkg/cmd/pulumi/operations).
STREAMING: Final = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"


@dataclass(frozen=True, slots=True)
class EventStream:
    """Output of a preview that printed events."""

    lines: tuple[str, ...]
    """The engine's events, one per line."""
    exit_code: int
    stderr: str


def stream_events(
    pulumi: PulumiCli,
    stack: str,
    *,
    policy_options: Sequence[str] = (),
    refresh: bool = False,
    save_plan: Path | None = None,
    on_event: Callable[[int], None] = lambda _: None,
) -> EventStream:
    """Preview ``stack``. Calls ``on_event`` with the number of events so far.

    ``save_plan`` is a file for the engine's plan, which ``pulumi up --plan`` is held to.

    Raises:
        PreviewError: no event came, or there is no pulumi.
    """
    try:
        command = pulumi.command("preview", "--stack", stack, "--json", "--non-interactive")
    except CommandError as error:
        raise PreviewError(str(error)) from None
    command += _options(policy_options, refresh=refresh, save_plan=save_plan)
    # The engine would hold a deployment to what tables had then.
    asks = {} if save_plan else {REVIEWS: "true"}
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        subprocess.Popen(
            command, cwd=pulumi.root, env={**pulumi.env, STREAMING: "true", **asks},
            stdout=subprocess.PIPE, stderr=stderr, text=True, encoding="utf-8", errors="replace",
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None  # a pipe was asked for
        for line in process.stdout:
            if line.strip():
                lines.append(line)
                on_event(len(lines))
        exit_code = process.wait()
        stderr.seek(0)
        message = with_hint(stderr.read().strip())
    if not lines:
        raise PreviewError(redact(message) or f"`pulumi preview` ended with exit code {exit_code}")
    return EventStream(tuple(lines), exit_code, message)


def make_plan(pulumi: PulumiCli, stack: str, **options: Any) -> Plan:
    """Preview ``stack`` as ``stream_events`` does; return a failed plan if the preview fails."""
    try:
        stream = stream_events(pulumi, stack, **options)
        preview = events.parse(stream.lines, stack)
    except (PreviewError, EventParseError) as failed:
        return plan.failed_plan(stack, str(failed))
    if stream.exit_code and not preview.errors and not preview.violations:
        preview = plan.with_error(preview, stream.stderr)
    return dataclasses.replace(preview, config=_whole_config(pulumi.root, stack, preview.config))


def _whole_config(root: Path, stack: str, shown: Mapping[str, str]) -> Mapping[str, str]:
    """Return the config in the engine's form, including included files."""
    from vertex_training.errors import ConfigError, UnknownStackError
    from vertex_training.settings import stack_files
    from vertex_training.stack import SCHEMA

    try:
        whole = stack_files.shown_config(stack_files.read_raw(SCHEMA, root, stack), SCHEMA)
    except (ConfigError, UnknownStackError, OSError):
        return shown  # the preview reports it
    return {**shown, **{key: redact_config(text) for key, text in whole.items()}}


def _options(arguments: Sequence[str], *, refresh: bool, save_plan: Path | None) -> list[str]:
    options = [*arguments, "--refresh"] if refresh else [*arguments]
    return [*options, "--save-plan", str(save_plan)] if save_plan else options


def compare_with_cloud(pulumi: PulumiCli, stack: str) -> subprocess.CompletedProcess[str]:
    """Preview ``stack`` after a refresh from the cloud; stdout is a preview document.

    A step that changes nothing has what was read of its resource, so those are asked for as well.

    Raises:
        CommandError: there is no pulumi.
    """
    options = ("--refresh", "--expect-no-changes", "--show-sames", "--json", "--stack", stack)
    comparing = PulumiCli(pulumi.root, {**pulumi.env, COMPARES: "true"})
    return comparing.capture("preview", *options)
