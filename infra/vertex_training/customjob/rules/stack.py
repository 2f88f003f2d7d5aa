"""Rules that compare a job with its stack.

They check accounts, access, secrets, outputs and limits, and the owner and capacity of the stack's
network and reservations.
"""

import fnmatch
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from vertex_training import catalog
from vertex_training.catalog import costs
from vertex_training.customjob.rules.context import (
    JobFacts,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.customjob.rules.job import (
    REQUEST_ID,
    SPEC,
    Job,
    Pool,
    job_facts_of,
    outputs_clash,
    reservation_request_of,
)
from vertex_training.customjob.rules.network import INTERFACE, NETWORK, PEERING, PSC
from vertex_training.customjob.rules.registry import GUIDES, OURS, Finding, Findings, rule
from vertex_training.errors import Path, did_you_mean

OUTPUT: Final[Path] = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")
BUCKET: Final = re.compile(r"(?:gs://|/gcs/)([a-z0-9][a-z0-9._-]*[a-z0-9])")
SECRET: Final = re.compile(r"projects/([a-z0-9-]+)/secrets/([A-Za-z0-9_-]+)")


@rule("output-shared", OURS)
def output_shared(job: Job) -> Findings:
    """Check that each job of a stack has its own output directory."""
    for name, other in sorted(job.context.others.items()):
        if outputs_clash(job.output, other.output):
            per_run = f"{REQUEST_ID} for a folder per run"
            hint = f"add ${{job.name}} to the path for a folder per job, or {per_run}"
            what = f"job '{name}' also writes to this output directory"
            yield Finding(OUTPUT, what, job.output, hint)


@rule("package-module", OURS)
def package_module(job: Job) -> Findings:
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
def account_foreign(job: Job) -> Findings:
    """Check that a job runs as an account of its stack; other accounts cannot be checked."""
    stack = job.context.stack
    if stack and job.account and job.account not in stack.accounts:
        hint = "write serviceAccount: ${serviceAccounts.NAME}"
        what = "this account does not belong to the stack"
        yield Finding((*SPEC, "serviceAccount"), what, job.account, hint)


def _texts(job: Job) -> Iterator[tuple[Job, StackFacts, Path, str]]:
    """Yield path and text of values that may name resources of the stack of the job's account."""
    stack = job.context.stack
    if stack and job.account in stack.accounts:
        for pool in job.pools:
            for path, text in pool.texts():
                yield job, stack, path, text
            for index, uri in enumerate(pool.task.get("packageUris", [])):
                yield job, stack, (*pool.task_path, "packageUris", index), uri


@rule("account-reads", OURS, of=_texts)
def account_reads(job: Job, stack: StackFacts, path: Path, text: str) -> Findings:
    """Check that the job's account can read each bucket of the stack that the job references."""
    for name in dict.fromkeys(BUCKET.findall(text)):
        bucket = stack.buckets.get(name)
        if bucket and job.account not in bucket.readers | bucket.writers:
            hint = f"add the bucket to reads or writes of the account {job.account}"
            yield Finding(path, "the job's account cannot read this bucket", name, hint)


@rule("account-writes", OURS)
def account_writes(job: Job) -> Findings:
    """Check that the job's account can write to the job's output directory."""
    stack = job.context.stack
    if stack is None or job.account not in stack.accounts:
        return
    for name in BUCKET.findall(job.output)[:1]:
        bucket = stack.buckets.get(name)
        if bucket and job.account not in bucket.writers:
            hint = f"add the bucket to writes of the account {job.account}"
            yield Finding(OUTPUT, "the job's account cannot write to this bucket", name, hint)


@rule("secret-granted", OURS, of=_texts)
def secret_granted(job: Job, stack: StackFacts, path: Path, text: str) -> Findings:
    """Check that the job's account can read each secret of the stack that the job references."""
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


DOCS: Final = "docs/environments.md#limits"
STRATEGY: Final = ("jobSpec", "scheduling", "strategy")
TIMEOUT: Final = ("jobSpec", "scheduling", "timeout")


def _limits(job: Job) -> Iterator[JobLimits]:
    """Yield the limits of the stack and of the team that owns the job's account."""
    both = (job.context.limits, job.context.account_limits.get(job.account))
    yield from (limits for limits in both if limits is not None)


@rule("limit-job-cost", DOCS)
def limit_job_cost(job: Job) -> Findings:
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
def limit_price_unknown(job: Job) -> Findings:
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
def limit_machine_type(job: Job) -> Findings:
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
def limit_strategy(job: Job) -> Findings:
    """Check that limits.strategies allows the scheduling strategy of a job."""
    for limits in _limits(job):
        if limits.strategies is None or job.strategy in (*limits.strategies, "?"):
            continue
        is_set = "strategy" in job.scheduling
        place = STRATEGY if is_set else (STRATEGY[:2] if "scheduling" in job.spec else SPEC)
        what = f"{limits.source}.strategies does not allow this strategy"
        hint = f"use one of {', '.join(limits.strategies)}"
        yield Finding(place, what, job.strategy, hint)


NAME: Final[Path] = (*SPEC, "network")
ATTACHMENT: Final[Path] = (*INTERFACE, "networkAttachment")
#: Addresses of a subnet that Google reserves: https://docs.cloud.google.com/vpc/docs/subnets
RESERVED_ADDRESSES: Final = 4


def _network(job: Job) -> NetworkFacts | None:
    return job.context.stack.network if job.context.stack else None


@rule("network-foreign", "docs/environments.md#networks", "warning")
def network_foreign(job: Job) -> Findings:
    """Check that a job uses the stack's network or attachment: other networks cannot be checked."""
    network = _network(job)
    if network is None:
        return
    name, attachment = job.network, job.attachment
    if name and name != network.name and not _wrong_owner(job):
        hint = "write network: ${network.name}" if network.mode == "peering" else "remove network"
        yield Finding(NAME, "this is not the stack's network", name, hint)
    if attachment and attachment not in (network.attachment, network.attachment.split("/")[-1]):
        is_psc = network.mode == "psc"
        hint = "write ${network.attachment}" if is_psc else "remove pscInterfaceConfig"
        yield Finding(ATTACHMENT, "this is not the stack's network attachment", attachment, hint)


@rule("network-owner", PEERING)
def network_owner(job: Job) -> Findings:
    """Check that the name of a Shared VPC network has the host project's number."""
    if (network := _network(job)) and _wrong_owner(job):
        what = "the network is in the host project of a Shared VPC, not in the stack's project"
        yield Finding(NAME, what, job.network, f"write {network.name}")


@rule("network-one-a-region", PEERING)
def network_one_a_region(job: Job) -> Findings:
    """Check that all peered jobs in a region use the same network."""
    mine = job.network
    for name, other in sorted(job.context.others.items()):
        if mine and other.network and other.network != mine:
            what = f"job '{name}' uses {other.network}, and a region supports one peered network"
            yield Finding(NAME, what, mine, f"use {other.network}, or a PSC interface")
            return


@rule("range-foreign", "docs/environments.md#networks", "warning")
def range_foreign(job: Job) -> Findings:
    """Check that reserved ranges belong to the stack's network: other ranges cannot be checked."""
    network = _network(job)
    if network is None or job.spec.get("network") != network.name:
        return
    for index, name in enumerate(job.spec.get("reservedIpRanges", [])):
        if name not in network.ranges:
            hint = f"write one of {', '.join(sorted(network.ranges))}"
            path = (*SPEC, "reservedIpRanges", index)
            yield Finding(path, "the stack's network has no range of this name", name, hint)


@rule("peering-room", GUIDES + "training/using-private-ip")
def peering_room(job: Job) -> Findings:
    """Check that the peering ranges have enough addresses for all concurrent jobs of the stack."""
    network = _network(job)
    if network is None or not network.ranges or job.network != network.name:
        return
    peered = [other for other in job.context.others.values() if other.network == network.name]
    users = [job.nodes, *(other.nodes for other in peered)]
    at_once = sorted([job.parallel, *(other.parallel for other in peered)], reverse=True)
    jobs = sum(at_once[: network.parallel_jobs])
    room = _room(network.ranges.values(), max(users))
    if room is not None and jobs > room:
        prefixes = ", ".join(f"/{prefix}" for prefix in network.ranges.values())
        what = (
            f"peering ranges ({prefixes}) have addresses for {room} concurrent jobs of up to "
            f"{max(users)} nodes, but the stack can run {jobs} jobs at once"
        )
        hint = "add a range to network.ranges, or limit network.parallelJobs"
        yield Finding(NAME, what, "", hint)


@rule("interface-room", PSC, "warning")
def interface_room(job: Job) -> Findings:
    """Check that the subnet of the network attachment has an address for each concurrent node."""
    network = _network(job)
    if network is None or network.subnet_prefix is None or job.attachment != network.attachment:
        return
    others = [o for o in job.context.others.values() if o.attachment == network.attachment]
    largest = sorted((user.nodes * user.parallel for user in (job, *others)), reverse=True)
    nodes = sum(largest[: network.parallel_jobs])
    free = 2 ** (32 - network.subnet_prefix) - RESERVED_ADDRESSES
    if nodes > free:
        what = f"the subnet has {free} addresses, but the stack can run {nodes} nodes at once"
        prefix = 32 - math.ceil(math.log2(nodes + RESERVED_ADDRESSES))
        hint = f"use a /{prefix} in network.subnet.range, or limit network.parallelJobs"
        yield Finding(ATTACHMENT, what, f"/{network.subnet_prefix}", hint)


def _wrong_owner(job: Job) -> bool:
    """Return whether the network's name has the stack's project instead of the host project."""
    network, stack = _network(job), job.context.stack
    written, own = NETWORK.match(job.network), NETWORK.match(network.name if network else "")
    if not (written and own and stack) or written[2] != own[2]:
        return False
    return written[1] != own[1] and written[1] in (stack.project, stack.project_number)


def _room(prefixes: Collection[int | None], nodes: int) -> int | None:
    """Return how many jobs of ``nodes`` nodes fit into the ranges; None outside Google's table."""
    rows = [row for row in catalog.load("peering_ranges.yaml") if row["nodes"] >= nodes]
    if not rows or any(prefix is None or prefix < 16 for prefix in prefixes):
        return None
    table = min(rows, key=lambda row: row["nodes"])["jobs"]
    return sum(table.get(prefix, 0) for prefix in prefixes)


RESERVATIONS: Final = GUIDES + "training/use-reservations"


def _known(job: Job) -> Mapping[str, ReservationFacts]:
    return job.context.stack.reservations if job.context.stack else {}


def _with_request(job: Job) -> Iterator[tuple[Pool, Path]]:
    for pool in job.pools:
        if pool.reserved:
            yield pool, (*pool.machine_path, "reservationAffinity")


def _requested(job: Job) -> Iterator[tuple[Pool, Path, str, ReservationFacts | None]]:
    """Yield each reservation that a worker pool names: pool, path, name, properties if known."""
    for pool, _ in _with_request(job):
        for path, name in pool.reservations():
            yield pool, path, name, _known(job).get(_own(job, name))


def _own(job: Job, name: str) -> str:
    stack = job.context.stack
    if stack is None:
        return name
    by_number, by_id = f"projects/{stack.project_number}/", f"projects/{stack.project}/"
    return by_id + name.removeprefix(by_number) if name.startswith(by_number) else name


@rule("reservation-foreign", "docs/environments.md#reservations", "warning")
def reservation_foreign(job: Job) -> Findings:
    """Check that a job uses only its stack's reservations: other reservations cannot be checked."""
    keys = ", ".join(f"${{reservations.{r.key}}}" for r in _known(job).values())
    for _, path, name, facts in _requested(job):
        if keys and facts is None:
            what = "the stack has no reservation of this name"
            yield Finding(path, what, name, f"write one of {keys}")


@rule("reservation-machine", RESERVATIONS, of=_requested)
def reservation_machine(
    pool: Pool, _path: Path, _name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that a pool has the machine type, GPU type and GPU count of its reservation."""
    if facts and not _fits(reservation_request_of(pool), facts):
        got = _shown(pool.machine_type, pool.accelerator, pool.count)
        reserved = _shown(facts.machine_type, facts.accelerator_type, facts.accelerator_count)
        what = f"reservation '{facts.key}' has other machines than this pool"
        hint = f"use the reservation's machines: {reserved}"
        yield Finding((*pool.machine_path, "machineType"), what, got, hint)


@rule("reservation-any", RESERVATIONS, "warning")
def reservation_any(job: Job) -> Findings:
    """Check that a pool with ANY_RESERVATION matches an open reservation of the stack."""
    reservations = _known(job).values()
    candidates = [reservation for reservation in reservations if not reservation.specific]
    for pool, path in _with_request(job):
        kind = (pool.affinity or {}).get("reservationAffinityType")
        if kind != "ANY_RESERVATION" or not reservations:
            continue
        request = reservation_request_of(pool)
        if not any(_fits(request, reservation) for reservation in candidates):
            what = "no open reservation of this stack has these machines"
            hint = "name a reservation, or set its specificReservationRequired: false"
            got = _shown(pool.machine_type, pool.accelerator, pool.count)
            yield Finding((*path, "reservationAffinityType"), what, got, hint)


@rule("reservation-count", RESERVATIONS)
def reservation_count(job: Job) -> Findings:
    """Check that a reservation has enough machines for all concurrent jobs of the stack."""
    for path, reservation, users in _shared(job):
        needed = _at_once(users, reservation)
        if needed > reservation.count:
            counts = ", ".join(f"{name}: {count}" for name, count in users.items())
            what = f"reservation '{reservation.key}' has too few machines for its jobs ({counts})"
            hint = "raise the reservation's count, or limit its parallelJobs"
            yield Finding(path, what, f"count: {reservation.count}", hint)


@rule("reservation-spare", RESERVATIONS, "warning")
def reservation_spare(job: Job) -> Findings:
    """Check that a reservation has one spare machine, as Google advises."""
    for path, reservation, users in _shared(job):
        count = reservation.count
        if _at_once(users, reservation) == count:
            what = f"concurrent jobs use all machines of reservation '{reservation.key}'"
            hint = f"set count: {count + 1}; Google advises one spare machine"
            yield Finding(path, what, f"count: {count}", hint)


@rule("reservation-open", RESERVATIONS, "warning", of=_requested)
def reservation_open(
    _pool: Pool, path: Path, name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that every reservation that a job names is a specific reservation."""
    if facts and not facts.specific:
        what = f"reservation '{facts.key}' is an open reservation, which jobs cannot use by name"
        affinity = f"reservationAffinity: ${{reservations.{facts.key}}}"
        hint = f"write {affinity}, or set specificReservationRequired: true on the reservation"
        yield Finding(path[:-2], what, name, hint)


@rule("reservation-local-ssd", RESERVATIONS, "warning", of=_requested)
def reservation_local_ssd(
    _pool: Pool, path: Path, _name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that a reservation for a job has no localSsds."""
    if facts and facts.local_ssds:
        what = f"reservation '{facts.key}' has localSsds, which Vertex AI does not support"
        hint = "remove localSsds, unless the machine type includes local SSDs"
        yield Finding(path[:-2], what, str(facts.local_ssds), hint)


def _fits(request: ReservationRequest, reservation: ReservationFacts) -> bool:
    return (request.machine_type, request.accelerator_type, request.accelerator_count) == (
        reservation.machine_type,
        reservation.accelerator_type,
        reservation.accelerator_count,
    )


def _shown(machine_type: str, accelerator: str, count: int) -> str:
    return f"{machine_type} with {count} x {accelerator}" if accelerator else machine_type


def _shared(job: Job) -> Iterator[tuple[Path, ReservationFacts, dict[str, int]]]:
    """Yield each reservation that the job uses: path, properties, and machines per job by name."""
    for name, reservation in _known(job).items():
        for pool, path in _with_request(job):
            if _uses(job, reservation_request_of(pool), name, reservation):
                mine = {"this job": _machines(job, job_facts_of(job), name, reservation)}
                others = {
                    f"'{other}'": _machines(job, facts, name, reservation)
                    for other, facts in sorted(job.context.others.items())
                }
                yield path, reservation, mine | {who: n for who, n in others.items() if n}
                break


def _machines(job: Job, facts: JobFacts, name: str, reservation: ReservationFacts) -> int:
    return sum(
        request.machines
        for request in facts.reservation_requests
        if _uses(job, request, name, reservation)
    )


def _uses(job: Job, request: ReservationRequest, name: str, reservation: ReservationFacts) -> bool:
    if request.reservations:
        # With several names, Vertex AI uses the first reservation with free machines.
        return len(request.reservations) == 1 and _own(job, request.reservations[0]) == name
    return not reservation.specific and _fits(request, reservation)


def _at_once(users: Mapping[str, int], reservation: ReservationFacts) -> int:
    return sum(sorted(users.values(), reverse=True)[: reservation.parallel_jobs])
