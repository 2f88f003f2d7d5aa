"""A job in its stack: accounts and their rights, secrets, and the other jobs' outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.context import BucketFacts
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.job_facts import REQUEST_ID, outputs_clash
from vertex_training.customjob.rules.registry import GUIDES, OURS, Finding, rule
from vertex_training.errors import Path, did_you_mean

OUTPUT: Final[Path] = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")
BUCKET: Final = re.compile(r"(?:gs://|/gcs/)([a-z0-9][a-z0-9._-]*[a-z0-9])")
SECRET: Final = re.compile(r"projects/([a-z0-9-]+)/secrets/([A-Za-z0-9_-]+)")


@rule("output-shared", OURS)
def output_shared(job: Job) -> Iterator[Finding]:
    """No two jobs of a stack write to the same output directory."""
    for name, other in sorted(job.context.others.items()):
        if outputs_clash(job.output, other.output):
            hint = f"give each job a folder, with ${{job.name}}; or each run, with {REQUEST_ID}"
            what = f"job '{name}' writes there too"
            yield Finding(OUTPUT, what, job.output, hint)


@rule("package-module", OURS)
def package_module(job: Job) -> Iterator[Finding]:
    """A module that a job runs is in its packages."""
    known = job.context.stack.packages if job.context.stack else {}
    for pool in job.pools:
        uris, module = pool.task.get("packageUris", []), pool.task.get("pythonModule", "")
        if not module or not uris or not all(uri in known for uri in uris):
            continue  # of a package from elsewhere nothing is known
        modules = frozenset[str]().union(*(known[uri] for uri in uris))
        if module not in modules:
            hint = did_you_mean(module, modules)
            path = (*pool.task_path, "pythonModule")
            yield Finding(path, "the package has no such module to run", module, hint)


@rule("account-foreign", GUIDES + "general/custom-service-account", "warning")
def account_foreign(job: Job) -> Iterator[Finding]:
    """The job runs as one of the stack's accounts; of others the rights cannot be checked."""
    stack = job.context.stack
    if stack and job.account and job.account not in stack.accounts:
        hint = "serviceAccount: ${serviceAccounts.NAME}"
        yield Finding((*SPEC, "serviceAccount"), "not an account of this stack", job.account, hint)


@rule("account-reads", OURS)
def account_reads(job: Job) -> Iterator[Finding]:
    """The run-as account may read every bucket of the stack that the job names."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for path, text in _texts(job):
        for name in dict.fromkeys(BUCKET.findall(text)):
            bucket = stack.buckets.get(name)
            if bucket and not _may_read(bucket, job.account):
                hint = f"add the bucket to the account's reads or writes ({job.account})"
                yield Finding(path, "the job's account may not read this bucket", name, hint)


@rule("account-writes", OURS)
def account_writes(job: Job) -> Iterator[Finding]:
    """The run-as account may write to the job's output directory."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for name in BUCKET.findall(job.output)[:1]:
        bucket = stack.buckets.get(name)
        if bucket and job.account not in bucket.writers:
            hint = f"add the bucket to the account's writes ({job.account})"
            yield Finding(OUTPUT, "the job's account may not write to this bucket", name, hint)


@rule("secret-granted", OURS)
def secret_granted(job: Job) -> Iterator[Finding]:
    """The run-as account may read every secret of the stack that the job names."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for path, text in _texts(job):
        for project, secret in dict.fromkeys(SECRET.findall(text)):
            own = project in (stack.project, stack.project_number)
            place = stack.project if own else project
            accessors = stack.secrets.get(f"projects/{place}/secrets/{secret}")
            if accessors is None and not own:
                continue  # its owner may have granted it
            if accessors is None:
                known = ", ".join(sorted(name.rsplit("/", 1)[1] for name in stack.secrets))
                hint = f"add it to the stack's secrets; known: {known or 'none'}"
                yield Finding(path, "this stack has no such secret", secret, hint)
            elif job.account not in accessors:
                hint = f"add it to the account's secrets ({job.account})"
                yield Finding(path, "the job's account may not read this secret", secret, hint)


def _may_read(bucket: BucketFacts, account: str) -> bool:
    return account in bucket.readers or account in bucket.writers


def _texts(job: Job) -> Iterator[tuple[Path, str]]:
    """Every text of the job that may name what it reads."""
    for pool in job.pools:
        yield from pool.texts()
        for index, uri in enumerate(pool.task.get("packageUris", [])):
            yield (*pool.task_path, "packageUris", index), uri
