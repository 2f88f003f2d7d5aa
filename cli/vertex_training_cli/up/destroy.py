"""The command line of ``vt destroy``, and the resources in the stack's state that it deletes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from vertex_training import stack
from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC, MODEL_VERSION, SNAPSHOT
from vertex_training.errors import (
    CommandError,
    ConfigError,
    OperatorError,
    Problem,
    UnknownStackError,
    counted,
)
from vertex_training.naming import CONTROL, STAGING
from vertex_training.settings.project_files import file_name
from vertex_training_cli.console import console, print_status, table
from vertex_training_cli.engine import locks, stacks
from vertex_training_cli.engine.plan import JOBS, WITH_REQUEST, Observations, is_own
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import as_mapping, ids_in
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.objects import ObjectListing, Objects
from vertex_training_cli.jobs.observe import observe_by_name
from vertex_training_cli.review.jobs import progress

#: Suffixes of the URNs of the staging and control bucket of a stack.
OWN: Final = (f"::storage-{STAGING}", f"::storage-{CONTROL}")
_PROTECTION: Final = "vertextraining:protection:Protection"


@dataclass(frozen=True, slots=True)
class Loss:
    """One resource that a destroy deletes."""

    kind: str
    name: str
    """Name of the resource in the cloud; for a job, its name in the stack."""
    id: str
    detail: str
    protected: bool
    empties: bool = False
    """True if Pulumi deletes a bucket with its objects (``forceDestroy``)."""
    own: bool = False
    """True for the staging and control bucket of the stack."""
    teams: bool = False
    """True if a team's ``extra.py`` declares the resource."""


@dataclass(frozen=True, slots=True)
class Losses:
    """All resources that a destroy deletes, protected resources first."""

    named: tuple[Loss, ...]
    others: Counter[str]
    """Other resources, by type."""
    protected: tuple[str, ...]
    """Names of protected resources."""
    in_code: frozenset[str] = frozenset()
    """Protected resources that only code protects: jobs, and resources of ``extra.py``."""
    kept_rights: int = 0
    """Number of grants to service agents that stay in the cloud."""
    taken: tuple[str, ...] = ()
    """Removed grants whose member and resource stay. Other stacks may need these grants."""
    kept: tuple[str, ...] = ()
    """Kinds and names of resources that stay in the cloud, with the option that keeps each."""


def find_losses(deployment: Mapping[str, Any]) -> Losses:
    """Return the resources that a destroy deletes, without components and read-only resources."""
    resources = deployment.get("resources") or []
    held = [
        resource
        for resource in resources
        if not (resource.get("delete") or resource.get("external"))
    ]
    custom = [
        resource
        for resource in held
        if resource.get("custom")
        and not str(resource["type"]).startswith(("pulumi:providers:", "pulumi:pulumi:"))
    ]
    emptied = {_name(e) for e in custom if as_mapping(e.get("outputs")).get("forceDestroy")}
    losses = [(_loss(e, emptied), _stays_by(e)) for e in custom if _is_named(e)]
    order = [row.word for row in resource_types.by_token().values()]
    named = [loss for loss, option in losses if not option]
    named.sort(key=lambda loss: (order.index(loss.kind), loss.name))
    stay = sorted(f"{loss.kind} {loss.name} ({option})" for loss, option in losses if option)
    unnamed = [resource for resource in custom if not _is_named(resource)]
    left = [resource for resource in unnamed if not resource.get("retainOnDelete")]
    rights = [e for e in unnamed if resource_types.iam_kind(e["type"]) is not None]
    retained = [right for right in rights if right.get("retainOnDelete")]
    taken = [_taken(right, custom) for right in rights if not right.get("retainOnDelete")]
    kept = [e for e in held if e.get("protect") and e["type"] != _PROTECTION]
    protected = sorted(map(_name, kept))
    if not protected and any(resource.get("protect") for resource in held):
        protected = ["protection"]  # The protected resources are missing from the state.
    return Losses(
        tuple(named),
        Counter(str(resource["type"]) for resource in left),
        tuple(protected),
        frozenset(_name(e) for e in kept if e["type"] in WITH_REQUEST or not is_own(e["urn"])),
        len(retained),
        tuple(sorted(filter(None, taken))),
        tuple(stay),
    )


