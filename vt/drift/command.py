"""The command line of ``vt drift``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import PreviewParseError
from vt.status import print_line

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob
    from vt.drift.findings import Drift, ResourceDifference


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
    from vt.drift import access, findings, report

    try:
        found = _compare(stack)
    except (CommandError, OperatorError, PreviewParseError) as reason:
        found = findings.Drift(
            stack, findings.DriftOutcome.FAILED, errors=access.explained((str(reason),))
        )
    if output is None:
        print(report.markdown(found), end="")
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        for ending, text in (("md", report.markdown(found)), ("json", report.as_json(found))):
            (output.parent / f"{output.name}.{ending}").write_text(text, encoding="utf-8")
    for error in found.errors:
        print_line(f"vt drift: {error}")
    count = len(found.differences)
    print_line(f"vt drift: {stack}: {found.outcome.name.lower()}, {count} differ")
    raise typer.Exit(int(found.outcome))


def _compare(stack: str) -> Drift:
    from vt.drift import findings
    from vt.engine import stacks
    from vt.engine.preview import compare_with_cloud
    from vt.engine.pulumi_cli import PulumiCli
    from vt.jobs import orphaned

    ref = stacks.find(stack)
    env = ref.deployment_environment(lambda text: print_line(f"vt: {text}"))
    done = compare_with_cloud(PulumiCli(ref.root, env), stack)
    found = findings.read(stack, done.returncode, done.stdout, done.stderr)
    if found.outcome is findings.DriftOutcome.FAILED:
        return found
    jobs = orphaned.find_orphaned_jobs(ref, found.ids)
    return found.with_differences([_difference(job, stack) for job in jobs])


def _difference(job: CustomJob, stack: str) -> ResourceDifference:
    """The difference that an orphaned job is."""
    from vt.drift import findings
    from vt.jobs import orphaned, view

    return findings.ResourceDifference(
        findings.RUNS,
        orphaned.title(job),
        "CustomJob",
        job.name,
        (findings.PropertyDifference("state", view.state(job), ""),),
        orphaned.advice(job, stack),
    )
