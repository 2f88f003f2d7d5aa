"""Whether Vertex AI may pull an image of another project: what its repository's policy says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from vertex_training import naming
from vertex_training.errors import RegistryError
from vertex_training.images import pins
from vertex_training.plan import external_grants, job_grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training_cli.images import documents, registry
from vertex_training_cli.images.transport import Transport, read

#: Where the IAM policies of repositories are read.
SERVICE: Final = "https://artifactregistry.googleapis.com"
#: Roles on a repository that hold ``downloadArtifacts``:
#: https://docs.cloud.google.com/artifact-registry/docs/access-control
PULLING: Final = frozenset(
    f"roles/artifactregistry.{role}" for role in ("reader", "writer", "repoAdmin", "admin")
)

#: Why a policy of others is not known, by the status of the answer.
_REASONS: Final = {
    403: "the caller may not read its IAM policy",
    404: "its project has no such repository",
}


def missing(settings: Settings, pin: pins.Pin, root: Path) -> Iterator[str]:
    """What keeps Vertex AI's agents from pulling an image, or why that is not known.

    A right on the whole project, a group or a condition is not seen: the answer names a command
    that does no harm where the right is there.
    """
    wanted = list(job_grants.image_grants(settings, [f"{pin.uri}@{pin.digest}"]))
    if not wanted:
        return
    try:
        members = _members(wanted[0], root)
    except RegistryError as failed:
        yield f"who may pull it was not looked at: {_REASONS.get(failed.status, failed)}"
        return
    for grant in wanted:
        if not members & {grant.member, *naming.PUBLIC_MEMBERS}:
            command = external_grants.command(grant)
            who = grant.member.removeprefix("serviceAccount:")
            yield f"its repository does not let {who} pull: {command}"


def _members(grant: GrantRequest, root: Path) -> set[str]:
    """Members that may pull, by the policy of the repository itself.

    Raises:
        RegistryError: it cannot be read.
    """
    if naming.is_local(grant.project):
        return _local_members(grant.resource, root)
    transport = Transport(SERVICE, registry.google_session())
    address = f"{SERVICE}/v1/{grant.resource}:getIamPolicy?options.requestedPolicyVersion=3"
    answer = transport.send("GET", address, grant.resource, stream=True)
    policy = documents.parse(read(answer, grant.resource), grant.resource)
    bindings = policy.get("bindings")
    return set(pulling(bindings if isinstance(bindings, list) else []))


def pulling(bindings: list[Any]) -> Iterator[str]:
    for binding in bindings:
        if not isinstance(binding, dict) or binding.get("condition"):
            continue
        members = binding.get("members")
        if binding.get("role") in PULLING and isinstance(members, list):
            yield from map(str, members)


def _local_members(resource: str, root: Path) -> set[str]:
    """A stand-in: the local cloud's inventory, which serves no IAM API."""
    from localgcp.home import Home
    from localgcp.inventory.store import Store

    database = Home.find(cwd=root).database
    if not database.is_file():
        raise RegistryError("the local cloud was never started.")
    bindings = Store(database).policy(resource).bindings
    return {
        member
        for binding in bindings
        if binding.role in PULLING and not binding.condition
        for member in binding.members
    }
