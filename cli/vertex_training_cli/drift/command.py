"""Command line of ``vt drift``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vertex_training.errors import (
    CommandError,
    ConfigError,
    OperatorError,
    PreviewParseError,
    UnknownStackError,
    counted,
)
from vertex_training.settings.model import AllowedMember, DriftSettings
from vertex_training_cli import read_errors, rest
from vertex_training_cli.drift import exceptions, findings, policies, report, undeclared
from vertex_training_cli.drift.findings import Drift
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.status import print_line


def drift(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="Stack to compare (Pulumi.STACK.yaml).")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the report to FILE.md and FILE.json.", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Compare the cloud with the stack's declared resources. Changes nothing.

    Also reports undeclared members of IAM policies, undeclared resources in the stack's network,
    and jobs that run as the stack's service accounts but were not submitted by the stack.

    Exit code: 0 no drift, 7 drift, 1 the comparison failed.
    """
    try:
        result = compare_stack(stack)
    except (
        CommandError,
        ConfigError,
        OperatorError,
        PreviewParseError,
        UnknownStackError,
    ) as reason:
        errors = read_errors.explained((str(reason),))
        result = findings.Drift(stack, findings.DriftOutcome.FAILED, errors=errors)
    _write(result, output)
    for error in result.errors:
        print_line(f"vt drift: {error}")
    count = counted(len(result.differences), "difference")
    print_line(f"vt drift: {stack}: {result.outcome.name.lower()}, {count}")
    raise typer.Exit(int(result.outcome))


def _write(result: Drift, output: Path | None) -> None:
    """Write the report to the files ``output.md`` and ``output.json``, or to stdout."""
    if output is None:
        print(report.markdown(result), end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    for ending, text in (("md", report.markdown(result)), ("json", report.as_json(result))):
        (output.parent / f"{output.name}.{ending}").write_text(text, encoding="utf-8")


def compare_stack(stack: str) -> Drift:
    """Return the differences in the cloud.

    Raises:
        CommandError, ConfigError, OperatorError, PreviewParseError, UnknownStackError: the
            comparison is not possible.
    """
    from vertex_training_cli.engine.events import compare_with_cloud

    ref = stacks.find(stack)
    env = ref.deployment_environment(lambda text: print_line(f"vt: {text}"))
    done = compare_with_cloud(PulumiCli(ref.root, env), stack)
    result = findings.read(stack, done.returncode, done.stdout, done.stderr)
    if result.outcome is findings.DriftOutcome.FAILED:
        return result
    # A file with mistakes allows no exceptions. The preview has reported the mistakes.
    settings = exceptions.read_settings(ref, stack)
    drift, beside = settings.drift if settings else DriftSettings(), exceptions.find_neighbours(ref)
    listed = [
        *exceptions.of_settings(drift),
        *(exceptions.of_existing(settings) if settings else ()),
    ]
    result = result.without_looking_at(listed)
    if result.declared is not None:
        if settings:
            result = exceptions.with_project_policy(result, settings, beside)
        result = _with_members(ref, result, list(drift.allowed.values()))
    if result.network:
        parts, refused = undeclared.undeclared_parts(rest.connect(ref), result.network, result.ids)
        result = exceptions.apply(result, drift, parts).without_looking_at(refused)
    result = exceptions.apply(result, drift, result.deployed_by_hand)
    result = result.with_differences(undeclared.orphaned_jobs(ref, result.ids))
    own = result.declared.own if result.declared else ()
    jobs, not_judged = undeclared.submitted_by_hand(ref, result.ids, own, beside)
    return exceptions.apply(result, drift, jobs).without_looking_at(not_judged)


def _with_members(ref: StackRef, result: Drift, allowed: Sequence[AllowedMember]) -> Drift:
    """Add undeclared members to ``result``, and lines on members that the check does not judge."""
    assert result.declared is not None
    declared = result.declared
    names = dict.fromkeys((*declared.policies, *declared.projects))
    if not names:
        return result
    client = rest.connect(ref)
    members = [member for name in names for member in policies.read(client, name)]
    result = result.with_undeclared(policies.undeclared(declared, members, allowed))
    return result.without_looking_at(exceptions.of_projects(declared, members))
