"""Command line of ``vt drift``, and differences that the stack file or other stacks allow.

Neighbors are other stacks of the checkout in the same project.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from vertex_training import stack
from vertex_training.errors import TrainingError, counted
from vertex_training.settings import project_files
from vertex_training.settings.model import AllowedMember, DriftSettings, Settings
from vertex_training_cli import rest
from vertex_training_cli.console import print_line, print_status
from vertex_training_cli.drift import findings, policies, undeclared
from vertex_training_cli.drift.findings import Drift, ResourceDifference
from vertex_training_cli.drift.policies import Declared, Membership
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.plan import explained
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.options import ReportFile, write_reports


def drift(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="Stack to compare (Pulumi.STACK.yaml).")
    ],
    output: ReportFile = None,
) -> None:
    """Compare Google Cloud with the stack's declared resources. The command changes nothing.

    The report also lists undeclared members of IAM policies, undeclared resources in the stack's
    network, and jobs that run as the stack's service accounts but were not submitted by the stack.

    Exit code: 0 no drift, 7 drift, 1 the comparison failed.
    """
    try:
        result = compare_stack(stack)
    except TrainingError as reason:
        errors = explained((str(reason),))
        result = findings.Drift(stack, findings.DriftOutcome.FAILED, errors=errors)
    if output is None:
        print(findings.markdown(result), end="")
    else:
        write_reports(output, md=findings.markdown(result), json=findings.as_json(result))
    for error in result.errors:
        print_line(f"vt drift: {error}")
    count = counted(len(result.differences), "difference")
    print_line(f"vt drift: {stack}: {result.outcome.name.lower()}, {count}")
    raise typer.Exit(int(result.outcome))


def compare_stack(stack: str) -> Drift:
    """Return the differences between the cloud and a stack."""
    from vertex_training_cli.engine.events import compare_with_cloud

    ref = stacks.find(stack)
    env = ref.deployment_environment(print_status)
    done = compare_with_cloud(PulumiCli(ref.root, env), stack)
    result = findings.read(stack, done.returncode, done.stdout, done.stderr)
    if result.outcome is findings.DriftOutcome.FAILED:
        return result
    # The preview has reported mistakes of the file. Without a valid file, no exception applies.
    settings = read_settings(ref, stack)
    drift, beside = settings.drift if settings else DriftSettings(), find_neighbours(ref)
    listed = [*lines_of_exceptions(drift), *(lines_of_existing(settings) if settings else ())]
    result = result.without_looking_at(listed)
    if result.declared is not None:
        if settings:
            result = with_project_policy(result, settings, beside)
        result = _with_members(ref, result, list(drift.allowed.values()))
    if result.network:
        parts, refused = undeclared.undeclared_parts(rest.connect(ref), result.network, result.ids)
        result = apply_exceptions(result, drift, parts).without_looking_at(refused)
    result = apply_exceptions(result, drift, result.deployed_by_hand)
    result = result.with_differences(undeclared.orphaned_jobs(ref, result.ids))
    own = result.declared.own if result.declared else ()
    jobs, not_judged = undeclared.submitted_by_hand(ref, result.ids, own, beside)
    return apply_exceptions(result, drift, jobs).without_looking_at(not_judged)


def _with_members(ref: StackRef, result: Drift, allowed: Sequence[AllowedMember]) -> Drift:
    assert result.declared is not None
    declared = result.declared
    names = dict.fromkeys((*declared.policies, *declared.projects))
    if not names:
        return result
    client = rest.connect(ref)
    members = [member for name in names for member in policies.read(client, name)]
    result = result.with_undeclared(policies.undeclared(declared, members, allowed))
    return result.without_looking_at(lines_of_projects(declared, members))


def lines_of_exceptions(settings: DriftSettings) -> list[str]:
    """Return a line for each exception in the stack file."""
    members = (
        f"allowed: {exception.member} with {exception.role} on {exception.policy} "
        f"({exception.reason})"
        for exception in settings.allowed.values()
    )
    resources = (
        f"allowed: {resource.resource} ({resource.reason})"
        for resource in settings.allowed_resources.values()
    )
    return [*members, *resources]


def lines_of_existing(settings: Settings) -> list[str]:
    """Return a line for each existing resource that the stack uses but does not create."""
    sections = {
        "bucket": settings.buckets.values(),
        "account": settings.service_accounts.values(),
        "secret": settings.secrets.values(),
        "repository": [settings.registry],
        "network": [settings.network],
    }
    return [
        f"{word} {entry.existing}: managed outside the stack, except for the stack's grants"
        for word, entries in sections.items()
        for entry in entries
        if entry.existing
    ]


def lines_of_projects(declared: Declared, memberships: Sequence[Membership]) -> list[str]:
    """Return a line for each project role with members that the check does not judge."""
    by_role: dict[tuple[str, str], list[str]] = {}
    for other in declared.others(memberships):
        by_role.setdefault((other.policy, other.role), []).append(other.member)
    return [
        f"{policy}: {role} of {', '.join(members)} (drift.projectPolicy: own)"
        for (policy, role), members in by_role.items()
    ]


def apply_exceptions(
    report: Drift, settings: DriftSettings, differences: Sequence[ResourceDifference]
) -> Drift:
    """Add ``differences`` to ``report``, except for those that the stack file allows."""
    remaining, allowed = list[ResourceDifference](), list[str]()
    for difference in differences:
        reasons = (
            entry.reason
            for entry in settings.allowed_resources.values()
            if fnmatch.fnmatchcase(difference.resource, entry.resource)
        )
        reason = next(reasons, None)
        if reason is None:
            remaining.append(difference)
        else:
            allowed.append(f"allowed: {difference.resource}, {difference.id} ({reason})")
    return report.with_differences(remaining).without_looking_at(allowed)


#: Stack of the same project -> members that the stack declares in the project's policy; None if
#: the stack's file has mistakes.
Neighbours = Mapping[str, frozenset[Membership] | None]


def find_neighbours(ref: StackRef) -> Neighbours:
    """Return the neighbors, including stacks whose project is unknown."""
    by_stack: dict[str, frozenset[Membership] | None] = {}
    for name in project_files.names(ref.root):
        if name == ref.stack:
            continue
        settings = read_settings(ref, name)
        if settings is None:
            by_stack[name] = None
        elif settings.project == ref.project:
            by_stack[name] = frozenset(_on_project(ref, settings))
    return by_stack


def read_settings(ref: StackRef, name: str) -> Settings | None:
    """Return the settings of a stack in the checkout; None if its file has mistakes."""
    try:
        return stack.settings_of(ref.root, name)
    except TrainingError:
        return None


def with_project_policy(report: Drift, settings: Settings, beside: Neighbours) -> Drift:
    """Return ``report``; judge all members of the project's policy if the settings require it."""
    if report.declared is None:
        return report
    number = settings.project_number
    if settings.drift.project_policy == "own":
        return replace(report, declared=replace(report.declared, project_number=number))
    members = [member for members in beside.values() for member in members or ()]
    judged = report.declared.with_project(settings.project, number, members)
    unread = [
        f"members that stack {name} declares on the project, because its stack file is not valid"
        for name, members in beside.items()
        if members is None
    ]
    return replace(report, declared=judged).without_looking_at(unread)


def _on_project(ref: StackRef, settings: Settings) -> Iterator[Membership]:
    declared = stack.Stack(settings, ref.root, {}, stack.SCHEMA)
    for grant in declared.grants({}):
        if not grant.resource and grant.ours:
            condition = grant.condition.expression if grant.condition else ""
            yield Membership(f"projects/{grant.project}", grant.role, grant.member, condition)
