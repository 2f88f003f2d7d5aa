"""Rules that compare a job with its stack: accounts, access, secrets, outputs and limits."""

import fnmatch
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import costs
from vertex_training.customjob.rules.context import JobLimits
from vertex_training.customjob.rules.job import REQUEST_ID, SPEC, Job, outputs_clash
from vertex_training.customjob.rules.registry import GUIDES, OURS, Finding, rule
from vertex_training.errors import Path, did_you_mean

OUTPUT: Final[Path] = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")
BUCKET: Final = re.compile(r"(?:gs://|/gcs/)([a-z0-9][a-z0-9._-]*[a-z0-9])")
SECRET: Final = re.compile(r"projects/([a-z0-9-]+)/secrets/([A-Za-z0-9_-]+)")


@rule("output-shared", OURS)
def output_shared(job: Job) -> Iterator[Finding]:
    """Check that each job of a stack has its own output directory."""
    for name, other in sorted(job.context.others.items()):
        if outputs_clash(job.output, other.output):
            per_run = f"{REQUEST_ID} for a folder per run"
            hint = f"add ${{job.name}} to the path for a folder per job, or {per_run}"
            what = f"job '{name}' also writes to this output directory"
            yield Finding(OUTPUT, what, job.output, hint)


@rule("package-module", OURS)
def package_module(job: Job) -> Iterator[Finding]:
    """Check that the packages of a job contain its pythonModule."""
    known = job.context.stack.packages if job.context.stack else {}
    for pool in job.pools:
        uris, module = pool.task.get("packageUris", []), pool.task.get("pythonModule", "")
        if not module or not uris or not all(uri in known for uri in uris):
            continue  # modules of a foreign package are unknown
        modules = frozenset[str]().union(*(known[uri] for uri in uris))
        if module not in modules:
            hint = did_you_mean(module, modules)
            path = (*pool.task_path, "pythonModule")
            yield Finding(path, "the package does not contain this module", module, hint)


@rule("account-foreign", GUIDES + "general/custom-service-account", "warning")
def account_foreign(job: Job) -> Iterator[Finding]:
    """Check that a job runs as an account of its stack; other accounts cannot be checked."""
    stack = job.context.stack
    if stack and job.account and job.account not in stack.accounts:
        hint = "write serviceAccount: ${serviceAccounts.NAME}"
        what = "this account does not belong to the stack"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


@rule("account-reads", OURS)
def account_reads(job: Job) -> Iterator[Finding]:
    """Check that the job's account can read each bucket of the stack that the job references."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for path, text in _texts(job):
        for name in dict.fromkeys(BUCKET.findall(text)):
            bucket = stack.buckets.get(name)
            if bucket and job.account not in bucket.readers | bucket.writers:
                hint = f"add the bucket to reads or writes of the account {job.account}"
                yield Finding(path, "the job's account cannot read this bucket", name, hint)


@rule("account-writes", OURS)
def account_writes(job: Job) -> Iterator[Finding]:
    """Check that the job's account can write to the job's output directory."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for name in BUCKET.findall(job.output)[:1]:
        bucket = stack.buckets.get(name)
        if bucket and job.account not in bucket.writers:
            hint = f"add the bucket to writes of the account {job.account}"
            yield Finding(OUTPUT, "the job's account cannot write to this bucket", name, hint)


@rule("secret-granted", OURS)
def secret_granted(job: Job) -> Iterator[Finding]:
    """Check that the job's account can read each secret of the stack that the job references."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for path, text in _texts(job):
        for project, secret in dict.fromkeys(SECRET.findall(text)):
            own = project in (stack.project, stack.project_number)
            place = stack.project if own else project
            accessors = stack.secrets.get(f"projects/{place}/secrets/{secret}")
            if accessors is None and own:
                known = ", ".join(sorted(name.rsplit("/", 1)[1] for name in stack.secrets))
                hint = f"add the secret to secrets of the stack file, which has {known or 'none'}"
                yield Finding(path, "the stack does not have this secret", secret, hint)
            elif accessors is not None and job.account not in accessors:
                hint = f"add the secret to secrets of the account {job.account}"
                yield Finding(path, "the job's account cannot read this secret", secret, hint)


def _texts(job: Job) -> Iterator[tuple[Path, str]]:
    for pool in job.pools:
        yield from pool.texts()
        for index, uri in enumerate(pool.task.get("packageUris", [])):
            yield (*pool.task_path, "packageUris", index), uri


DOCS: Final = "docs/environments.md#limits"
STRATEGY: Final = ("jobSpec", "scheduling", "strategy")
TIMEOUT: Final = ("jobSpec", "scheduling", "timeout")


def _limits(job: Job) -> Iterator[JobLimits]:
    """Yield the limits of the stack and of the team that owns the job's account."""
    both = (job.context.limits, job.context.account_limits.get(job.account))
    yield from (limits for limits in both if limits is not None)


