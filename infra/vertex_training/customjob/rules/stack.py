"""A job in its stack: accounts, rights, secrets, other jobs' outputs, and limits."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import PoolCost
from vertex_training.customjob.rules.context import BucketFacts, JobLimits
from vertex_training.customjob.rules.job import REQUEST_ID, SPEC, Job, outputs_clash
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


DOCS: Final = "docs/environments.md#limits"
STRATEGY: Final = ("jobSpec", "scheduling", "strategy")
TIMEOUT: Final = ("jobSpec", "scheduling", "timeout")


def _limits(job: Job) -> Iterator[JobLimits]:
    """Those of the stack, and those of the team whose account the job runs as."""
    found = (job.context.limits, job.context.account_limits.get(job.account))
    yield from (limits for limits in found if limits is not None)


@rule("limit-job-cost", DOCS)
def limit_job_cost(job: Job) -> Iterator[Finding]:
    """A job costs at most limits.maxUsdPerJob if it runs until its timeout."""
    given = [limits.usd for limits in _limits(job) if limits.usd is not None]
    if not given or job.strategy == "?" or not job.region:
        return
    most = min(given)
    cost = costs.of_job(job.tuning or job.request, job.region, job.context.backend)
    if cost.worst_case is None or cost.worst_case <= most or cost.trial_hourly is None:
        return
    runs = cost.attempts * (1 if cost.trials is None else cost.trials)
    what = (
        f"may cost {costs.usd(cost.worst_case)} ({_rate(cost)}), "
        f"the limit of a job is {costs.usd(most)}"
    )
    seconds = int(most / runs / cost.trial_hourly * 3600)
    fewer = "fewer or cheaper machines" if cost.trials is None else "fewer trials"
    hint = f'timeout: "{seconds}s" keeps the limit; so do {fewer}'
    if cost.default_timeout:
        given = job.scheduling.get("timeout", "")
        path = TIMEOUT if given else TIMEOUT[:2] if "scheduling" in job.spec else SPEC
        none = (
            "a timeout below a second may count as none, which is"
            if given
            else "without a timeout it may run for"
        )
        yield Finding(path, f"{what}: {none} 7 days", given, hint)
    else:
        yield Finding(TIMEOUT, what, job.scheduling["timeout"], hint)


def _rate(cost: costs.JobCost) -> str:
    """What is paid an hour, and in how many trials."""
    attempts = f" in {cost.attempts} attempts" if cost.attempts > 1 else ""
    rate = f"{costs.usd(cost.hourly)} an hour{attempts}{cost.elsewhere}"
    return (
        rate if cost.trials is None else f"{rate}, {cost.parallel} of {cost.trials} trials at once"
    )


@rule("limit-price-unknown", DOCS)
def limit_price_unknown(job: Job) -> Iterator[Finding]:
    """Where a stack limits costs, every machine has a price, or limits.allowUnpriced is true."""
    priced = any(limits.priced for limits in _limits(job))
    if not priced or job.strategy == "?" or not job.region:
        return
    for pool in costs.of_job(job.request, job.region).unpriced:
        path = ("jobSpec", "workerPoolSpecs", pool.index, "machineSpec")
        what = "no source has a price for this machine, and the stack limits costs"
        spot = " as a spot machine" if job.strategy == "SPOT" else ""
        hint = "take another one (vt catalogue), or set limits.allowUnpriced: true"
        if job.strategy == "SPOT" and _has_full_price(pool, job.region):
            hint = f"strategy: STANDARD has a price; or {hint}"
        yield Finding((*path, "machineType"), what, f"{pool.machine_type}{spot}", hint)


@rule("limit-machine-type", DOCS)
def limit_machine_type(job: Job) -> Iterator[Finding]:
    """Every pool runs on a machine type that limits.machineTypes allows."""
    for limits in _limits(job):
        allowed = limits.machine_types
        if allowed is None:
            continue
        for pool in job.pools:
            if not any(fnmatch.fnmatchcase(pool.machine_type, each) for each in allowed):
                hint = f"{limits.source}.machineTypes allows {', '.join(allowed)}"
                what = "the limits do not allow this machine type"
                yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("limit-strategy", DOCS)
def limit_strategy(job: Job) -> Iterator[Finding]:
    """A job is scheduled with a strategy that limits.strategies allows."""
    for limits in _limits(job):
        if limits.strategies is None or job.strategy in (*limits.strategies, "?"):
            continue
        given = "strategy" in job.scheduling
        place = STRATEGY if given else (STRATEGY[:2] if "scheduling" in job.spec else SPEC)
        hint = f"{limits.source}.strategies allows {', '.join(limits.strategies)}"
        yield Finding(place, "the limits do not allow this strategy", job.strategy, hint)


def _has_full_price(pool: PoolCost, region: str) -> bool:
    """Whether the machine of a pool has a price where it is not a spot machine."""
    machine = pool.machine_type, pool.accelerator or None, pool.count
    return costs.hourly(*machine, region) is not None
