"""What a stack would lose if it were destroyed, from its state. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC, MODEL_VERSION, SNAPSHOT
from vertex_training.errors import Problem
from vertex_training.naming import CONTROL, STAGING
from vertex_training.settings.project_files import file_name
from vertex_training_cli.engine.plan import WITH_REQUEST, is_own
from vertex_training_cli.engine.values import as_mapping

#: Ends of the URNs of the two buckets that every stack has for itself.
OWN: Final = (f"::storage-{STAGING}", f"::storage-{CONTROL}")
_PROTECTION: Final = "vertextraining:protection:Protection"


@dataclass(frozen=True, slots=True)
class Loss:
    """One resource that would be lost."""

    kind: str
    name: str
    """Its name in the cloud; of a job, in the stack."""
    id: str
    detail: str
    protected: bool
    empties: bool = False
    """True if Pulumi deletes a bucket with its objects (``forceDestroy``)."""
    own: bool = False
    """True if it is one of the two buckets that the stack has for itself."""
    teams: bool = False
    """True if a team's ``extra.py`` declares it."""


@dataclass(frozen=True, slots=True)
class Losses:
    """All that would be lost, what is protected first of all."""

    named: tuple[Loss, ...]
    others: Counter[str]
    """Other resources, by type."""
    protected: tuple[str, ...]
    """Names of the resources that refuse to go."""
    in_code: frozenset[str] = frozenset()
    """Those of them that no stack file protects: what a team declares, and jobs."""
    kept_rights: int = 0
    """Number of rights of service agents stay in the cloud."""
    taken: tuple[str, ...] = ()
    """Rights that go from things and members that both stay: other stacks may grant the same."""
    kept: tuple[str, ...] = ()
    """Kinds and names of what would be a loss, and stays in the cloud, with the option for it."""


def find_losses(deployment: Mapping[str, Any]) -> Losses:
    """What the deployment of a state holds. Components and what is only read hold nothing."""
    resources = deployment.get("resources") or []
    found = [each for each in resources if not (each.get("delete") or each.get("external"))]
    custom = [each for each in found if each.get("custom") and not _is_provider(each)]
    emptied = {_name(e) for e in custom if as_mapping(e.get("outputs")).get("forceDestroy")}
    holding = [each for each in custom if _is_named(each)]
    named = [_loss(each, emptied) for each in holding if not _stays_by(each)]
    stay = [(_loss(each, ()), _stays_by(each)) for each in holding if _stays_by(each)]
    unnamed = [each for each in custom if not _is_named(each)]
    others = Counter(str(each["type"]) for each in unnamed if not each.get("retainOnDelete"))
    rights = [each for each in unnamed if resource_types.iam_kind(each["type"]) is not None]
    retained = sum(1 for each in rights if each.get("retainOnDelete"))
    kept = [each for each in found if each.get("protect") and each["type"] != _PROTECTION]
    protected = [_name(each) for each in kept]
    in_code = frozenset(_name(e) for e in kept if e["type"] in WITH_REQUEST or not is_own(e["urn"]))
    if not protected and any(each.get("protect") for each in found):
        protected = ["protection"]  # what it stood for has left the state
    order = [row.word for row in resource_types.by_token().values()]
    named.sort(key=lambda loss: (order.index(loss.kind), loss.name))
    names = tuple(sorted(f"{loss.kind} {loss.name} ({option})" for loss, option in stay))
    left = [each for each in rights if not each.get("retainOnDelete")]
    taken = tuple(sorted(filter(None, (_taken(each, custom) for each in left))))
    return Losses(tuple(named), others, tuple(sorted(protected)), in_code, retained, taken, names)


def _taken(right: Mapping[str, Any], custom: Sequence[Mapping[str, Any]]) -> str:
    """``MEMBER's ROLE on RESOURCE``; empty if the stack makes the member or the resource."""
    inputs = as_mapping(right.get("inputs"))
    member, role = str(inputs.get("member") or ""), str(inputs.get("role") or "")
    on, marked, _ = str(right.get("id") or "").partition(f"/{role}/")
    made = {str(each.get("id")) for each in custom}
    emails = {each.rpartition("/")[2] for each in made}
    if not (member and role and marked) or member.partition(":")[2] in emails:
        return ""
    return "" if on.removeprefix("b/") in made else f"{member}'s {role} on {on}"


