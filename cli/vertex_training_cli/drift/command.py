"""The command line of ``vt drift``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training import stack
from vertex_training.errors import CommandError, ConfigError, OperatorError, PreviewParseError
from vertex_training.settings import stack_files
from vertex_training.settings.model import AllowedMember
from vertex_training_cli import read_errors
from vertex_training_cli.drift import findings, policies, policy_clients, report
from vertex_training_cli.drift.findings import Drift, ResourceDifference
from vertex_training_cli.drift.policies import Membership
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import orphaned, view
from vertex_training_cli.jobs.service import kind_of
from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: What ``--remove`` takes: a digest, or its first characters.
DIGEST: Final = re.compile(r"[0-9a-f]{8,64}\Z")
#: Exit code: what is undeclared is not what was reviewed.
OTHER_DRIFT: Final = 3


def drift(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="The stack to compare (Pulumi.STACK.yaml).")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write FILE.md and FILE.json.", metavar="FILE"),
    ] = None,
    remove: Annotated[
        str,
        typer.Option(
            "--remove",
            help="Remove undeclared members of IAM policies: the digest that the report names.",
        ),
    ] = "",
) -> None:
    """Compare the cloud with what the stack declares; without --remove, changes nothing.

    Jobs of the stack that run and that its state does not know count as well, and so do members
    of IAM policies that the stack does not declare.

    Exit code: 0 as declared, 7 it differs, 1 it could not be compared, 3 there is other drift than
    was to be removed.
    """
    try:
        found = _compare(stack, remove)
    except (CommandError, ConfigError, OperatorError, PreviewParseError) as reason:
        errors = read_errors.explained((str(reason),))
        found = findings.Drift(stack, findings.DriftOutcome.FAILED, errors=errors)
    _write(found, output)
    for error in found.errors:
        print_line(f"vt drift: {error}")
    count = len(found.differences)
    print_line(f"vt drift: {stack}: {found.outcome.name.lower()}, {count} differ")
    raise typer.Exit(int(found.outcome))


def _write(found: Drift, output: Path | None) -> None:
    """The report to the files ``output.md`` and ``output.json``, or to stdout."""
    if output is None:
        print(report.markdown(found), end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    for ending, text in (("md", report.markdown(found)), ("json", report.as_json(found))):
        (output.parent / f"{output.name}.{ending}").write_text(text, encoding="utf-8")


def _compare(stack: str, remove: str) -> Drift:
    from vertex_training_cli.engine.preview import compare_with_cloud

    ref = stacks.find(stack)
    env = ref.deployment_environment(lambda text: print_line(f"vt: {text}"))
    done = compare_with_cloud(PulumiCli(ref.root, env), stack)
    found = findings.read(stack, done.returncode, done.stdout, done.stderr)
    if found.outcome is findings.DriftOutcome.FAILED:
        return found
    found = found.with_undeclared(_undeclared(ref, found, remove))
    jobs = orphaned.find_orphaned_jobs(ref, found.ids)
    return found.with_differences([_difference(job, stack) for job in jobs])


def _undeclared(ref: StackRef, found: Drift, remove: str) -> list[Membership]:
    """Members that the stack does not declare, after those that ``remove`` names were removed."""
    if found.declared is None:
        return []
    wanted, allowed = found.declared, _allowed(ref)
    names = dict.fromkeys((*wanted.policies, *wanted.projects))
    client = policy_clients.connect(ref) if names else None
    members = [each for name in names for each in (client.read(name) if client else None) or ()]
    left = policies.undeclared(wanted, members, allowed)
    if not remove:
        return left
    digest = policies.digest_of(left)
    if not DIGEST.match(remove) or not left or not digest.startswith(remove):
        now = f"now it is {digest[:12]}" if left else "now there is none"
        print_line(f"vt drift: {remove[:80]} is not the digest of what is undeclared; {now}.")
        print_line("Nothing was removed. Hint: read the report anew.")
        raise typer.Exit(OTHER_DRIFT)
    assert client is not None  # something is left, so something was read
    client.remove(left)
    for each in left:
        print_line(f"vt drift: removed {each.member} from {each.role} of {each.policy}")
    return []


def _allowed(ref: StackRef) -> list[AllowedMember]:
    """Exceptions of the stack file. One with mistakes allows nothing: the preview reports them."""
    try:
        raw = stack_files.read_raw(stack.SCHEMA, ref.root, ref.stack)
        return list(stack.read_settings(raw, ref.root).drift.allowed.values())
    except ConfigError:
        return []


def _difference(job: AnyJob, stack: str) -> ResourceDifference:
    """The difference that an orphaned job is."""
    return findings.ResourceDifference(
        findings.RUNS,
        orphaned.title(job),
        kind_of(job).message,
        job.name,
        (findings.PropertyDifference("state", view.state(job), ""),),
        orphaned.advice(job, stack),
    )
