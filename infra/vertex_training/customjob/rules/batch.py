"""Rules about ``backend: batch``: fields that Batch lacks or interprets differently.

For reviews: the cost of a job on each service, or the reason why the service cannot run the job.
The reason is the message of a rule up to the first comma, colon or semicolon.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training import catalog
from vertex_training.catalog import costs
from vertex_training.catalog.costs import whole_seconds
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.rules.context import Context, NetworkFacts, StackFacts
from vertex_training.customjob.rules.environment import REFERENCE
from vertex_training.customjob.rules.job import SPEC, Job, Pool
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.customjob.rules.secrets import secret_value
from vertex_training.naming import SECRET_VALUE

BATCH: Final = "https://docs.cloud.google.com/batch/docs/"
VERTEX: Final = "or set backend: vertex"
#: Maximum days of a job, and of a job on Flex-start machines (batch/docs/job-states: RUNNING).
MOST_DAYS: Final = 14
MOST_DAYS_FLEX: Final = 7
#: Variables that a script sets when a task starts: a request cannot include their values.
LATE: Final = ("CLUSTER_SPEC", "TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
#: Fields that must be equal in all pools of a job.
EQUAL: Final = ("machineSpec", "diskSpec", "containerSpec")


@rule("batch-support", BATCH + "get-started")
def batch_support(job: Job) -> Iterator[Finding]:
    """Check that a job with ``backend: batch`` uses no feature that only Vertex AI supports."""
    if job.context.backend != "batch":
        return
    yield from _of_spec(job)
    yield from _of_pools(job)
    most = MOST_DAYS_FLEX if job.strategy == "FLEX_START" else MOST_DAYS
    if whole_seconds(job.scheduling) > most * 86400:
        path, value = (*SPEC, "scheduling", "timeout"), str(job.scheduling["timeout"])
        what = f"the timeout is longer than Batch's limit of {most} days"
        hint = f"write {most * 86400}s or less, and resume from a checkpoint"
        yield Finding(path, what, value, hint)
    for pool in job.pools:
        yield from _of_pool(pool)


@rule("batch-differs", BATCH + "job-states", "warning")
def batch_differs(job: Job) -> Iterator[Finding]:
    """Check that all fields of a job with ``backend: batch`` have the same effect on Batch."""
    if job.context.backend != "batch":
        return
    if "maxWaitDuration" in job.scheduling:
        what = "Batch ignores maxWaitDuration and waits two days for machines"
        hint = "remove maxWaitDuration; to stop waiting earlier, run `vt jobs cancel`"
        path = (*SPEC, "scheduling", "maxWaitDuration")
        yield Finding(path, what, str(job.scheduling["maxWaitDuration"]), hint)
    if job.context.stack and "pscInterfaceConfig" not in job.spec:
        what = "without pscInterfaceConfig, Batch uses the default network and external addresses"
        hint = (
            "set network.mode: psc in the stack file and pscInterfaceConfig: "
            "${network.interface} here"
        )
        yield Finding(SPEC, what, "", hint, "pscInterfaceConfig")


def _of_spec(job: Job) -> Iterator[Finding]:
    for field, hint in catalog.load("batch.yaml")["only_vertex"].items():
        if value := job.spec.get(field):
            what = f"Batch does not support {field}"
            got = "" if isinstance(value, (bool, dict, list)) else str(value)
            yield Finding((*SPEC, field), what, got, f"{hint}; {VERTEX}")
    if not job.account:
        what = "serviceAccount is missing: Batch would use Compute Engine's default service account"
        hint = "add serviceAccount: ${serviceAccounts.NAME}"
        yield Finding(SPEC, what, "", hint, "serviceAccount")
    if "encryptionSpec" in job.request:
        what = "Batch does not support encryptionSpec: a key for disks needs an instance template"
        key = str(job.request["encryptionSpec"].get("kmsKeyName", ""))
        hint = f"remove jobs from encryption.covers, {VERTEX}"
        yield Finding(("encryptionSpec",), what, key, hint)
    network, attachment = job.context.stack and job.context.stack.network, job.attachment
    if attachment and not (network and network.attachment == attachment and network.subnet):
        what = "the subnet of this network attachment is unknown, and Batch needs a subnet"
        hint = f"set network.subnet in the stack file and use ${{network.interface}}; {VERTEX}"
        yield Finding((*SPEC, "pscInterfaceConfig", "networkAttachment"), what, attachment, hint)


def _of_pools(job: Job) -> Iterator[Finding]:
    for pool in job.pools:
        if pool.is_reduction_server:
            what = "Batch does not support reduction servers"
            yield Finding(pool.path, what, pool.image, f"remove the pool; {VERTEX}")
        elif pool.index > 1:
            what = "Batch requires equal machines: no parameter servers and no evaluators"
            hint = f"use only the first two pools, with equal workers (torch.distributed); {VERTEX}"
            yield Finding(pool.path, what, f"pool {pool.index}", hint)
        elif pool.index == 1 and job.pools[0].index == 0:
            first = job.pools[0].spec
            for field in (name for name in EQUAL if first.get(name) != pool.spec.get(name)):
                what = f"{field} differs from the first pool: Batch requires equal machines"
                hint = f"write the same {field} in both pools; {VERTEX}"
                yield Finding((*pool.path, field), what, "", hint)


def _of_pool(pool: Pool) -> Iterator[Finding]:
    if pool.task_name == "pythonPackageSpec":
        what = "Batch does not support pythonPackageSpec: it installs no packages"
        hint = f"build an image (images in the stack file) and use containerSpec; {VERTEX}"
        yield Finding((*pool.path, "pythonPackageSpec"), what, "", hint)
    for field in ("nfsMounts", "lustreMounts"):
        if pool.spec.get(field):
            what = f"Batch does not support {field}"
            hint = f"read data from buckets below /gcs; {VERTEX}"
            yield Finding((*pool.path, field), what, "", hint)
    if pool.shape and pool.shape.tpu:
        path, got = (*pool.machine_path, "machineType"), pool.machine_type
        yield Finding(path, "Batch does not support TPUs", got, "set backend: vertex")
    if size := pool.machine.get("gpuPartitionSize"):
        what = "Batch does not support gpuPartitionSize: a job uses whole GPUs"
        hint = f"use a machine type with a smaller GPU; {VERTEX}"
        yield Finding((*pool.machine_path, "gpuPartitionSize"), what, str(size), hint)
    named = (pool.affinity or {}).get("values", ())
    if len(named) > 1:
        what = "a Batch job can use only one reservation"
        path = (*pool.machine_path, "reservationAffinity", "values")
        yield Finding(path, what, str(len(named)), f"keep one value; {VERTEX}")
    filled = {name for _, name, value in pool.variables() if SECRET_VALUE.fullmatch(value)}
    for path, text in pool.texts():
        late = (m for m in REFERENCE.finditer(text) if m[1] in LATE or m[1] in filled)
        if match := next(late, None):
            what = "Batch does not expand this variable: its value exists only on the machine"
            yield Finding(path, what, match.group(), f"read the variable in the code; {VERTEX}")


#: Display names of the services.
NAMES: Final = {CUSTOM_JOB.backend: "Vertex", BATCH_JOB.backend: "Batch"}
#: End of the part of a message that fits into a table.
_END: Final = re.compile(r"[,:;]")
#: Name of a service at the beginning of a message, which ``refusal`` replaces by "it".
_SERVICE: Final = re.compile(r"\A(Batch|Vertex AI) ")


@dataclass(frozen=True, slots=True)
class Offer:
    """Maximum cost of a job on a service, or the reason why the service cannot run the job."""

    backend: str
    cost: costs.JobCost | None
    """None if the service cannot run the job."""
    refusal: str = ""
    """Short reason why the service cannot run the job; empty if the service can run the job."""

    def __str__(self) -> str:
        """Return ``Batch $0.76 (4 attempts of 1 h)``, or why the service cannot run the job."""
        return self.text()

    def text(self, more: str = "") -> str:
        """Return the text of ``__str__``, with ``more`` after the duration."""
        name, cost = NAMES[self.backend], self.cost
        if cost is None:
            return f"not {name}: {self.refusal}"
        return f"{name} {costs.usd(cost.worst_case)} ({cost.span}{more})"


def offers(
    messages: Sequence[Mapping[str, Any]],
    region: str,
    backend: str,
    *,
    subnet: bool = False,
    lacks: str = "",
) -> tuple[Offer, Offer]:
    """Return the cost of the job on its own service and on the other service.

    ``messages`` are the requests of all rungs. ``subnet``: whether the subnet of the network
    attachment is known. ``lacks``: an option of the job that the other service does not support.
    """
    other = next(name for name in NAMES if name != backend)
    reason = (
        f"it does not support {lacks}" if lacks else refusal(messages, region, other, subnet=subnet)
    )
    taken = None if reason else costs.of_dearest(messages, region, other)
    own = costs.of_dearest(messages, region, backend)
    return Offer(backend, own), Offer(other, taken, reason)


def refusal(
    messages: Sequence[Mapping[str, Any]], region: str, backend: str, *, subnet: bool
) -> str:
    """Return a short reason why the service cannot run the job; empty if it can run the job."""
    message, on_batch = messages[0], backend == BATCH_JOB.backend
    if on_batch and TUNING_JOB.spec in message:
        return "it does not support tuning"
    if on_batch and len(messages) > 1:
        return "it does not support ladders"
    if CUSTOM_JOB.spec not in message:
        return ""
    interface = message[CUSTOM_JOB.spec].get("pscInterfaceConfig", {})
    network = NetworkFacts("psc", "", interface.get("networkAttachment", ""), subnet="known")
    stack = StackFacts("", "", region, network=network if subnet else None)
    job = Job(dict(message), Context(region=region, stack=stack, backend=backend))
    rule = batch_support if on_batch else secret_value
    reasons = list(dict.fromkeys(finding.what for finding in rule(job)))
    if not reasons:
        return ""
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return _SERVICE.sub("it ", _END.split(reasons[0])[0]) + more