def _stays_by(resource: Mapping[str, Any]) -> str:
    """The option by which a destroy leaves a resource in the cloud; empty if it does not.

    What is ``deletedWith`` another resource is not deleted by its provider. Buckets end with what
    they are in, jobs with nothing: they run on.
    """
    if resource.get("retainOnDelete"):
        return "retainOnDelete"
    ends_by_provider = resource["type"] in WITH_REQUEST and resource.get("deletedWith")
    return "deletedWith: it runs on" if ends_by_provider else ""


def refusals(
    stack: str,
    losses: Losses,
    *,
    file_protects: bool,
    full: Sequence[str],
    orphaned: Sequence[str],
    hints: Mapping[str, str] | None = None,
) -> list[Problem]:
    """Return why nothing of the stack may go yet; empty if all may.

    ``hints``: what takes a resource's protection away, by its name in the cloud.
    ``full`` are buckets with objects that Pulumi does not empty. ``orphaned`` are jobs that run,
    with what to do about each.
    """
    file = file_name(stack)
    off = "{}, have it reviewed and deployed, then run this again."
    ours, theirs = f"set protect: false in {file}", "take protect=True from it in extra.py"
    found = [
        Problem(
            f"{name} is protected",
            hint=off.format(theirs if name in losses.in_code else (hints or {}).get(name, ours)),
        )
        for name in losses.protected
    ]
    if file_protects and not found:
        found.append(
            Problem(
                f"{file} has protect: true, and the state has lost it",
                hint="`vt up` brings it back. Taking it away is a reviewed change of the file.",
            )
        )
    emptied = "deploy {} on it, or remove its objects and their old versions."
    forced = {loss.name: "force_destroy=True (extra.py)" for loss in losses.named if loss.teams}
    found += [
        Problem(
            f"bucket {name} has objects",
            hint=emptied.format(forced.get(name, "forceDestroy: true")),
        )
        for name in full
    ]
    found += [Problem(f"a job runs that the state does not have: {job}") for job in orphaned]
    return found


def _loss(resource: Mapping[str, Any], emptied: Collection[str]) -> Loss:
    row = resource_types.find(resource["type"])
    outputs, teams = resource.get("outputs") or {}, not is_own(str(resource["urn"]))
    submission = as_mapping(as_mapping(resource.get("inputs")).get("submission"))
    return Loss(
        kind=row.word,
        name=str(submission.get("job") or _name(resource)),
        id=str(resource.get("id", "")),
        detail=_of_serving(resource) or _of_snapshot(resource, emptied) or row.loss,
        protected=bool(resource.get("protect")),
        empties=bool(outputs.get("forceDestroy")),
        own=not teams and str(resource["urn"]).endswith(OWN),
        teams=teams,
    )


def _of_serving(resource: Mapping[str, Any]) -> str:
    """What becomes of a model version, or of who asks an endpoint; empty of other resources."""
    inputs = as_mapping(resource.get("inputs"))
    if resource["type"] == MODEL_VERSION:
        kept = as_mapping(inputs.get("options")).get("onDelete") != "delete"
        return "stays in the registry" if kept else "deleted, with the registry's copy of its files"
    if resource["type"] != ENDPOINT_TRAFFIC:
        return ""
    split = as_mapping(inputs.get("split")).items()
    shares = ", ".join(
        f"{run}: {share:g}" for run, share in split if isinstance(share, int | float)
    )
    return f"requests are answered by {shares}, and by nothing afterwards"


def _of_snapshot(resource: Mapping[str, Any], emptied: Collection[str]) -> str:
    """That its files go with their bucket; empty where they stay, and of other resources."""
    bucket = as_mapping(as_mapping(resource.get("inputs")).get("snapshot")).get("bucket")
    goes = resource["type"] == SNAPSHOT and bucket in emptied
    return f"its files go with bucket {bucket}" if goes else ""


def _name(resource: Mapping[str, Any]) -> str:
    own = str(resource["urn"]).rpartition("::")[2]
    if resource["type"] in WITH_REQUEST or not _is_named(resource):
        return own
    outputs = resource.get("outputs") or {}
    return str(outputs.get(resource_types.find(resource["type"]).name) or own)


def _is_named(resource: Mapping[str, Any]) -> bool:
    """Return whether nobody can undo its loss."""
    return bool(resource_types.find(resource["type"]).loss)


def _is_provider(resource: Mapping[str, Any]) -> bool:
    return str(resource["type"]).startswith(("pulumi:providers:", "pulumi:pulumi:"))