@rule("limit-job-cost", DOCS)
def limit_job_cost(job: Job) -> Iterator[Finding]:
    """Check that a job costs at most limits.maxUsdPerJob if it runs until its timeout."""
    maxima = [limits.usd for limits in _limits(job) if limits.usd is not None]
    if not maxima or job.strategy == "?" or not job.region:
        return
    most = min(maxima)
    cost = costs.of_job(job.tuning or job.request, job.region, job.context.backend)
    if cost.worst_case is None or cost.worst_case <= most or cost.trial_hourly is None:
        return
    runs = cost.attempts * (1 if cost.trials is None else cost.trials)
    what = (
        f"the job may cost {costs.usd(cost.worst_case)} ({_rate(cost)}), "
        f"more than the limit of {costs.usd(most)}"
    )
    seconds = int(most / runs / cost.trial_hourly * 3600)
    fewer = "fewer or cheaper machines" if cost.trials is None else "fewer trials"
    hint = f'set timeout: "{seconds}s", or use {fewer}'
    if cost.default_timeout:
        timeout = job.scheduling.get("timeout", "")
        path = TIMEOUT if timeout else TIMEOUT[:2] if "scheduling" in job.spec else SPEC
        default = "the default timeout is 7 days"
        if timeout:
            default = "a timeout below one second may be ignored, and the default is 7 days"
        yield Finding(path, f"{what}: {default}", timeout, hint)
    else:
        yield Finding(TIMEOUT, what, job.scheduling["timeout"], hint)


def _rate(cost: costs.JobCost) -> str:
    attempts = f" in {cost.attempts} attempts" if cost.attempts > 1 else ""
    rate = f"{costs.usd(cost.hourly)} an hour{attempts}{cost.elsewhere}"
    trials = f", {cost.parallel} of {cost.trials} trials at once" if cost.trials is not None else ""
    return rate + trials


@rule("limit-price-unknown", DOCS)
def limit_price_unknown(job: Job) -> Iterator[Finding]:
    """Check that every machine type has a known price if the stack limits costs."""
    priced = any(limits.priced for limits in _limits(job))
    if not priced or job.strategy == "?" or not job.region:
        return
    for pool in costs.of_job(job.request, job.region).unpriced:
        path = ("jobSpec", "workerPoolSpecs", pool.index, "machineSpec")
        what = "the price of this machine is unknown, and the stack limits costs"
        spot = " as a Spot VM" if job.strategy == "SPOT" else ""
        hint = "use another machine type (vt catalogue), or set limits.allowUnpriced: true"
        machine = pool.machine_type, pool.accelerator or None, pool.count
        if job.strategy == "SPOT" and costs.hourly(*machine, job.region) is not None:
            hint = f"use strategy: STANDARD, which has a known price; or {hint}"
        yield Finding((*path, "machineType"), what, f"{pool.machine_type}{spot}", hint)


@rule("limit-machine-type", DOCS)
def limit_machine_type(job: Job) -> Iterator[Finding]:
    """Check that limits.machineTypes allows the machine type of every pool."""
    for limits in _limits(job):
        allowed = limits.machine_types
        if allowed is None:
            continue
        for pool in job.pools:
            if not any(fnmatch.fnmatchcase(pool.machine_type, form) for form in allowed):
                hint = f"use one of {', '.join(allowed)}"
                what = f"{limits.source}.machineTypes does not allow this machine type"
                yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("limit-strategy", DOCS)
def limit_strategy(job: Job) -> Iterator[Finding]:
    """Check that limits.strategies allows the scheduling strategy of a job."""
    for limits in _limits(job):
        if limits.strategies is None or job.strategy in (*limits.strategies, "?"):
            continue
        is_set = "strategy" in job.scheduling
        place = STRATEGY if is_set else (STRATEGY[:2] if "scheduling" in job.spec else SPEC)
        what = f"{limits.source}.strategies does not allow this strategy"
        hint = f"use one of {', '.join(limits.strategies)}"
        yield Finding(place, what, job.strategy, hint)
