"""Names that are taken, and what exists under the name of something that the stack uses.

https://docs.cloud.google.com/storage/docs/json_api/v1/buckets/get: the names of buckets are those
of everybody; 403 for one that another organization has, and 404 for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, BUCKET, ON_BUCKET, REPOSITORY, SECRET
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.context import PreflightContext

_BUCKETS: Final = "https://storage.googleapis.com/storage/v1/b/"
#: Type -> where one is read, and what that asks for.
READ: Final = {
    ACCOUNT: ("https://iam.googleapis.com/v1/", "iam.serviceAccounts.get"),
    REPOSITORY: (
        "https://artifactregistry.googleapis.com/v1/",
        "artifactregistry.repositories.get",
    ),
    SECRET: ("https://secretmanager.googleapis.com/v1/", "secretmanager.secrets.get"),
}
_PROJECTS: Final = "https://cloudresourcemanager.googleapis.com/v3/projects/"
_MONITORING: Final = "https://monitoring.googleapis.com/v3/"
_KMS: Final = "https://cloudkms.googleapis.com/v1/"
_KEY: Final = re.compile(r"projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+")


def ask(context: PreflightContext) -> Iterator[Answer]:
    """What the stack makes, and what it uses of others."""
    for each in context.of_type(BUCKET):
        yield from _bucket(context, each)
    for token in READ:
        for each in context.of_type(token):
            yield _other(context, each)
    yield from _used_buckets(context)
    yield from _secret_versions(context)
    yield from _keys(context)
    yield from _channels(context)


def _bucket(context: PreflightContext, bucket: DeclaredResource) -> Iterator[Answer]:
    name = str(bucket.inputs["name"])
    of = question(f"gs://{name}", "whether the name is free")
    found = context.client.get(f"{_BUCKETS}{name}", of, "storage.buckets.get")
    mend = f"give it another name in Pulumi.{context.ref.stack}.yaml (buckets.KEY.name)"
    if isinstance(found, Answer):
        # it is there, and of somebody else if the caller may read those of the project
        if found.permission and not context.is_made(bucket) and _may_read_buckets(context, of):
            meets = "409: the names of buckets are shared by everybody"
            found = of.refused("taken, by a project that the caller may not read", meets, mend)
        yield found
        return
    if found is None:
        gone = "it was deleted: `vt drift` says what to restore" if context.is_made(bucket) else ""
        yield of.warning("free, and the state has it", gone, mend) if gone else of.ok("free")
        return
    number = str(found.get("projectNumber", ""))
    if number not in ("", context.number):
        meets = "409: the names of buckets are shared by everybody"
        yield of.refused(f"taken, by project {number}", meets, mend)
    elif not context.is_made(bucket) and context.recorded is not None:
        yield _not_of_the_state(context, of, bucket)
    else:
        yield of.ok("the stack's own" if context.recorded is not None else "in the project")
        yield from _settings(bucket, found, name)


def _may_read_buckets(context: PreflightContext, of: Answer) -> bool:
    url = f"{_PROJECTS}{context.project}:testIamPermissions"
    held = context.client.held(url, {"storage.buckets.get"}, of)
    return isinstance(held, set) and bool(held)


def _settings(bucket: DeclaredResource, found: dict[str, Any], name: str) -> Iterator[Answer]:
    """Location and class of a bucket that exists: the one never changes."""
    of = question(f"gs://{name}", "location and class")
    declared, there = str(bucket.inputs["location"]).upper(), str(found.get("location")).upper()
    if declared != there:
        meets = "the bucket is replaced, with all its objects; a protected one is refused"
        yield of.refused(f"{there}, and {declared} is declared", meets, f"declare {there}")
        return
    declared, there = str(bucket.inputs.get("storageClass")), str(found.get("storageClass"))
    if declared != there:
        meets = "the default class changes; objects keep theirs"
        yield of.warning(f"{there}, and {declared} is declared", meets, f"declare {there}")
    else:
        yield of.ok(f"{found.get('location')}, {there}")


def _not_of_the_state(context: PreflightContext, of: Answer, resource: DeclaredResource) -> Answer:
    return of.refused(
        "it exists, and the state does not have it",
        "409 already exists",
        f"pulumi import '{resource.type}' '{resource.name}' '{resource.id}' --stack "
        f"{context.ref.stack}, or name it `existing` in the stack file",
    )


def _other(context: PreflightContext, resource: DeclaredResource) -> Answer:
    """An account, a repository or a secret that the stack makes."""
    base, permission = READ[resource.type]
    word = resource_types.find(resource.type).word
    of = question(resource.id, f"whether the {word} is there already")
    found = context.client.get(f"{base}{resource.id}", of, permission)
    if isinstance(found, Answer):
        return found
    if found is None:
        return of.ok("no")
    if context.is_made(resource):
        return of.ok("yes, the stack's own")
    if context.recorded is None:
        return of.unknown("it is there, and the state could not be read")
    return _not_of_the_state(context, of, resource)


def _used_buckets(context: PreflightContext) -> Iterator[Answer]:
    """Buckets of others that the stack grants something on, or names: they must be there."""
    made = {str(each.inputs["name"]) for each in context.of_type(BUCKET)}
    used = {str(each.inputs["bucket"]) for each in context.of_type(ON_BUCKET)}
    buckets = context.declared.stack.declared.buckets.values()
    used |= {each.existing for each in buckets if each.existing}
    for name in sorted(used - made):
        of = question(f"gs://{name}", "whether the bucket that the stack uses is there")
        found = context.client.get(f"{_BUCKETS}{name}", of, "storage.buckets.get")
        if isinstance(found, Answer):
            yield found
        elif found is None:
            mend = f"gcloud storage buckets create gs://{name}, or name another"
            yield of.refused("no", "404 at grants on it, and in its jobs", mend)
        else:
            yield of.ok("yes")


def _secret_versions(context: PreflightContext) -> Iterator[Answer]:
    """Secrets hold no value when they are made; a job that reads one without fails."""
    declared = {each.id: each for each in context.of_type(SECRET)}
    secrets = context.declared.stack.declared.secrets
    used = {each.existing: None for each in secrets.values() if each.existing}
    for id_, resource in {**declared, **used}.items():
        base, _ = READ[SECRET]
        of = question(f"{id_}/versions/latest", "whether there is a version, and enabled")
        if resource is not None and not context.is_made(resource):
            continue  # it has no version before it is made
        found = context.client.get(f"{base}{id_}/versions/latest", of, "secretmanager.versions.get")
        name, project = id_.rpartition("/")[2], id_.split("/")[1]
        add = f"gcloud secrets versions add {name} --project={project} --data-file=FILE"
        if isinstance(found, Answer):
            yield found
        elif found is None:
            yield of.warning("no version", "a job that reads it fails", add)
        elif (state := str(found.get("state"))) != "ENABLED":
            enable = f"gcloud secrets versions enable latest --secret={name} --project={project}"
            yield of.warning(state, "a job that reads it fails", enable)
        else:
            yield of.ok("ENABLED")


def _keys(context: PreflightContext) -> Iterator[Answer]:
    """Keys that the stack encrypts with: their primary version must be enabled."""
    texts = (str(value) for each in context.declared.resources for value in each.inputs.values())
    keys = {match[0] for text in texts for match in _KEY.finditer(text)}
    for key in sorted(keys):
        of = question(key, "state of the primary version of the key")
        found = context.client.get(f"{_KMS}{key}", of, "cloudkms.cryptoKeys.get")
        if isinstance(found, Answer):
            yield found
            continue
        state = "it is not there"
        if found is not None:
            state = str((found.get("primary") or {}).get("state", "it has no primary version"))
        if state == "ENABLED":
            yield of.ok(state)
            continue
        meets = "what is encrypted with it cannot be made, and what exists cannot be read"
        ring, _, name = key.rpartition("/cryptoKeys/")
        yield of.refused(
            state,
            meets,
            f"gcloud kms keys versions list --key={name} --keyring={ring} shows its versions; "
            "enable one and make it primary",
        )


def _channels(context: PreflightContext) -> Iterator[Answer]:
    """Channels that are named by ``existing``: an alert on one that is not there is refused."""
    settings = context.declared.stack.declared
    of_budget = settings.budget.channels if settings.budget else ()
    for key, channel in settings.channels.items():
        if not channel.existing:
            continue
        of = question(channel.existing, "whether the channel that alerts name is there")
        permission = "monitoring.notificationChannels.get"
        found = context.client.get(f"{_MONITORING}{channel.existing}", of, permission)
        listing = f"gcloud beta monitoring channels list --project={context.project}"
        mend = f"name another in channels.{key}: {listing} shows those there are"
        if isinstance(found, Answer):
            yield found
        elif found is None:
            yield of.refused("no", "404 at the alert or the budget that names it", mend)
        elif found.get("enabled") is False:
            on = f"gcloud beta monitoring channels update {channel.existing} --enabled"
            yield of.warning("it is off", "it is told nothing", on)
        elif (type_ := str(found.get("type"))) != "email" and key in of_budget:
            yield of.warning(f"{type_}, and a budget names it", "budgets tell email alone", mend)
        else:
            yield of.ok(f"yes, {type_}")