def _taken(right: Mapping[str, Any], custom: Sequence[Mapping[str, Any]]) -> str:
    inputs = as_mapping(right.get("inputs"))
    member, role = str(inputs.get("member") or ""), str(inputs.get("role") or "")
    on, marked, _ = str(right.get("id") or "").partition(f"/{role}/")
    own_ids = {str(resource.get("id")) for resource in custom}
    emails = {resource.rpartition("/")[2] for resource in own_ids}
    if not (member and role and marked) or member.partition(":")[2] in emails:
        return ""
    return "" if on.removeprefix("b/") in own_ids else f"{member}'s {role} on {on}"


def _stays_by(resource: Mapping[str, Any]) -> str:
    """Return the option that keeps a resource in the cloud after a destroy; empty without one."""
    if resource.get("retainOnDelete"):
        return "retainOnDelete"
    ends_by_provider = resource["type"] in WITH_REQUEST and resource.get("deletedWith")
    return "deletedWith: the job continues to run" if ends_by_provider else ""


def refusals(
    stack: str, losses: Losses, *, file_protects: bool, full: Sequence[str], orphaned: Sequence[str]
) -> list[Problem]:
    """Return reasons not to delete the stack.

    ``full`` are buckets with objects that Pulumi does not empty. ``orphaned`` are running jobs,
    each with a command to cancel the job.
    """
    file = file_name(stack)
    off = "{}, have the change reviewed and deployed, then run `vt destroy` again."
    ours = f"set `protect: false` in {file} (below `overrides` if an included file sets `protect`)"
    problems = [
        Problem(
            f"resource {name} is protected",
            hint=off.format("remove protect=True in extra.py" if name in losses.in_code else ours),
        )
        for name in losses.protected
    ]
    if file_protects and not problems:
        problems.append(
            Problem(
                f"{file} has protect: true, but no resource in the state is protected",
                hint="run `vt up` to restore the protection. To remove the protection, change the "
                "file and have the change reviewed.",
            )
        )
    emptied = "set {} on the bucket and deploy, or delete all versions of the bucket's objects."
    forced = {loss.name: "force_destroy=True (extra.py)" for loss in losses.named if loss.teams}
    problems += [
        Problem(
            f"bucket {name} is not empty",
            hint=emptied.format(forced.get(name, "forceDestroy: true")),
        )
        for name in full
    ]
    problems += [Problem(f"a running job is missing from the state: {job}") for job in orphaned]
    return problems


def _loss(resource: Mapping[str, Any], emptied: Collection[str]) -> Loss:
    row = resource_types.find(resource["type"])
    outputs, teams = resource.get("outputs") or {}, not is_own(str(resource["urn"]))
    inputs = as_mapping(resource.get("inputs"))
    submission = as_mapping(inputs.get("submission"))
    detail, bucket = _of_serving(resource), as_mapping(inputs.get("snapshot")).get("bucket")
    if resource["type"] == SNAPSHOT and bucket in emptied:
        detail = f"the snapshot's files are deleted with bucket {bucket}"
    return Loss(
        kind=row.word,
        name=str(submission.get("job") or _name(resource)),
        id=str(resource.get("id", "")),
        detail=detail or row.loss,
        protected=bool(resource.get("protect")),
        empties=bool(outputs.get("forceDestroy")),
        own=not teams and str(resource["urn"]).endswith(OWN),
        teams=teams,
    )


def _of_serving(resource: Mapping[str, Any]) -> str:
    inputs = as_mapping(resource.get("inputs"))
    if resource["type"] == MODEL_VERSION:
        kept = as_mapping(inputs.get("options")).get("onDelete") != "delete"
        return "stays in the registry" if kept else "deleted, with the files in the registry"
    if resource["type"] != ENDPOINT_TRAFFIC:
        return ""
    split = as_mapping(inputs.get("split")).items()
    shares = ", ".join(
        f"{run}: {share:g}" for run, share in split if isinstance(share, int | float)
    )
    return f"serves {shares}; later requests fail"


