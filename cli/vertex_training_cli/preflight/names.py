"""Names that are taken, and what exists under the name of something that the stack uses.

https://docs.cloud.google.com/storage/docs/json_api/v1/buckets/get: the names of buckets are those
of everybody; 403 for one that another organization has, and 404 for none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    ON_BUCKET,
    REPOSITORY,
    SECRET,
    SNAPSHOT,
)
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError
from vertex_training.settings.alerts import Channel
from vertex_training.snapshots import estimate
from vertex_training.snapshots.provider import connect, request_of
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import UnansweredError, answered
from vertex_training_cli.preflight.context import PreflightContext

#: Type -> how one is read.
READ: Final = {ACCOUNT: rest.ACCOUNT, REPOSITORY: rest.REPOSITORY, SECRET: rest.SECRET}
_KEY: Final = re.compile(r"projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+")
_SHARED: Final = "409: the names of buckets are shared by everybody"


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Check the names that the stack creates, and existing resources that it uses."""
    for bucket in context.of_type(BUCKET):
        yield from _bucket(context, bucket)
    for token in READ:
        for resource in context.of_type(token):
            yield from _other(context, resource)
    for name in _used_buckets(context):
        yield from _used_bucket(context, name)
    for secret in _used_secrets(context):
        yield from _secret_version(context, secret)
    texts = (
        str(value) for resource in context.declared.resources for value in resource.inputs.values()
    )
    for key in sorted({match[0] for text in texts for match in _KEY.finditer(text)}):
        yield from _key(context, key)
    for snapshot in context.of_type(SNAPSHOT):
        yield _query(snapshot)
    for key, channel in context.declared.stack.declared.channels.items():
        if channel.existing:
            yield from _channel(context, key, channel)


def _query(snapshot: DeclaredResource) -> Answer:
    """Ask BigQuery, by a dry run, whether it accepts the query of a snapshot."""
    request = request_of(snapshot.inputs)
    of = question(f"snapshot {request.name}", "whether BigQuery accepts its query")
    try:
        scan = estimate.look(request, connect(snapshot.inputs))
    except (JobRefusedError, NotSubmittedError) as refused:
        meets = "the snapshot is not taken, and no job that reads it is submitted"
        return of.refused(str(refused), meets, "correct the query, or make what it reads")
    except OperatorError as error:
        return of.unknown(str(error))
    if reason := scan.get("unanswered"):
        return of.unknown(str(reason))
    return of.ok(estimate.words(scan, request.max_bytes_billed, request.location))


@answered
def _bucket(context: PreflightContext, bucket: DeclaredResource) -> Iterator[Answer]:
    name = str(bucket.inputs["name"])
    of = question(f"gs://{name}", "whether the name is free")
    mend = f"give it another name in Pulumi.{context.ref.stack}.yaml (buckets.KEY.name)"
    try:
        document = context.client.get(rest.BUCKET, of, name)
    except UnansweredError as error:
        # it is there, and of somebody else if the caller may read those of the project
        is_theirs = error.answer.permission and not context.is_made(bucket)
        if not (is_theirs and _may_read_buckets(context, of)):
            raise error from None
        yield of.refused("taken, by a project that the caller may not read", _SHARED, mend)
        return
    if document is None:
        gone = "it was deleted: `vt drift` says what to restore" if context.is_made(bucket) else ""
        yield of.warning("free, and the state has it", gone, mend) if gone else of.ok("free")
        return
    number = str(document.get("projectNumber", ""))
    if number not in ("", context.number):
        yield of.refused(f"taken, by project {number}", _SHARED, mend)
    elif not context.is_made(bucket) and context.recorded is not None:
        yield _not_of_the_state(context, of, bucket)
    else:
        yield of.ok("the stack's own" if context.recorded is not None else "in the project")
        yield _settings(bucket, document, name)


def _may_read_buckets(context: PreflightContext, of: Answer) -> bool:
    url = f"{rest.PROJECT.url(context.project)}:testIamPermissions"
    try:
        return bool(context.client.held(url, {"storage.buckets.get"}, of))
    except UnansweredError:
        return False


def _settings(bucket: DeclaredResource, document: dict[str, Any], name: str) -> Answer:
    """Check location and class of an existing bucket; the location never changes."""
    of = question(f"gs://{name}", "location and class")
    declared, there = str(bucket.inputs["location"]).upper(), str(document.get("location")).upper()
    if declared != there:
        meets = "the bucket is replaced, with all its objects; a protected one is refused"
        return of.refused(f"{there}, and {declared} is declared", meets, f"declare {there}")
    declared, there = str(bucket.inputs.get("storageClass")), str(document.get("storageClass"))
    if declared != there:
        meets = "the default class changes; objects keep theirs"
        return of.warning(f"{there}, and {declared} is declared", meets, f"declare {there}")
    return of.ok(f"{document.get('location')}, {there}")


