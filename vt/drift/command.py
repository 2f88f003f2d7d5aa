"""The command line of ``vt drift``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import PreviewParseError

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob
    from vt.drift.findings import Difference, Drift


def drift(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="The stack to compare (Pulumi.STACK.yaml).")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write FILE.md and FILE.json.", metavar="FILE"),
    ] = None,
) -> None:
    """Compare the cloud with what the stack declares; changes nothing, takes no lock.

    Jobs of the stack that run and that its state does not know count as well.

    Exit code: 0 as declared, 7 it differs, 1 it could not be compared.
    """
    from infra.errors import CommandError, OperatorError
    from vt.drift import findings, report

    try:
        found = _compared(stack)
    except (CommandError, OperatorError, PreviewParseError) as reason:
        found = findings.Drift(stack, findings.Outcome.FAILED, errors=(str(reason),))
    if output is None:
        print(report.markdown(found), end="")
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        for ending, text in (("md", report.markdown(found)), ("json", report.as_json(found))):
            (output.parent / f"{output.name}.{ending}").write_text(text, encoding="utf-8")
    for error in found.errors:
        print(f"vt drift: {error}", file=sys.stderr)
    count = len(found.differences)
    print(f"vt drift: {stack}: {found.outcome.name.lower()}, {count} differ", file=sys.stderr)
    raise typer.Exit(int(found.outcome))


def _compared(stack: str) -> Drift:
    from infra.errors import CommandError
    from vt.deploy import place
    from vt.drift import findings
    from vt.engine import stacks
    from vt.jobs import orphaned as strays

    where = stacks.place(stack)
    env = place.environment(where)
    command = ["pulumi", "preview", "--refresh", "--expect-no-changes", "--json"]
    command += ["--non-interactive", "--stack", stack]
    try:
        done = subprocess.run(
            command, cwd=where.root, env=env, check=False, capture_output=True,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}.", "`make setup`") from None
    found = findings.read(stack, done.returncode, done.stdout, done.stderr)
    if found.outcome is findings.Outcome.FAILED:
        return found
    return found.and_also([_running(job, stack) for job in strays.find(where, found.ids)])


def _running(job: CustomJob, stack: str) -> Difference:
    """A job that runs, and that the stack does not know."""
    from vt.drift import findings
    from vt.jobs import orphaned as strays
    from vt.jobs import view

    return findings.Difference(
        findings.RUNS,
        strays.told(job),
        "CustomJob",
        job.name,
        (findings.Field("state", view.state(job), ""),),
        strays.way_out(job, stack),
    )