def _name(resource: Mapping[str, Any]) -> str:
    own = str(resource["urn"]).rpartition("::")[2]
    if resource["type"] in WITH_REQUEST or not _is_named(resource):
        return own
    outputs = resource.get("outputs") or {}
    return str(outputs.get(resource_types.find(resource["type"]).name) or own)


def _is_named(resource: Mapping[str, Any]) -> bool:
    return bool(resource_types.find(resource["type"]).loss)


#: Exit code: the destroy was refused, and nothing was deleted.
REFUSED: Final = 3
#: Exit code: the stack's name was not confirmed.
NOT_CONFIRMED: Final = 2


def destroy(
    context: typer.Context,
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="Stack to destroy. There is no default.")
    ],
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the confirmation. Requires --name.")
    ] = False,
    name: Annotated[str, typer.Option("--name", help="Name of the stack, as confirmation.")] = "",
) -> None:
    """List the resources of a stack, prompt for the stack's name, then run `pulumi destroy`.

    The command refuses to delete a stack if a resource is protected, if a bucket has objects and
    would not be emptied, or if a running job is missing from the state. To remove a protection,
    change the stack file and have the change reviewed.

    Without a terminal and without `--yes --name STACK`, the command lists the resources and deletes
    nothing. Other options are passed to `pulumi destroy`.

    Example: `vt destroy --stack dev --yes --name dev`.

    Exit code: that of pulumi; 1 the stack is in use, 2 not confirmed, 3 refused.
    """
    ref = stacks.find(stack)
    pulumi = PulumiCli(ref.root, ref.environment(print_status))
    backend = pulumi.backend_url()
    locks.clear_dead(backend, ref.pulumi_project, ref.stack, print_status)
    locks.remove_truncated(backend, ref.pulumi_project, ref.stack, print_status)
    code = destroy_stack(ref, pulumi, context.args, confirmed=_confirmation(ref.stack, yes, name))
    raise typer.Exit(code)


def destroy_stack(
    ref: StackRef, pulumi: PulumiCli, arguments: Sequence[str], confirmed: Callable[[], bool]
) -> int:
    """Return the exit code of ``vt destroy``. Lists the resources, then asks for confirmation."""
    deployment = pulumi.export_deployment(ref.stack)
    losses = find_losses(deployment)
    if not (losses.named or losses.others or losses.kept):
        print_status(f"stack {ref.stack} has no resources to destroy")
        return 0
    contents = look(ref, losses.named, ids_in(deployment))
    _show(ref, losses, contents)
    if problems := _refusals(ref, losses, contents):
        print_status(f"stack {ref.stack} was not destroyed. No resource was deleted.")
        for problem in problems:
            print_status(str(problem))
        return REFUSED
    if not confirmed():
        print_status(
            f"no resource was deleted. To destroy the stack, add `--yes --name {ref.stack}`"
        )
        return NOT_CONFIRMED
    options = ["--stack", ref.stack, "--yes", "--skip-preview"]
    code = pulumi.run_in_foreground("destroy", *options, *arguments)
    if code:
        print_status(f"`pulumi destroy` ended with exit code {code}")
    return code


def _refusals(ref: StackRef, losses: Losses, contents: Contents) -> list[Problem]:
    try:
        protects = stack.load(ref.root, ref.stack).settings.protects
    except (ConfigError, UnknownStackError, OSError):
        protects = False
    return refusals(
        ref.stack, losses, file_protects=protects,
        full=contents.full(losses.named), orphaned=contents.orphaned,
    )  # fmt: skip


def _confirmation(stack: str, yes: bool, name: str) -> Callable[[], bool]:
    def confirmed() -> bool:
        if yes or name:
            return yes and name == stack
        if not sys.stdin.isatty():
            return False
        try:
            return input(f"Type the name of the stack ({stack}) to destroy it: ").strip() == stack
        except (EOFError, KeyboardInterrupt):
            return False

    return confirmed