def _not_of_the_state(context: PreflightContext, of: Answer, resource: DeclaredResource) -> Answer:
    return of.refused(
        "it exists, and the state does not have it",
        "409 already exists",
        f"pulumi import '{resource.type}' '{resource.name}' '{resource.id}' --stack "
        f"{context.ref.stack}, or name it `existing` in the stack file",
    )


@answered
def _other(context: PreflightContext, resource: DeclaredResource) -> Iterator[Answer]:
    """Check an account, a repository or a secret that the stack creates."""
    word = resource_types.find(resource.type).word
    of = question(resource.id, f"whether the {word} exists already")
    if context.client.get(READ[resource.type], of, resource.id) is None:
        yield of.ok("no")
    elif context.is_made(resource):
        yield of.ok("yes, the stack's own")
    elif context.recorded is None:
        yield of.unknown("it is there, and the state could not be read")
    else:
        yield _not_of_the_state(context, of, resource)


def _used_buckets(context: PreflightContext) -> list[str]:
    """Return buckets outside the stack that it grants roles on, or names."""
    made = {str(bucket.inputs["name"]) for bucket in context.of_type(BUCKET)}
    used = {str(resource.inputs["bucket"]) for resource in context.of_type(ON_BUCKET)}
    buckets = context.declared.stack.declared.buckets.values()
    used |= {bucket.existing for bucket in buckets if bucket.existing}
    return sorted(used - made)


@answered
def _used_bucket(context: PreflightContext, name: str) -> Iterator[Answer]:
    of = question(f"gs://{name}", "whether the bucket that the stack uses is there")
    if context.client.get(rest.BUCKET, of, name) is None:
        mend = f"gcloud storage buckets create gs://{name}, or name another"
        yield of.refused("no", "404 at grants on it, and in its jobs", mend)
    else:
        yield of.ok("yes")


def _used_secrets(context: PreflightContext) -> list[str]:
    """Return ids of secrets that exist; one has no version before it is made."""
    declared = {secret.id: secret for secret in context.of_type(SECRET)}
    made = [id_ for id_, secret in declared.items() if context.is_made(secret)]
    secrets = context.declared.stack.declared.secrets.values()
    used = [secret.existing for secret in secrets if secret.existing]
    return list(dict.fromkeys([*(id_ for id_ in made if id_ not in used), *used]))


@answered
def _secret_version(context: PreflightContext, secret: str) -> Iterator[Answer]:
    """Secrets hold no value when they are made; a job that reads one without fails."""
    of = question(f"{secret}/versions/latest", "whether there is a version, and enabled")
    version = context.client.get(rest.SECRET_VERSION, of, secret)
    name, project = secret.rpartition("/")[2], secret.split("/")[1]
    if version is None:
        add = f"gcloud secrets versions add {name} --project={project} --data-file=FILE"
        yield of.warning("no version", "a job that reads it fails", add)
    elif (state := str(version.get("state"))) != "ENABLED":
        enable = f"gcloud secrets versions enable latest --secret={name} --project={project}"
        yield of.warning(state, "a job that reads it fails", enable)
    else:
        yield of.ok("ENABLED")


@answered
def _key(context: PreflightContext, key: str) -> Iterator[Answer]:
    """Check an encryption key of the stack: its primary version must be enabled."""
    of = question(key, "state of the primary version of the key")
    crypto_key = context.client.get(rest.KEY, of, key)
    state = "it is not there"
    if crypto_key is not None:
        state = str((crypto_key.get("primary") or {}).get("state", "it has no primary version"))
    if state == "ENABLED":
        yield of.ok(state)
        return
    ring, _, name = key.rpartition("/cryptoKeys/")
    yield of.refused(
        state,
        "what is encrypted with it cannot be made, and what exists cannot be read",
        f"gcloud kms keys versions list --key={name} --keyring={ring} shows its versions; "
        "enable one and make it primary",
    )


@answered
def _channel(context: PreflightContext, key: str, channel: Channel) -> Iterator[Answer]:
    """A channel that is named by ``existing``: an alert on one that is not there is refused."""
    assert channel.existing
    budget = context.declared.stack.declared.budget
    of = question(channel.existing, "whether the channel that alerts name is there")
    document = context.client.get(rest.CHANNEL, of, channel.existing)
    listing = f"gcloud beta monitoring channels list --project={context.project}"
    mend = f"name another in channels.{key}: {listing} lists them"
    if document is None:
        yield of.refused("no", "404 at the alert or the budget that names it", mend)
    elif document.get("enabled") is False:
        on = f"gcloud beta monitoring channels update {channel.existing} --enabled"
        yield of.warning("it is off", "it gets no messages", on)
    elif (type_ := str(document.get("type"))) != "email" and budget and key in budget.channels:
        yield of.warning(f"{type_}, and a budget names it", "budgets tell email alone", mend)
    else:
        yield of.ok(f"yes, {type_}")
