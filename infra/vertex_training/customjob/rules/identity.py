"""The account a job runs as, and the key it is encrypted with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

ACCESS: Final = GUIDES + "general/access-control"
CMEK: Final = GUIDES + "general/cmek"
EMAIL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*@[a-z0-9][a-z0-9.-]*\.gserviceaccount\.com\Z")
KEY: Final = re.compile(
    r"projects/[^/]+/locations/([a-z0-9-]+)/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}\Z"
)
KMS: Final[Path] = ("encryptionSpec", "kmsKeyName")


@rule("service-account", ACCESS)
def service_account(job: Job) -> Iterator[Finding]:
    """A job runs as an account of its own: the default one may read and write all buckets.

    Without a stack this is a note: the service takes such a job, a stack does not.
    """
    if not job.account:
        hint = "serviceAccount: ${serviceAccounts.NAME}"
        what = "serviceAccount is missing"
        level = "note" if job.context.stack is None else None
        yield Finding(SPEC, what, "", hint, missing="serviceAccount", level=level)


@rule("service-account-email", TYPES + "custom_job.py")
def service_account_email(job: Job) -> Iterator[Finding]:
    """The run-as account is given by its address."""
    if job.account and not EMAIL.match(job.account):
        hint = "NAME@PROJECT.iam.gserviceaccount.com, or ${serviceAccounts.NAME}"
        what = "not the address of a service account"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


@rule("service-account-default", ACCESS, "warning")
def service_account_default(job: Job) -> Iterator[Finding]:
    """The run-as account is made for the job, not a default account or Google's own agent."""
    default = job.account.endswith(
        ("@developer.gserviceaccount.com", "@appspot.gserviceaccount.com")
    )
    if default or "@gcp-sa-" in job.account:
        hint = "serviceAccount: ${serviceAccounts.NAME}"
        what = "a default account has more rights than a job needs"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


@rule("encryption-key", TYPES + "encryption_spec.py")
def encryption_key(job: Job) -> Iterator[Finding]:
    """An encryption key is named in full."""
    spec = job.request.get("encryptionSpec")
    if spec is None:
        return
    name = spec.get("kmsKeyName")
    hint = "projects/P/locations/REGION/keyRings/RING/cryptoKeys/KEY"
    if not name:
        yield Finding(KMS[:1], "kmsKeyName is missing", "", hint, missing="kmsKeyName")
    elif not KEY.match(name):
        yield Finding(KMS, "not the full name of a key", name, hint)


@rule("encryption-region", CMEK)
def encryption_region(job: Job) -> Iterator[Finding]:
    """The encryption key is in the job's region."""
    match = KEY.match(str(job.request.get("encryptionSpec", {}).get("kmsKeyName")))
    if not match:
        return
    if match[1] not in machines.regions():
        what = "must be in the job's region, not in a multi-region"
        yield Finding(KMS, what, match[1], "name a key of a ring in that region")
    elif job.region and match[1] != job.region:
        what = f"must be in the job's region {job.region}"
        yield Finding(KMS, what, match[1], "name a key of a ring in that region")


@rule("job-region", GUIDES + "general/locations")
def job_region(job: Job) -> Iterator[Finding]:
    """The job is sent to a region that runs training jobs."""
    if job.region and job.region not in machines.regions():
        what = "the stack's region runs no training jobs"
        hint = f"set gcp:region to one of {', '.join(sorted(machines.regions()))}"
        yield Finding((), what, job.region, hint)


@rule("artifact-location", TYPES + "custom_job.py")
def artifact_location(job: Job) -> Iterator[Finding]:
    """protectedArtifactLocationId is another region than the job's."""
    given = job.spec.get("protectedArtifactLocationId")
    path = (*SPEC, "protectedArtifactLocationId")
    if given and given not in machines.regions():
        yield Finding(path, "not a region", given, "for example europe-west4")
    elif given and given == job.region:
        yield Finding(path, "is the job's own region", given, "remove it")
