"""Checks of names, images, and existing resources that the stack or its jobs use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from vertex_training import naming
from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    ON_BUCKET,
    REPOSITORY,
    SECRET,
    SNAPSHOT,
)
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.alerts import Channel
from vertex_training.snapshots import estimate
from vertex_training.snapshots.provider import connect, request_of
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.images import lookup
from vertex_training_cli.preflight.context import (
    Answer,
    PreflightContext,
    UnansweredError,
    answered,
    question,
)

#: Type -> request that reads a resource.
READ: Final = {ACCOUNT: rest.ACCOUNT, REPOSITORY: rest.REPOSITORY, SECRET: rest.SECRET}
_KEY: Final = re.compile(r"projects/[\w.:-]+/locations/[\w-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+")
_SHARED: Final = "the creation fails with 409 Conflict: bucket names are global"


def check_names(context: PreflightContext) -> Iterator[Answer]:
    """Check names that the stack creates, and existing resources that the stack uses."""
    for bucket in context.of_type(BUCKET):
        yield from _bucket(context, bucket)
    for token in READ:
        for resource in context.of_type(token):
            yield from _other(context, resource)
    buckets = context.declared.stack.declared.buckets.values()
    used = {str(resource.inputs["bucket"]) for resource in context.of_type(ON_BUCKET)}
    used |= {bucket.existing for bucket in buckets if bucket.existing}
    used -= {str(bucket.inputs["name"]) for bucket in context.of_type(BUCKET)}
    for name in sorted(used):
        yield from _used_bucket(context, name)
    secrets = context.declared.stack.declared.secrets.values()
    existing = [secret.existing for secret in secrets if secret.existing]
    # A new secret has no version yet.
    created = [secret.id for secret in context.of_type(SECRET) if context.is_made(secret)]
    for secret in dict.fromkeys([*(id_ for id_ in created if id_ not in existing), *existing]):
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
    request = request_of(snapshot.inputs)
    of = question(f"snapshot {request.name}", "dry run of its query in BigQuery")
    try:
        scan = estimate.look(request, connect(snapshot.inputs))
    except (JobRefusedError, NotSubmittedError) as refused:
        meets = "the snapshot is not taken, and jobs that read it are not submitted"
        return of.refused(str(refused), meets, "correct the query, or create its source tables")
    except OperatorError as error:
        return of.unknown(str(error))
    if reason := scan.get("unanswered"):
        return of.unknown(str(reason))
    return of.ok(estimate.words(scan, request.max_bytes_billed, request.location))


@answered
def _bucket(context: PreflightContext, bucket: DeclaredResource) -> Iterator[Answer]:
    name, is_made = str(bucket.inputs["name"]), context.is_made(bucket)
    of = question(f"gs://{name}", "free name")
    mend = f"choose another name in Pulumi.{context.ref.stack}.yaml (buckets.KEY.name)"
    try:
        document = context.client.get(rest.BUCKET, of, name)
    except UnansweredError as error:
        # Bucket names are global: 403 means that the bucket is in another project and the caller
        # may not read it, 404 means that the name is free.
        # https://docs.cloud.google.com/storage/docs/json_api/v1/buckets/get
        if is_made or not error.answer.permission:
            raise
        # If the caller may read all buckets of the project, the bucket is in another project.
        project = f"projects/{context.project}"
        with suppress(UnansweredError):
            if context.client.held(project, {"storage.buckets.get"}, of):
                taken = "taken by a project that the caller may not read"
                yield of.refused(taken, _SHARED, mend)
                return
        raise error from None
    if document is None and is_made:
        drift = f"vt drift --stack {context.ref.stack} shows how to restore the bucket"
        deleted = "free, but the state contains the bucket"
        yield of.warning(deleted, "the bucket was deleted in the cloud", drift)
    elif document is None:
        yield of.ok("free")
    elif (number := str(document.get("projectNumber", ""))) not in ("", context.number):
        yield of.refused(f"taken by project {number}", _SHARED, mend)
    elif not is_made and context.recorded is not None:
        yield _not_of_the_state(context, of, bucket)
    else:
        yield of.ok("created by the stack" if is_made else "in the project")
        yield _settings(bucket, document, name)


def _settings(bucket: DeclaredResource, document: dict[str, Any], name: str) -> Answer:
    """Check location and class of an existing bucket, whose location cannot change."""
    of = question(f"gs://{name}", "location and class")
    declared, actual = str(bucket.inputs["location"]).upper(), str(document.get("location")).upper()
    if declared != actual:
        meets = "a deployment would delete the bucket with all objects; protection prevents this"
        return of.refused(f"{actual}; declared: {declared}", meets, f"declare {actual}")
    declared, actual = str(bucket.inputs.get("storageClass")), str(document.get("storageClass"))
    if declared != actual:
        meets = "the default class changes; existing objects keep their class"
        return of.warning(f"{actual}; declared: {declared}", meets, f"declare {actual}")
    return of.ok(f"{document.get('location')}, {actual}")


def _not_of_the_state(context: PreflightContext, of: Answer, resource: DeclaredResource) -> Answer:
    return of.refused(
        "the resource exists, but is not in the state",
        "the creation fails with 409: the resource already exists",
        f"pulumi import '{resource.type}' '{resource.name}' '{resource.id}' --stack "
        f"{context.ref.stack}, or `existing: NAME` in the stack file",
    )


@answered
def _other(context: PreflightContext, resource: DeclaredResource) -> Answer:
    word = resource_types.find(resource.type).word
    of = question(resource.id, f"existence of the {word}")
    if context.client.get(READ[resource.type], of, resource.id) is None:
        return of.ok("no")
    if context.is_made(resource):
        return of.ok("yes, created by the stack")
    if context.recorded is None:
        return of.unknown("yes, but the state was not read")
    return _not_of_the_state(context, of, resource)


@answered
def _used_bucket(context: PreflightContext, name: str) -> Answer:
    of = question(f"gs://{name}", "existence of the bucket")
    if context.client.get(rest.BUCKET, of, name) is not None:
        return of.ok("yes")
    mend = f"gcloud storage buckets create gs://{name}, or use another bucket"
    return of.refused("no", "grants and jobs that use the bucket fail with 404", mend)


@answered
def _secret_version(context: PreflightContext, secret: str) -> Answer:
    of = question(f"{secret}/versions/latest", "enabled version")
    version = context.client.get(rest.SECRET_VERSION, of, secret)
    name, project = secret.rpartition("/")[2], secret.split("/")[1]
    state = "no version" if version is None else str(version.get("state"))
    if state == "ENABLED":
        return of.ok(state)
    mend = f"gcloud secrets versions enable latest --secret={name} --project={project}"
    if version is None:
        mend = f"gcloud secrets versions add {name} --project={project} --data-file=FILE"
    return of.warning(state, "jobs that read the secret fail", mend)


@answered
def _key(context: PreflightContext, key: str) -> Answer:
    of = question(key, "state of the key's primary version")
    crypto_key = context.client.get(rest.KEY, of, key)
    state = "the key does not exist"
    if crypto_key is not None:
        state = str((crypto_key.get("primary") or {}).get("state", "no primary version"))
    if state == "ENABLED":
        return of.ok(state)
    ring, _, name = key.rpartition("/cryptoKeys/")
    return of.refused(
        state,
        "resources with this key cannot be created, and data of existing resources cannot be read",
        f"enable a version and make it primary; gcloud kms keys versions list --key={name} "
        f"--keyring={ring} lists the versions",
    )


@answered
def _channel(context: PreflightContext, key: str, channel: Channel) -> Answer:
    assert channel.existing
    budget = context.declared.stack.declared.budget
    of = question(channel.existing, "existence of the notification channel")
    document = context.client.get(rest.CHANNEL, of, channel.existing)
    listing = f"gcloud beta monitoring channels list --project={context.project}"
    mend = f"use another channel in channels.{key}; `{listing}` lists them"
    if document is None:
        return of.refused("no", "alerts and budgets with this channel fail with 404", mend)
    if document.get("enabled") is False:
        on = f"gcloud beta monitoring channels update {channel.existing} --enabled"
        return of.warning("the channel is off", "the channel gets no messages", on)
    if (type_ := str(document.get("type"))) != "email" and budget and key in budget.channels:
        return of.warning(f"{type_}, used by a budget", "budgets only notify email channels", mend)
    return of.ok(f"yes, {type_}")


#: Permission to read an image.
DOWNLOAD: Final = "artifactregistry.repositories.downloadArtifacts"
#: Roles on a repository that include ``downloadArtifacts``:
#: https://docs.cloud.google.com/artifact-registry/docs/access-control
PULLING: Final = frozenset(
    f"roles/artifactregistry.{role}" for role in ("reader", "writer", "repoAdmin", "admin")
)


def check_images(context: PreflightContext) -> Iterator[Answer]:
    """Check that the images of jobs and served models exist and can be pulled."""
    jobs, models = dict[str, list[str]](), dict[str, list[str]]()
    for job, request in context.declared.requests.items():
        body = json.loads(request.body)
        spec = body.get("jobSpec") or body.get("trialJobSpec") or {}
        run = grants.images({"jobSpec": spec})
        for name in dict.fromkeys(run):
            if not GOOGLES.match(name):  # Google's own images are public.
                jobs.setdefault(name, []).append(job)
    for (model, _), version in context.declared.stack.versions.items():
        if not GOOGLES.match(version.image) and model not in models.get(version.image, ()):
            models.setdefault(version.image, []).append(model)
    names = sorted({**jobs, **models})
    pinned = [name for name in names if lookup.is_digest(name)]
    looks = lookup.look(pinned, is_local=context.ref.is_local)
    for name in names:
        fails = {
            "jobs fail before their code starts": jobs.get(name),
            "versions of models cannot be deployed": models.get(name),
        }
        meets = "; ".join(f"{what}: {', '.join(of)}" for what, of in fails.items() if of)
        yield _exists(context, name, meets, looks)
    settings = context.declared.stack.declared
    of_jobs = grants.image_grants(settings, sorted(jobs))
    of_models = grants.image_grants(settings, sorted(models), of_models=True)
    for grant in {image.key: image for image in (*of_models, *of_jobs)}.values():
        yield from _pulled(context, grant)


def _exists(
    context: PreflightContext, name: str, meets: str, looks: Mapping[str, lookup.Look]
) -> Answer:
    of = question(name, "existence of the image")
    if (look := looks.get(name)) is None:
        return of.unknown("not checked: a tag can move", mend="use the digest of the image")
    if (trouble := look.trouble) is None:
        return of.ok("yes")
    rule, text = trouble
    if rule == "image-not-looked-at":
        return of.unknown(text, DOWNLOAD if "403" in text else "")
    image = name.partition("@")[0].rpartition("/")[2]
    return of.refused(
        text,
        meets,
        f"vt images build {image} --stack {context.ref.stack}, or vt promote {image} --from OTHER "
        f"--to {context.ref.stack}",
    )


@answered
def _pulled(context: PreflightContext, grant: GrantRequest) -> Answer:
    who = grant.member.removeprefix("serviceAccount:")
    of = question(grant.resource, f"pull access of {who}")
    policy = context.client.get(rest.REPOSITORY_POLICY, of, grant.resource)
    if policy is None:
        meets = "images of the repository cannot be pulled"
        return of.refused("the repository does not exist", meets, "use another repository")
    members = set(pulling(policy.get("bindings") or ()))
    if members & {grant.member, *naming.PUBLIC_MEMBERS}:
        return of.ok("yes")
    meets = "the image cannot be pulled, unless a role on the project allows it"
    return of.refused("not granted by the repository's IAM policy", meets, grants.command(grant))


def pulling(bindings: Iterable[Any]) -> Iterator[str]:
    """Yield members that may pull images without a condition."""
    for binding in bindings:
        if not isinstance(binding, dict) or binding.get("condition"):
            continue
        members: Any = binding.get("members")
        if binding.get("role") in PULLING and isinstance(members, list):
            yield from map(str, members)