def _show(ref: StackRef, losses: Losses, contents: Contents) -> None:
    rows = [(loss.kind, loss.name, _detail(loss, contents)) for loss in losses.named]
    out = console()
    out.print(f"A destroy of stack {ref.stack} in project {ref.project} deletes:", style="bold")
    if rows:
        out.print(table("KIND", "NAME", "NOW", rows=rows))
    if others := losses.others.total():
        out.print(f"and {others} other resources, such as accounts, grants, APIs and packages")
    if kept := losses.kept_rights:
        many = counted(kept, "grant")
        out.print(f"kept, because other stacks may need them: {many} to Google's service agents")
    for right in losses.taken:
        out.print(f"grant removed, although another stack may declare the same grant: {right}")
    if losses.kept:
        out.print(f"kept in the cloud: {', '.join(losses.kept)}")
    if reason := contents.jobs.not_observed:
        print_status(f"job states not read: {reason}")
    if contents.not_looked:
        reason = contents.not_looked
        print_status(f"cannot check for running jobs missing from the state: {reason}")


def _detail(loss: Loss, contents: Contents) -> str:
    parts = ["protected"] if loss.protected else []
    if loss.kind in JOB_WORDS:
        now = contents.jobs.jobs.get(loss.id)
        parts.append(progress(now) if now else "state unknown")
    elif loss.kind == "bucket":
        listing = contents.buckets.get(loss.name)
        if listing is None:
            parts.append(UNKNOWN)
        elif listing.count:
            more = "more than " if listing.more else ""
            parts.append(f"{more}{counted(listing.count, 'object')}, including old versions")
        else:
            parts.append("empty")
        if loss.own and contents.keeps(loss):
            parts.append("not emptied, so the destroy fails (docs/operations.md)")
    else:
        parts.append(loss.detail)
    return "; ".join(parts)


UNKNOWN = "objects not counted"
#: Words for jobs among the resources to delete.
JOB_WORDS = frozenset(resource_types.find(type_).word for type_ in JOBS)


@dataclass(frozen=True, slots=True)
class Contents:
    """Existing jobs and objects of a stack, including jobs outside of the state."""

    jobs: Observations
    buckets: Mapping[str, ObjectListing]
    """Listings of objects by bucket, without buckets that could not be listed."""
    orphaned: tuple[str, ...]
    """Running jobs that are missing from the state, each with the command that cancels it."""
    not_looked: str = ""
    """Reason why orphaned jobs could not be listed."""

    def full(self, losses: Iterable[Loss]) -> list[str]:
        """Return buckets of the program that contain objects and that Pulumi does not empty."""
        return [loss.name for loss in losses if self.keeps(loss) and not loss.own]

    def keeps(self, loss: Loss) -> bool:
        """Return True if Cloud Storage refuses to delete this bucket."""
        listing = self.buckets.get(loss.name)
        return bool(listing and listing.count) and not loss.empties


def look(ref: StackRef, losses: Iterable[Loss], known: Collection[str]) -> Contents:
    """Read the stack's jobs and buckets. ``known`` has the job ids in the state (``known_ids``)."""
    ref.connect_clients()
    named = list(losses)
    running: list[str] = []
    reason = ""
    try:
        orphans = deployed.find_orphaned_jobs(ref, known, with_runs=True)
        cancel = f"to cancel the job: `vt jobs cancel {{}} --stack {ref.stack}`"
        running = [
            f"{deployed.orphan_title(job)}, {cancel.format(view.job_id(job))}" for job in orphans
        ]
    except (CommandError, OperatorError) as error:
        reason = str(error)
    jobs = observe_by_name(ref, [loss.id for loss in named if loss.kind in JOB_WORDS])
    bucket = resource_types.find(resource_types.BUCKET).word
    listings = dict[str, ObjectListing]()
    with suppress(OperatorError):
        objects = Objects(ref.project)
        for name in [loss.name for loss in named if loss.kind == bucket]:
            listings[name] = objects.listing(f"gs://{name}", versions=True)
    return Contents(jobs, listings, tuple(running), reason)
