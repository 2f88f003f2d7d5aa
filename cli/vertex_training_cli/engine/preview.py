"""Runs ``pulumi preview``: as a stream of events for a review, as one document for drift."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vertex_training.errors import CommandError, PreviewError
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.values import redact

#: With it, ``preview --json`` prints events as they come, policy results among them, instead of
#: one document at the end that lacks those (pulumi/pulumi v3.259.0, pkg/cmd/pulumi/operations).
STREAMING: Final = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"


@dataclass(frozen=True, slots=True)
class EventStream:
    """The output of a preview that printed events."""

    lines: tuple[str, ...]
    """The engine's events, one a line."""
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
    lines: list[str] = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        subprocess.Popen(
            command, cwd=pulumi.root, env={**pulumi.env, STREAMING: "true"},
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
        message = stderr.read().strip()
    if not lines:
        raise PreviewError(redact(message) or f"pulumi preview ended with exit code {exit_code}")
    return EventStream(tuple(lines), exit_code, message)


def _options(given: Sequence[str], *, refresh: bool, save_plan: Path | None) -> list[str]:
    options = [*given, "--refresh"] if refresh else [*given]
    return [*options, "--save-plan", str(save_plan)] if save_plan else options


def compare_with_cloud(pulumi: PulumiCli, stack: str) -> subprocess.CompletedProcess[str]:
    """Preview ``stack`` from what the cloud has; its stdout is for ``preview_document``.

    Raises:
        CommandError: there is no pulumi.
    """
    return pulumi.capture("preview", "--refresh", "--expect-no-changes", "--json", "--stack", stack)
